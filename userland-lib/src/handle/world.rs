// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The running kernel as the compiler sees it: probes from the device, types from BTF, symbols from
//! kallsyms, processes from `/proc`.
//!
//! Everything is read lazily. A program without kernel types never opens BTF, and one without
//! symbols never reads kallsyms, because these two account for most of a tracer's start-up time.

use super::placed::Placed;
use dtrace_compiler::world::{ArgInfo, ProbeInfo, ProbeSource, Symbol, SymbolSource};
use dtrace_consumer::device::{fill, text, Device};
use dtrace_files::ctf::Ctf;
use dtrace_files::dwarf::{self, DebugInfo};
use dtrace_files::outside;
use dtrace_files::text::plain;
use dtrace_machine::proc;
use dtrace_machine::symbols::KernelSymbols;
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::pid::{self, Code, Module, Modules, Object, Place, Request};
use dtrace_objects::processes::{ProcessSource, Unmade};
use dtrace_objects::usdt::{self, Note, Point, Registration};
use dtrace_types::btf::{Btf, KernelBtf, Proto, TypeId};
use dtrace_types::{Ty, TypeSource, Types};
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::types::{ProbeId, ProviderAttributes};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use zerocopy::FromZeros;

/// A file's identity: device, inode number, and the time of its last change (seconds, nanoseconds).
type FileId = (u64, u64, i64, i64);

/// The USDT notes of files.
type NotesOfFiles = HashMap<FileId, Rc<[Note]>>;

/// Number of files whose notes are cached. When it is reached, the cache is cleared.
const FILES_MAX: usize = 16_384;

/// The probes, types and symbols behind a device.
pub struct KernelWorld<'d> {
    device: &'d dyn Device,
    symbols: Rc<KernelSymbols>,
    btf: KernelBtf,
    notes: RefCell<NotesOfFiles>,
    modules: Modules,
    placed: RefCell<Placed>,
}

impl<'d> KernelWorld<'d> {
    /// Uses the running kernel, reached through `device`.
    pub fn new(device: &'d dyn Device) -> Self {
        Self {
            device,
            symbols: Rc::default(),
            btf: KernelBtf::default(),
            notes: RefCell::default(),
            modules: Modules::default(),
            placed: RefCell::default(),
        }
    }

    /// Uses a kernel whose symbols and BTF directory are given.
    pub fn with(device: &'d dyn Device, symbols: KernelSymbols, btf: impl Into<PathBuf>) -> Self {
        Self {
            device,
            symbols: Rc::new(symbols),
            btf: KernelBtf::new(btf),
            notes: RefCell::default(),
            modules: Modules::default(),
            placed: RefCell::default(),
        }
    }

    /// The device.
    pub fn device(&self) -> &'d dyn Device {
        self.device
    }

    /// Limits the number of places of USDT probes at a time (option `nusdtprobes`). `None`: no
    /// limit.
    pub fn limit_own(&self, most: Option<u64>) {
        self.placed.borrow_mut().limit(most);
    }

    /// The kernel's symbols. Rendering shares them.
    pub fn symbols(&self) -> &Rc<KernelSymbols> {
        &self.symbols
    }
}

impl KernelWorld<'_> {
    /// Returns the types of a probe's arguments in C syntax. They come from the provider, the
    /// file's notes (USDT), the process's debug information (`pid` provider), or else from the
    /// prototype of the kernel function or tracepoint.
    pub fn arguments(&self, probe: &ProbeDesc) -> io::Result<Vec<String>> {
        let mut told = Vec::new();
        let index = |told: &Vec<String>| u32::try_from(told.len()).unwrap_or(u32::MAX);
        while let Some(argument) = self.device.argument(probe.id, index(&told))? {
            let (native, translated) = (text(&argument.native), text(&argument.xlate));
            told.push(if translated.is_empty() {
                native
            } else {
                translated
            });
        }
        for (ty, (_, seen)) in told.iter_mut().zip(self.own_types(probe)) {
            *ty = seen;
        }
        if let Ok(Some(pid)) = pid::process_of(&text(&probe.provider)) {
            told = self.process_arguments(pid, probe);
        }
        if told.is_empty() {
            told = prototype(&self.btf, probe).unwrap_or_default();
        }
        Ok(told)
    }
}

