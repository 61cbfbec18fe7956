// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Paths of files and devices, found in the kernel's structures; arguments of processes, found in
//! their own memory.

mod common;

use common::asm::{asm_with, int, string};
use common::{action, clause, config, str_at, u64_at, Bench, Steps};
use dtrace_engine::{Consumer, Place, Privileges, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::Opt;

/// Address of the first structure; each takes 64 bytes.
const BASE: u64 = 0xffff_8880_0000_0000;

/// The kernel's structures, added one by one.
#[derive(Default)]
struct Records(Vec<Vec<u8>>);

impl Records {
    fn next(&self) -> u64 {
        BASE + 64 * self.0.len() as u64
    }

    fn words(&mut self, words: &[u64]) -> u64 {
        let at = self.next();
        self.0
            .push(words.iter().flat_map(|w| w.to_ne_bytes()).collect());
        at
    }

    fn text(&mut self, text: &str) -> u64 {
        let at = self.next();
        self.0.push([text.as_bytes(), b"\0"].concat());
        at
    }

    /// Adds a directory entry; with parent 0 it is a root.
    fn dentry(&mut self, parent: u64, name: &str, removed: bool) -> u64 {
        let text = self.text(name);
        let parent = if parent == 0 { self.next() } else { parent };
        self.words(&[parent, text, name.len() as u64, removed.into()])
    }

    /// Adds a mount of `root` on `above`; without `above` it is mounted nowhere.
    fn mount(&mut self, root: u64, above: Option<Place>) -> u64 {
        let itself = Place {
            mount: self.next(),
            dentry: root,
        };
        let above = above.unwrap_or(itself);
        self.words(&[root, above.mount, above.dentry])
    }

    fn path(&mut self, mount: u64, dentry: u64) -> u64 {
        self.words(&[mount, dentry])
    }
}

fn call(subr: &str, args: &[u64]) -> String {
    let mut text = "flushts\n".to_string();
    for arg in args {
        text += &format!("setx {arg}, %r1\n pushtv ctf, %r0, %r1\n");
    }
    text + &format!("call {subr}, %r1\n ret %r1")
}

fn bench(text: &str, is_string: bool, records: &Records) -> Bench {
    let ty = if is_string { string() } else { int(8) };
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Strsize, 48).unwrap();
    let program = asm_with(text, ty, &[]);
    let mut b = Bench::with(
        c,
        vec![clause(None, vec![action(Action::Difexpr, program)])],
    );
    for (n, bytes) in records.0.iter().enumerate() {
        b.m.kernel.insert(BASE + 64 * n as u64, bytes.clone());
    }
    b
}

fn text_of(b: &Bench) -> String {
    assert_eq!(b.fire(), [None]);
    str_at(&b.read(Which::Principal).0, 16).to_string()
}

/// A file system that is mounted on /srv/data of the root file system. The root directory of the
/// process is /srv or the topmost root.
struct Tree {
    records: Records,
    top: Place,
    srv: Place,
    file: u64,
    gone: u64,
    root_of_data: u64,
    bare: u64,
}

fn tree() -> Tree {
    let mut r = Records::default();
    let root = r.dentry(0, "/", false);
    let mount = r.mount(root, None);
    let srv = r.dentry(root, "srv", false);
    let data = r.dentry(srv, "data", false);
    let inner_root = r.dentry(0, "/", false);
    let inner = r.mount(
        inner_root,
        Some(Place {
            mount,
            dentry: data,
        }),
    );
    let dir = r.dentry(inner_root, "dir", false);
    let file = r.dentry(dir, "file", false);
    let gone = r.dentry(dir, "gone", true);
    Tree {
        file: r.path(inner, file),
        gone: r.path(inner, gone),
        root_of_data: r.path(inner, inner_root),
        bare: r.path(mount, root),
        top: Place {
            mount,
            dentry: root,
        },
        srv: Place { mount, dentry: srv },
        records: r,
    }
}

#[test]
fn a_path_goes_over_mounts_up_to_the_root_of_the_process() {
    let t = tree();
    let path = |at: u64, root: Option<Place>| {
        let mut b = bench(&call("d_path", &[at]), true, &t.records);
        b.m.root = root;
        text_of(&b)
    };
    let top = Some(t.top);
    assert_eq!(path(t.file, top), "/srv/data/dir/file");
    assert_eq!(path(t.file, Some(t.srv)), "/data/dir/file");
    assert_eq!(path(t.root_of_data, top), "/srv/data");
    assert_eq!(path(t.bare, top), "/");
    assert_eq!(path(t.gone, top), "/srv/data/dir/gone (deleted)");
    // A file outside of the process's root directory, and a process without a root directory: the
    // path starts at the topmost root.
    assert_eq!(path(t.bare, Some(t.srv)), "/");
    assert_eq!(path(t.file, None), "/srv/data/dir/file");
}