impl KernelWorld<'_> {
    /// Finds the note of a USDT probe in the process that `provider` names, in its files and then
    /// in its registrations. An empty module or name matches any. Is-enabled sites are ignored.
    fn own_note(&self, provider: &str, module: &str, name: &str) -> Option<Note> {
        let (own, pid) = usdt::process_of(provider)?;
        let is_meant = |wanted: &str, name: &str| wanted.is_empty() || wanted == name;
        let find = |notes: &[Note]| {
            let mut notes = notes.iter().filter(|note| !note.asks);
            let note = notes.find(|note| note.provider == own && is_meant(name, &note.name));
            note.cloned()
        };
        let objects = self.objects(pid).ok()?;
        let objects = objects.iter().filter(|o| is_meant(module, &o.name));
        let mut notes = objects.filter_map(|object| self.notes(object).ok());
        let in_file = notes.find_map(|notes| find(&notes));
        in_file.or_else(|| {
            let registered = self.registered(pid).ok()?;
            registered.iter().find_map(|one| find(&one.notes))
        })
    }

    /// The types of a USDT probe's arguments where its file says them: each as the program passes
    /// it, and as a consumer sees it.
    fn own_types(&self, probe: &ProbeDesc) -> Vec<(String, String)> {
        let [provider, module, name] = [&probe.provider[..], &probe.module, &probe.name].map(text);
        let note = self.own_note(&provider, &module, &name);
        note.map_or(Vec::new(), |note| note.types)
    }

    /// The types of the arguments of a probe in a process, as far as debug information has them.
    fn process_arguments(&self, pid: u32, probe: &ProbeDesc) -> Vec<String> {
        let mut types = Types::new(self);
        let (module, func) = (text(&probe.module), text(&probe.func));
        let Ok(Some(prototype)) = types.process_function(pid, &module, &func) else {
            return Vec::new();
        };
        let arguments = match text(&probe.name).as_str() {
            "entry" => prototype.params,
            "return" => vec![Ty::UINT64_T, prototype.ret],
            _ => Vec::new(),
        };
        let arguments = arguments.into_iter().filter(|ty| *ty != Ty::VOID);
        arguments.map(|ty| types.name(ty)).collect()
    }
}

/// Converts `pattern` to the device's form. `None` if a part is too long for any probe.
///
/// The device searches after `id`, so it becomes one less than the wanted ID.
pub fn probe_desc(pattern: &ProbePattern) -> Option<ProbeDesc> {
    Some(ProbeDesc {
        id: pattern.id.saturating_sub(1),
        provider: fill(&pattern.provider)?,
        module: fill(&pattern.module)?,
        func: fill(&pattern.func)?,
        name: fill(&pattern.name)?,
    })
}

/// Iterates over the probes that match `pattern`, in the order of their IDs.
pub fn probes<'d>(
    device: &'d dyn Device,
    pattern: &ProbePattern,
) -> impl Iterator<Item = ProbeDesc> + 'd {
    let wanted = pattern.id;
    let mut next = match wanted {
        0 => probe_desc(pattern),
        id => {
            let mut any = ProbeDesc::new_zeroed();
            any.id = id - 1;
            Some(any)
        }
    };
    std::iter::from_fn(move || {
        let found = device.next_probe(next.as_ref()?).ok().flatten()?;
        if wanted != 0 {
            next = None;
            return Some(found).filter(|found| found.id == wanted);
        }
        // Stop if the device does not advance, because the loop would never end.
        let pattern = next.as_mut()?;
        if found.id <= pattern.id {
            next = None;
            return None;
        }
        pattern.id = found.id;
        Some(found)
    })
}

impl ProbeSource for KernelWorld<'_> {
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo> {
        let info = |desc: ProbeDesc| ProbeInfo {
            id: desc.id,
            provider: text(&desc.provider),
            module: text(&desc.module),
            func: text(&desc.func),
            name: text(&desc.name),
        };
        probes(self.device, pattern).take(limit).map(info).collect()
    }

    fn attributes(&self, provider: &str) -> Option<ProviderAttributes> {
        let known = self.device.provider(provider).ok().flatten()?;
        let own = self.own_note(provider, "", "");
        Some(own.map_or(known.attr, |note| note.attributes.unwrap_or(usdt::UNSAID)))
    }

    fn argument(&self, id: ProbeId, index: u32) -> Option<ArgInfo> {
        let pattern = ProbePattern {
            id,
            ..ProbePattern::default()
        };
        let probe = probes(self.device, &pattern).next()?;
        // The kernel knows no arguments of an is-enabled site, and a description may match such
        // sites too. So the file's types come first.
        let types = self.own_types(&probe);
        if let Some((native, seen)) = types.get(index as usize) {
            return Some(ArgInfo {
                mapping: index,
                native: native.clone(),
                translated: seen.clone(),
            });
        }
        let desc = self.device.argument(id, index).ok().flatten()?;
        Some(ArgInfo {
            mapping: u32::try_from(desc.mapping).ok()?,
            native: text(&desc.native),
            translated: text(&desc.xlate),
        })
    }
}

impl TypeSource for KernelWorld<'_> {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        TypeSource::btf(&self.btf, module)
    }

    fn modules(&self) -> Vec<String> {
        self.btf.modules()
    }

    fn process_module(&self, pid: u32, module: &str) -> Result<Rc<Module>, dwarf::Error> {
        self.modules.get(self, pid, module)
    }
}

impl SymbolSource for KernelWorld<'_> {
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol> {
        let symbol = self.symbols.by_name(module, name)?;
        Some(Symbol {
            address: symbol.address,
            module: symbol.module,
        })
    }
}

impl ProcessSource for KernelWorld<'_> {
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
        proc::objects(pid)
    }

    fn bare(&self, pid: u32, name: &str) -> Option<Object> {
        proc::bare(pid, name)
    }

    fn code(&self, object: &Object) -> io::Result<Code> {
        proc::code(object)
    }

    fn notes(&self, object: &Object) -> io::Result<Rc<[Note]>> {
        // The path may lead to another file at any time, so identify and read the same open file.
        let opened = outside::open(&object.file)?;
        let metadata = opened.metadata()?;
        let file = (
            metadata.dev(),
            metadata.ino(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        );
        if let Some(known) = self.notes.borrow().get(&file) {
            return Ok(known.clone());
        }
        let notes: Rc<[Note]> = usdt::read(&opened)?.into();
        let mut known = self.notes.borrow_mut();
        if known.len() >= FILES_MAX {
            known.clear();
        }
        known.insert(file, notes.clone());
        Ok(notes)
    }

    fn registered(&self, pid: u32) -> io::Result<Rc<[Registration]>> {
        let mut all: Vec<Registration> = Vec::new();
        let mut last = 0;
        while let Some((head, image)) = self.device.registered(pid, last)? {
            // Stop if the device does not advance, because the loop would never end.
            if head.generation <= last {
                break;
            }
            last = head.generation;
            all.push(Registration::new(
                last,
                &text(&head.module),
                head.addr,
                &image,
            ));
        }
        Ok(all.into())
    }

    fn make_own(&self, pid: u32, points: &[Point]) -> Result<(), Unmade> {
        let files = |pid| {
            let objects = self.objects(pid).unwrap_or_default();
            objects.into_iter().map(|object| object.path).collect()
        };
        let placed = self.placed.borrow_mut().add(pid, points, files);
        placed.map_err(|why| Unmade {
            at: None,
            why,
            is_denied: false,
            is_limit: true,
        })?;
        let made = self.device.make_probes(pid, &Request::of_points(points));
        made.map_err(|(_, error)| self.unmade(None, &error))
    }

    fn debug(&self, object: &Object) -> Result<Rc<DebugInfo>, dwarf::Error> {
        self.modules.debug(object)
    }

    fn ctf(&self, object: &Object, apart: bool) -> Option<Rc<Ctf>> {
        self.modules.ctf(object, apart)
    }

    fn make(&self, pid: u32, places: &[Place]) -> Result<(), Unmade> {
        let mut first = 0;
        for part in pid::parts(places) {
            let request = Request::new(part);
            let made = self.device.make_probes(pid, &request);
            made.map_err(|(site, error)| {
                let at = site.and_then(|site| request.place_of(site));
                self.unmade(Some(first + at.unwrap_or(0)), &error)
            })?;
            first += part.len();
        }
        Ok(())
    }
}