#[test]
fn a_long_path_keeps_its_beginning() {
    let mut r = Records::default();
    let root = r.dentry(0, "/", false);
    let mount = r.mount(root, None);
    let mut dir = root;
    for n in 0..20 {
        dir = r.dentry(dir, &format!("dir{n}"), false);
    }
    let at = r.path(mount, dir);
    let b = bench(&call("d_path", &[at]), true, &r);
    let whole: String = (0..20).map(|n| format!("/dir{n}")).collect();
    assert_eq!(text_of(&b), &whole[..47]);
}

#[test]
fn files_in_no_directory_are_named_by_their_kind() {
    let mut r = Records::default();
    let root = r.dentry(0, "/", false);
    let mount = r.mount(root, None);
    let (pipefs, anon) = (r.text("pipefs"), r.text("anon_inodefs"));
    let mut unplaced = |name: &str, fs: u64, inode: u64| {
        let text = r.text(name);
        let at = r.next();
        let dentry = r.words(&[at, text, name.len() as u64, 0, fs, inode]);
        r.path(mount, dentry)
    };
    let (pipe, event) = (unplaced("", pipefs, 4711), unplaced("[eventfd]", anon, 1));
    let path = |at: u64| text_of(&bench(&call("d_path", &[at]), true, &r));
    assert_eq!(path(pipe), "pipe:[4711]");
    assert_eq!(path(event), "anon_inode:[eventfd]");
}

#[test]
fn what_is_no_path_faults() {
    let mut r = Records::default();
    let fault = |r: &Records, at: u64| {
        let report = bench(&call("d_path", &[at]), true, r).fire()[0].unwrap();
        (report.fault, report.value)
    };
    assert_eq!(fault(&r, 0x18), (Fault::BadAddr, 0x18));
    // The path has invalid pointers.
    let wild = r.path(0x10, 0x20);
    assert_eq!(fault(&r, wild), (Fault::BadAddr, 0x20));
    // Directories form a circle: the walk ends.
    let (a, name) = (r.next() + 64, r.text("a"));
    let b = a + 64;
    r.words(&[b, name, 1, 0]);
    r.words(&[a, name, 1, 0]);
    let root = r.dentry(0, "/", false);
    let mount = r.mount(root, None);
    let circle = r.path(mount, a);
    assert_eq!(fault(&r, circle).0, Fault::Overrun);
}

#[test]
fn a_device_has_a_path_and_a_descriptor_a_file() {
    let mut r = Records::default();
    let mut above = 0;
    for name in ["devices", "pci0000:00", "0000:00:02.0"] {
        let name = r.text(name);
        above = r.words(&[name, above]);
    }
    let b = bench(&call("ddi_pathname", &[above, 1]), true, &r);
    assert_eq!(text_of(&b), "/devices/pci0000:00/0000:00:02.0");
    let bad = bench(&call("ddi_pathname", &[0x20, 0]), true, &r).fire()[0].unwrap();
    assert_eq!((bad.fault, bad.value), (Fault::BadAddr, 0x20));

    let file = |fd: u64| {
        let b = bench(&call("getf", &[fd]), false, &r);
        assert_eq!(b.fire(), [None]);
        u64_at(&b.read(Which::Principal).0, 16)
    };
    let files = [0, 1, 2, 3, u64::MAX, 1 << 32].map(file);
    assert_eq!(files, [0xff00, 0, 0xff02, 0, 0, 0]);

    // Linux has no STREAMS messages.
    for subr in ["msgsize", "msgdsize"] {
        let fault = bench(&call(subr, &[7]), false, &r).fire()[0].unwrap();
        assert_eq!((fault.fault, fault.value), (Fault::IllOp, 7));
    }
}

#[test]
fn arguments_are_joined_with_blanks() {
    let args = |range: Option<(u64, u64)>| {
        let mut b = bench("ldgs execargs, %r1\n ret %r1", true, &Records::default());
        let memory = b"cat\0-n\0a file\0HOME=/\0".to_vec();
        b.m.user.get_mut().insert(0x7000, memory);
        b.m.user_args = range;
        text_of(&b)
    };
    assert_eq!(args(Some((0x7000, 0x700e))), "cat -n a file");
    assert_eq!(args(Some((0x7000, 0x7000))), "");
    assert_eq!(args(None), "");
    let mut b = bench("ldgs execargs, %r1\n ret %r1", true, &Records::default());
    b.m.user_args = Some((0x9000, 0x9008));
    let fault = b.fire()[0].unwrap();
    assert_eq!((fault.fault, fault.value), (Fault::BadAddr, 0x9000));
}