impl KernelWorld<'_> {
    /// Turns the refusal of a request for probes into its reason.
    fn unmade(&self, at: Option<usize>, error: &io::Error) -> Unmade {
        let why = match self.device.reason() {
            reason if reason.is_empty() => plain(error),
            reason => reason,
        };
        Unmade {
            at,
            why,
            is_denied: error.raw_os_error() == Some(nix::libc::EPERM),
            is_limit: false,
        }
    }
}

/// The types of the arguments of a kernel function's or tracepoint's probe, from BTF.
fn prototype(btf: &KernelBtf, probe: &ProbeDesc) -> Option<Vec<String>> {
    let (module, func, name) = (text(&probe.module), text(&probe.func), text(&probe.name));
    let provider = text(&probe.provider);
    // The module of an `sdt` probe is the tracepoint's subsystem, not the module that defines it.
    let module = match provider.as_str() {
        "sdt" => dtrace_types::VMLINUX,
        _ => &module,
    };
    let btf = btf.module(module).ok()??;
    let params = |proto: Proto<'_>| proto.params().map(|p| btf.text(p.ty).ok()).collect();
    match (provider.as_str(), name.as_str()) {
        ("sdt", name) => params(btf.tracepoint(name).ok()??),
        ("fbt", "entry") => params(btf.function(&func).ok()??.proto),
        ("fbt", "return") => match btf.function(&func).ok()??.proto.ret {
            TypeId::VOID => Some(vec!["uintptr_t".to_owned()]),
            ret => Some(vec!["uintptr_t".to_owned(), btf.text(ret).ok()?]),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_types::btf::fixture;

    #[test]
    fn functions_and_tracepoints_have_prototypes() {
        let directory = std::env::temp_dir().join(format!("dtrace-proto-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("vmlinux"), fixture::kernel().bytes()).unwrap();
        let btf = KernelBtf::new(&directory);
        let arguments = |provider, module, func, name| {
            let desc = ProbeDesc {
                id: 1,
                provider: fill(provider).unwrap(),
                module: fill(module).unwrap(),
                func: fill(func).unwrap(),
                name: fill(name).unwrap(),
            };
            prototype(&btf, &desc).map(|types| types.join(", "))
        };
        let fbt = |func, name| arguments("fbt", "vmlinux", func, name);
        let task = "struct task_struct *";
        assert_eq!(fbt("wake_up_process", "entry").unwrap(), task);
        assert_eq!(fbt("wake_up_process", "return").unwrap(), "uintptr_t, int");
        assert_eq!(fbt("schedule", "entry").unwrap(), "");
        assert_eq!(fbt("schedule", "return").unwrap(), "uintptr_t");
        assert_eq!(fbt("nothing", "entry"), None);
        assert_eq!(arguments("fbt", "absent", "schedule", "entry"), None);
        let switch = arguments("sdt", "sched", "", "sched_switch").unwrap();
        assert_eq!(switch, format!("_Bool, {task}, {task}"));
        assert_eq!(arguments("syscall", "vmlinux", "read", "entry"), None);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