/// Returns kernel memory with a process: its `task_struct`, its name, and its arguments, which are
/// not at the start of its address space.
fn process(mm: u64, begin: u64, end: u64) -> Records {
    let mut name = [0; 16];
    name[..4].copy_from_slice(b"init");
    let (task, args) = ([mm, begin, end], b"/sbin/init\0--a b\0\0HOME=/\0");
    let task = task.iter().flat_map(|word| word.to_ne_bytes());
    Records(vec![task.chain(name).collect(), args.to_vec()])
}

#[test]
fn another_process_has_arguments_or_a_name() {
    let mm = BASE + 64 - 0x7000;
    let taskargs = |begin: u64, end: u64| {
        let r = process(mm, begin, end);
        text_of(&bench(&call("taskargs", &[BASE]), true, &r))
    };
    assert_eq!(taskargs(0x7000, 0x7012), "/sbin/init --a b ");
    assert_eq!(taskargs(0x7000, 0x7011), "/sbin/init --a b");
    assert_eq!(taskargs(0x7006, 0x700b), "init");
    // An empty argument, no arguments, and impossible ranges.
    assert_eq!(taskargs(0x7011, 0x7012), "init");
    assert_eq!(taskargs(0x7012, 0x7012), "init");
    assert_eq!(taskargs(0x7012, 0x7011), "init");
    assert_eq!(taskargs(0, u64::MAX), "init");
    // The arguments are not in memory, or only their beginning is.
    assert_eq!(taskargs(0x8000, 0x8012), "init");
    assert_eq!(taskargs(0x7000, 0x7100), "init");
    // A kernel thread.
    let thread = process(0, 0x7000, 0x7012);
    let b = bench(&call("taskargs", &[BASE]), true, &thread);
    assert_eq!(text_of(&b), "init");
}

#[test]
fn arguments_of_who_executed_something_else_are_nobodys() {
    let r = process(BASE + 64 - 0x7000, 0x7000, 0x7012);
    let mut b = bench(&call("taskargs", &[BASE]), true, &r);
    b.m.executes = 0x1000;
    assert_eq!(text_of(&b), "init");
}

#[test]
fn arguments_are_cut_to_a_string_and_paid_for() {
    let bench = |strsize: u64, len: u64, calls: usize| {
        let mut r = process(BASE + 64, 0, len);
        r.0[1] = vec![b'x'; 5000];
        let once = call("taskargs", &[BASE]).replace("ret %r1", "");
        let program = asm_with(&(once.repeat(calls) + "ret %r1"), string(), &[]);
        let c = Consumer::new(config()).unwrap();
        c.set_option(Opt::Strsize, strsize).unwrap();
        let clauses = vec![clause(None, vec![action(Action::Difexpr, program)])];
        let mut b = Bench::with(c, clauses);
        b.m.kernel.insert(BASE, r.0[0].clone());
        b.m.kernel.insert(BASE + 64, r.0[1].clone());
        b
    };
    assert_eq!(text_of(&bench(8, 5000, 1)), "xxxxxxx");
    assert_eq!(text_of(&bench(8192, 5000, 1)), "x".repeat(4999));
    // Failed attempts are paid for too. Their bytes alone would be less than the budget, but their
    // pages have to be looked up as well.
    let long = 1 << 16;
    assert_eq!(text_of(&bench(long, long, 59)), "init");
    let fault = bench(long, long, 62).fire()[0].map(|report| report.fault);
    assert_eq!(fault, Some(Fault::Overrun));
}

#[test]
fn what_is_no_task_faults() {
    let fault = |at: u64| {
        let b = bench(&call("taskargs", &[at]), true, &Records::default());
        let report = b.fire()[0].unwrap();
        (report.fault, report.value)
    };
    assert_eq!(fault(0), (Fault::BadAddr, 0));
    assert_eq!(fault(BASE), (Fault::BadAddr, BASE));
}

#[test]
fn without_rights_over_the_kernel_there_is_no_file() {
    for (subr, args) in [
        ("getf", &[0][..]),
        ("d_path", &[BASE]),
        ("ddi_pathname", &[BASE, 0]),
        ("taskargs", &[BASE]),
    ] {
        let c = Consumer::new(dtrace_engine::Config {
            privileges: Privileges {
                kernel: false,
                kernel_memory: false,
                all_users: true,
                user_memory: true,
                destructive: false,
            },
            ..config()
        })
        .unwrap();
        let program = asm_with(&call(subr, args), int(8), &[]);
        let b = Bench::with(
            c,
            vec![clause(None, vec![action(Action::Difexpr, program)])],
        );
        let fault = b.fire()[0].map(|report| report.fault);
        assert_eq!(fault, Some(Fault::Kpriv), "{subr}");
    }
}
