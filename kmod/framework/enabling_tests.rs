// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of enabling: a refusal, for whatever reason, leaves nothing, and probes that appear later
//! are enabled or counted.

#[path = "../engine/tests/common/dof.rs"]
mod dof;
#[path = "publishing_tests.rs"]
mod publishing;
#[path = "retiring_tests.rs"]
mod retiring;
#[path = "timers_tests.rs"]
mod timers;

use crate::consumer::Consumer;
use crate::enabled::Enabled;
use crate::host_tests::table;
use crate::patience::{MADE, PERMITTED, PROVIDED, STEPS};
use crate::probe::ProbeRef;
use crate::provider::{Batch, Description, Failed, Provider};
use crate::quota::{Limits, Payer, Users};
use crate::retained::Wanted;
use crate::state::State;
use crate::sys::percpu::CpuGuard;
use crate::sys::rculist::Writer;
use crate::sys::rights::Rights;
use crate::table::LOOKED_AT;
use crate::text::{Refusal, Text};
use dof::Image;
use dtrace_engine::mem::alloc as engine_memory;
use dtrace_engine::{
    Activity, ClauseId, Config, Consumer as Engine, Ecb, Enabling, Features, Privileges,
};
use dtrace_uapi::glob;
use dtrace_uapi::ioctl::{ProbeDesc, ReplDesc, PRIV_KERNEL, PRIV_USER};
use dtrace_uapi::limits::RETAIN_MAX;
use dtrace_uapi::option::{Opt, UNSET};
use dtrace_uapi::types::ProviderAttributes;
use kernel::alloc::fail_after;
use kernel::error::{Error, Result, E2BIG, EACCES, EEXIST, EINVAL, ENODEV, ENOENT, ENOMEM, ENOSPC};
use kernel::sync::Arc;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use zerocopy::FromZeros;

const LIMITS: Limits = Limits {
    user: 10,
    consumer: 10,
    memory: 10,
};

/// A provider that records which probes are armed. Probes called `bad` cannot be armed, probes
/// called `made...` are made to order, and making `never` fails.
#[derive(Default)]
struct Fake {
    /// The privileges that its consumers need.
    needs: u32,
    armed: Mutex<BTreeSet<u32>>,
}

impl Provider for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn attributes(&self) -> ProviderAttributes {
        ProviderAttributes::new_zeroed()
    }

    fn privileges(&self) -> u32 {
        self.needs
    }

    fn provide(&self, desc: &Description<'_>, _: &Consumer, batch: &mut Batch<'_>) -> Result {
        match desc.name {
            name if name.starts_with(b"made") && batch.find(b"", b"", name).is_none() => {
                batch.create(b"", b"", name, 0).map(drop)
            }
            b"never" => {
                batch.create(b"", b"", b"half", 0)?;
                Err(ENODEV)
            }
            _ => Ok(()),
        }
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        let mut armed = self.armed.lock().unwrap();
        for probe in probes {
            if probe.names().name == b"bad" {
                failed.add(probe, EINVAL);
            } else {
                assert!(armed.insert(probe.id()), "{} was armed", probe.id());
            }
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        let mut armed = self.armed.lock().unwrap();
        for probe in probes {
            assert!(armed.remove(&probe.id()), "{} was not armed", probe.id());
        }
    }
}

/// A framework with the probes `fake:::one`, `two`, `three` and `bad`.
struct World {
    /// Never dropped, and neither is its table.
    state: ManuallyDrop<State>,
    fake: Arc<Fake>,
    index: u32,
    probes: Vec<ProbeRef>,
}

impl World {
    fn new() -> Self {
        Self::with(0)
    }

    /// As [`new`](Self::new), with probes that need these privileges.
    fn with(needs: u32) -> Self {
        let table = ManuallyDrop::into_inner(table());
        // SAFETY: the lists of this test are used by no other thread.
        let writer = unsafe { Writer::new() };
        let mut state = ManuallyDrop::new(State::new(table, writer));
        let fake = Arc::new(Fake {
            needs,
            ..Fake::default()
        });
        let index = state.add_provider(fake.clone()).unwrap();
        let mut this = Self {
            state,
            fake,
            index,
            probes: Vec::new(),
        };
        this.probes = this.create(&["one", "two", "three", "bad"]);
        this
    }

    fn create(&mut self, names: &[&str]) -> Vec<ProbeRef> {
        self.state
            .populate(self.index, |batch| {
                names
                    .iter()
                    .map(|name| batch.create(b"", b"", name.as_bytes(), 0))
                    .collect()
            })
            .unwrap()
    }

    fn consumer(&mut self) -> Arc<Consumer> {
        self.consumer_with(Privileges::ALL)
    }

    fn consumer_with(&mut self, privileges: Privileges) -> Arc<Consumer> {
        let payer = Users::new(LIMITS).payer(None).unwrap();
        self.consumer_of(privileges, None, payer)
    }

    fn consumer_of(
        &self,
        privileges: Privileges,
        rights: Option<Arc<Rights>>,
        payer: Payer,
    ) -> Arc<Consumer> {
        self.tracer_of(u32::MAX, privileges, rights, payer)
    }

    /// A consumer whose `ERROR` is the probe with this id.
    fn tracer_of(
        &self,
        error: u32,
        privileges: Privileges,
        rights: Option<Arc<Rights>>,
        payer: Payer,
    ) -> Arc<Consumer> {
        let engine = Engine::new(Config {
            ncpus: 1,
            privileges,
            features: Features::default(),
            begin: u32::MAX - 2,
            end: u32::MAX - 1,
            error,
            seed: 1,
            secret: 1,
            is_killed: || false,
        });
        Arc::new(Consumer::new(
            engine.unwrap(),
            self.probes[0],
            rights,
            payer,
        ))
    }

    fn enable(
        &mut self,
        consumer: &Arc<Consumer>,
        enabling: &Enabling,
    ) -> Result<(u32, String), Refusal> {
        let pending = consumer
            .engine
            .prepare(enabling.options(), enabling.clauses())?;
        let wanted = Wanted::new(enabling, &pending)?;
        let mut note = Text::new();
        let matched = self
            .state
            .enable(consumer, &wanted, || pending.commit(), &mut note)?;
        Ok((matched, words(note)))
    }

    /// Begins to trace, like `GO`.
    fn begin(&mut self, consumer: &Arc<Consumer>) {
        consumer.engine.go().unwrap();
        self.state.publish(consumer);
        consumer.engine.activate();
    }

    fn replicate(
        &mut self,
        consumer: &Arc<Consumer>,
        from: &str,
        to: &str,
    ) -> Result<u32, Refusal> {
        let repl = ReplDesc {
            matching: desc(from),
            create: desc(to),
        };
        self.state.replicate(consumer, &repl, &mut Text::new())
    }

    fn armed(&self) -> BTreeSet<u32> {
        self.fake.armed.lock().unwrap().clone()
    }

    /// Everything of `consumer` that can be observed.
    fn picture(&self, consumer: &Arc<Consumer>) -> impl PartialEq + std::fmt::Debug {
        let ecbs = self.probes.iter().map(|probe| {
            let entries = probe.enabled().iter(&CpuGuard);
            entries
                .flat_map(|e| {
                    ecbs(e)
                        .into_iter()
                        .map(|ecb| (Arc::ptr_eq(&e.consumer, consumer), ecb))
                })
                .collect::<Vec<_>>()
        });
        let enabled = (1..)
            .map_while(|epid| consumer.engine.eprobe(epid, |desc, _| *desc).ok())
            .collect::<Vec<_>>();
        let next: Option<ClauseId> = {
            let clauses = image(&["one"]);
            let pending = consumer.engine.prepare(&[], clauses.clauses());
            pending.unwrap_or_else(|r| panic!("{r}")).clause(0)
        };
        let option = consumer.engine.option(Opt::Bufsize);
        let missed = consumer.missed();
        (
            ecbs.collect::<Vec<_>>(),
            self.armed(),
            enabled,
            next,
            option,
            missed,
        )
    }
}

fn words(text: Text) -> String {
    let reason = text.to_reason().text;
    let end = reason.iter().position(|b| *b == 0).unwrap();
    String::from_utf8(reason[..end].to_vec()).unwrap()
}

fn told(refusal: Refusal) -> (Error, String) {
    (refusal.errno, words(refusal.into_text()))
}

fn desc(name: &str) -> ProbeDesc {
    let mut desc = ProbeDesc::new_zeroed();
    desc.provider[..4].copy_from_slice(b"fake");
    desc.name[..name.len()].copy_from_slice(name.as_bytes());
    desc
}

/// An enabling with a clause for each `fake:::name`, and an option.
fn image(names: &[&str]) -> Enabling {
    let mut image = Image::default();
    image.option(Opt::Bufsize, 8192);
    for name in names {
        image.clause("fake", name, None, &[]);
    }
    Enabling::parse(&image.write()).unwrap_or_else(|r| panic!("{r}"))
}

#[test]
fn clauses_become_ecbs_and_go_with_their_consumer() {
    let mut w = World::new();
    let (a, b) = (w.consumer(), w.consumer());
    // The glob also matches the probe that is made for another clause of the same request.
    let (matched, note) = w.enable(&a, &image(&["*", "made", "one"])).ok().unwrap();
    assert_eq!(matched, 6);
    assert!(note.starts_with("1 probe could not be enabled, among them fake:::bad"));
    assert_eq!(w.armed().len(), 4);
    assert_eq!(
        w.enable(&b, &image(&["t*"])).ok().unwrap(),
        (2, String::new())
    );
    assert_eq!(a.engine.option(Opt::Bufsize), 8192);
    drop(w.state.withdraw(&a));
    assert_eq!(w.armed().len(), 2);
    drop(w.state.withdraw(&b));
    assert!(w.armed().is_empty());
    assert!(w.state.withdraw(&b).is_none());
}

#[test]
fn what_is_made_for_one_is_others_by_a_pattern_without_a_number() {
    let mut w = World::new();
    let consumers: Vec<_> = ["fake", "fak*", "f*7", "fake7"]
        .map(|provider| {
            let mut image = Image::default();
            image.clause(provider, "later", None, &[]);
            let enabling = Enabling::parse(&image.write()).unwrap_or_else(|r| panic!("{r}"));
            let consumer = w.consumer();
            w.enable(&consumer, &enabling).ok().unwrap();
            consumer
        })
        .into();
    let (index, own) = (w.index, &consumers[0]);
    let create = |batch: &mut Batch<'_>| batch.create(b"", b"", b"later", 0);
    let probe = w.state.populate_for(index, Some(own), create).unwrap();
    consumers.iter().for_each(|consumer| w.begin(consumer));
    let entries = probe.enabled().iter(&CpuGuard);
    let has: Vec<_> = entries
        .map(|e| consumers.iter().position(|c| Arc::ptr_eq(c, &e.consumer)))
        .collect();
    assert_eq!(has.len(), 2, "{has:?}");
    assert!(has.contains(&Some(0)) && has.contains(&Some(1)), "{has:?}");
    consumers
        .iter()
        .for_each(|consumer| drop(w.state.withdraw(consumer)));
}

/// A consumer of a member.
fn member(w: &World, users: &mut Users) -> Arc<Consumer> {
    let weak = Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    };
    let payer = users.payer(Some(1000)).unwrap();
    w.consumer_of(weak, None, payer)
}

/// Other tasks wait for the mutex during a member's call, so the call may not make many probes.
#[test]
fn a_user_has_few_probes_made_in_a_call() {
    let mut w = World::with(PRIV_USER);
    let mut users = Users::new(LIMITS);
    let most = (STEPS / (MADE + PROVIDED)) as usize;
    let names: Vec<String> = (0..most + 9).map(|n| format!("made{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let own = member(&w, &mut users);
    w.state.begin();
    let few = w.enable(&own, &image(&names[..8]));
    assert_eq!(few.unwrap_or_else(|r| panic!("{:?}", told(r))).0, 8);
    w.state.begin();
    let (errno, text) = told(w.enable(&own, &image(&names)).err().unwrap());
    assert_eq!(errno, E2BIG);
    assert_eq!(text, "the descriptions take too long to match");
    w.state.begin();
    let root = w.consumer();
    assert_eq!(
        w.enable(&root, &image(&names)).ok().unwrap().0 as usize,
        names.len()
    );
    [own, root]
        .iter()
        .for_each(|one| drop(w.state.withdraw(one)));
}

/// They also wait while a new probe is compared with the descriptions of a member's consumers.
#[test]
fn a_users_consumers_have_little_compared_with_what_is_new() {
    let mut w = World::with(PRIV_USER);
    let mut users = Users::new(LIMITS);
    let glob = "*a*a*a*a*a*b";
    let name = |n: usize| format!("{n}{}", "a".repeat(40));
    let mut each = PERMITTED + 2 * LOOKED_AT;
    for glob in [glob, "*7*"] {
        glob::matches_in(glob.as_bytes(), name(10_000).as_bytes(), &mut each);
    }
    let [one, other] = [(); 2].map(|()| {
        let consumer = member(&w, &mut users);
        w.enable(&consumer, &image(&[glob, "*7*"])).ok().unwrap();
        w.begin(&consumer);
        consumer
    });
    let root = w.consumer();
    w.enable(&root, &image(&[glob, "*7*"])).ok().unwrap();
    // The steps are enough for one consumer, but not for two.
    let most = (STEPS * 3 / 4 / each) as usize;
    let names: Vec<String> = (0..most).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let missed = || [&one, &other, &root].map(|consumer| consumer.missed());
    w.state.begin();
    w.create(&names[..10]);
    assert_eq!(missed(), [0; 3]);
    w.state.begin();
    w.create(&names[10..]);
    assert_eq!(missed(), [0, 1, 0]);
    [one, other, root]
        .iter()
        .for_each(|one| drop(w.state.withdraw(one)));
}

/// Firings that are not executed where RCU is not watching are reported to consumers that have
/// probes in the kernel's code, from their first such probe on.
#[test]
fn who_has_probes_in_the_kernel_is_known() {
    let mut apart = World::with(PRIV_USER);
    let elsewhere = apart.consumer();
    apart.enable(&elsewhere, &image(&["*"])).ok().unwrap();
    assert!(!elsewhere.is_in_kernel());

    let mut w = World::with(PRIV_KERNEL);
    let [now, later, never] = [(); 3].map(|()| w.consumer());
    w.enable(&now, &image(&["one"])).ok().unwrap();
    w.enable(&later, &image(&["four"])).ok().unwrap();
    w.enable(&never, &image(&["five"])).ok().unwrap();
    let known = [&now, &later, &never].map(|consumer| consumer.is_in_kernel());
    assert_eq!(known, [true, false, false]);
    w.create(&["four"]);
    assert_eq!((later.is_in_kernel(), never.is_in_kernel()), (true, false));
}

#[test]
fn probes_of_the_kernel_are_for_those_who_have_rights_over_it() {
    let weak = Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    };
    for (needs, permitted) in [(PRIV_KERNEL, false), (PRIV_USER, true), (0, true)] {
        let mut w = World::with(needs);
        let consumer = w.consumer_with(weak);
        let other = w.consumer();
        let one = w.enable(&consumer, &image(&["one"]));
        // A description that matches nothing is never refused, and is retained.
        w.enable(&consumer, &image(&["later"])).ok().unwrap();
        if permitted {
            assert_eq!(one.ok().unwrap().0, 1);
        } else {
            let text = "the probes need rights over the kernel".into();
            assert_eq!(told(one.err().unwrap()), (EACCES, text));
        }
        assert_eq!(w.armed().len(), usize::from(permitted));
        w.create(&["later"]);
        assert_eq!(w.armed().len(), 2 * usize::from(permitted));
        assert_eq!(consumer.missed(), 0);
        assert_eq!(w.enable(&other, &image(&["one"])).ok().unwrap().0, 1);
    }
}

/// Repeats an enabling with more memory each time until it succeeds. Before that, each attempt
/// changes nothing.
fn with_ever_more_memory(limit: impl Fn(Option<usize>)) -> usize {
    let mut w = World::new();
    let consumer = w.consumer();
    // Makes the names and the room for EPIDs, which stay after an attempt.
    w.enable(&consumer, &image(&["one"])).ok().unwrap();
    let enabling = image(&["t*", "made", "one"]);
    let before = w.picture(&consumer);
    for n in 0.. {
        limit(Some(n));
        let result = w.enable(&consumer, &enabling);
        limit(None);
        match result {
            Ok((matched, _)) => {
                assert_eq!(matched, 4);
                assert_eq!(w.armed().len(), 4);
                return n;
            }
            Err(refusal) => assert_eq!(refusal.errno, ENOMEM),
        }
        assert_eq!(w.picture(&consumer), before, "after {n} allocations");
    }
    unreachable!()
}

#[test]
fn want_of_memory_leaves_nothing() {
    assert!(with_ever_more_memory(fail_after) > 8);
    assert!(with_ever_more_memory(engine_memory::fail_after) > 4);
}

#[test]
fn a_refusal_in_the_middle_leaves_nothing() {
    let mut w = World::new();
    let consumer = w.consumer();
    let before = w.picture(&consumer);
    let refusal = w
        .enable(&consumer, &image(&["one", "never", "two"]))
        .unwrap_err();
    assert_eq!(refusal.errno, ENODEV);
    assert_eq!(w.picture(&consumer), before);
    assert_eq!(consumer.engine.option(Opt::Bufsize), UNSET);
    // The probe that was made before the refusal is gone as well.
    assert_eq!(w.enable(&consumer, &image(&["half"])).ok().unwrap().0, 0);
    let refusal = w.replicate(&consumer, "one", "two").unwrap_err();
    assert_eq!(
        told(refusal),
        (ENOENT, "no enabling has this description".into())
    );
}

#[test]
fn replicas_are_enablings_of_their_own() {
    let mut w = World::new();
    let consumer = w.consumer();
    w.enable(&consumer, &image(&["one", "one"])).ok().unwrap();
    assert_eq!(w.replicate(&consumer, "one", "two").ok().unwrap(), 2);
    w.begin(&consumer);
    assert_eq!(walked(w.probes[1]), 2);
    let clauses: Vec<_> = [1, 3]
        .map(|epid| consumer.engine.eprobe(epid, |d, _| d.size).unwrap())
        .into();
    assert_eq!(clauses, [12, 12]);
    // Doubling reaches a limit.
    let doubled = (0..).find_map(|n| w.replicate(&consumer, "one", "one").err().map(|r| (n, r)));
    let (rounds, refusal) = doubled.unwrap();
    assert_eq!(
        told(refusal),
        (ENOSPC, "too many retained enablings".into())
    );
    // The replica for "two" is an enabling too, so 2^10 do not fit.
    assert_eq!(1 << (rounds + 1), RETAIN_MAX);
}

#[test]
fn enablings_are_limited() {
    let mut w = World::new();
    let consumer = w.consumer();
    let enabling = image(&["nonesuch"]);
    for _ in 0..RETAIN_MAX {
        w.enable(&consumer, &enabling).ok().unwrap();
    }
    let before = w.picture(&consumer);
    let refusal = w.enable(&consumer, &enabling).unwrap_err();
    assert_eq!(
        told(refusal),
        (ENOSPC, "too many retained enablings".into())
    );
    assert_eq!(w.picture(&consumer), before);
}

#[test]
fn descriptions_are_limited() {
    let mut w = World::new();
    let consumer = w.consumer();
    let enabling = image(&["nonesuch"; 16_000]);
    for _ in 0..4 {
        w.enable(&consumer, &enabling).ok().unwrap();
    }
    let before = w.picture(&consumer);
    for refusal in [
        w.enable(&consumer, &enabling).map(drop).unwrap_err(),
        w.replicate(&consumer, "nonesuch", "one")
            .map(drop)
            .unwrap_err(),
    ] {
        let many = "too many retained descriptions".to_owned();
        assert_eq!(told(refusal), (ENOSPC, many));
    }
    assert_eq!(w.picture(&consumer), before);
}

/// Matching makes other tasks wait for the mutex. So a consumer without rights over the kernel may
/// have few descriptions that take long to match.
#[test]
fn what_takes_long_to_match_is_refused() {
    let mut w = World::with(PRIV_USER);
    let names: Vec<String> = (0..2000).map(|n| format!("{:a<40}{n}", "")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    w.create(&names);
    let weak = w.consumer_with(Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    });
    let strong = w.consumer();
    let few = image(&["*aaaaaaaab"; 4]);
    let many = image(&["*aaaaaaaab"; 200]);
    assert_eq!(w.enable(&weak, &few).ok().unwrap().0, 0);
    let before = w.picture(&weak);
    let refused = w.enable(&weak, &many).err().unwrap();
    let long = "the descriptions take too long to match".to_owned();
    assert_eq!(told(refused), (E2BIG, long));
    assert_eq!(w.picture(&weak), before);
    assert_eq!(w.enable(&strong, &many).ok().unwrap().0, 0);
}

/// Its descriptions do not delay a call that makes probes, either: it goes without these probes,
/// and its status counts them.
#[test]
fn probes_that_take_long_to_match_are_missed() {
    let mut w = World::with(PRIV_USER);
    let weak = w.consumer_with(Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    });
    let strong = w.consumer();
    let enabling = image(&["*aaaaaaaab"; 2_000]);
    for consumer in [&weak, &strong] {
        w.enable(consumer, &enabling).ok().unwrap();
    }
    let names: Vec<String> = (0..40).map(|n| format!("{:a<50}{n}", "")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    w.create(&names[..2]);
    assert_eq!((weak.missed(), strong.missed()), (0, 0));
    w.create(&names[2..]);
    assert_eq!((weak.missed(), strong.missed()), (1, 0));
}

#[test]
fn ecbs_are_limited_and_those_of_a_probe_in_order() {
    let clauses = image(&["*"; 10_000]);
    let mut w = World::with(PRIV_USER);
    w.create(&["four", "five", "six"]);
    let weak = w.consumer_with(Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    });
    let refused = w.enable(&weak, &clauses).err().unwrap();
    let many = "too many enabled probes".to_owned();
    assert_eq!(told(refused), (ENOSPC, many));
    let strong = w.consumer();
    assert_eq!(w.enable(&strong, &clauses).ok().unwrap().0, 60_000);
    w.begin(&strong);
    let entries = w.probes[0].enabled().iter(&CpuGuard);
    let epids: Vec<_> = entries.flat_map(ecbs).map(|e| e.epid).collect();
    assert!(epids.len() == 10_000 && epids.is_sorted());
    drop(w.state.withdraw(&weak));
    drop(w.state.withdraw(&strong));
    assert!(w.armed().is_empty());
}

#[test]
fn probes_that_appear_are_enabled_or_counted() {
    let mut w = World::new();
    let (all, some) = (w.consumer(), w.consumer());
    w.enable(&all, &image(&["*"])).ok().unwrap();
    w.enable(&some, &image(&["late"])).ok().unwrap();
    w.begin(&all);
    w.begin(&some);
    let late = w.create(&["late"])[0];
    assert!(w.armed().contains(&late.id()));
    assert_eq!(walked(late), 2);
    // A second probe with this name cannot be armed. Its consumer is notified.
    w.create(&["bad"]);
    assert_eq!((all.missed(), some.missed()), (1, 0));
    w.state.remove(w.index, &[late]);
    assert!(!w.armed().contains(&late.id()));
    assert_eq!(walked(late), 0);

    // The probe comes back while there is no memory for its ECBs.
    let (index, state) = (w.index, &mut w.state);
    state
        .populate(index, |batch| {
            batch.create(b"", b"", b"late", 0)?;
            fail_after(Some(0));
            Ok(())
        })
        .unwrap();
    fail_after(None);
    assert_eq!((all.missed(), some.missed()), (2, 1));
    assert_eq!(walked(late), 0);
    assert!(!w.armed().contains(&late.id()));
}

#[test]
fn probes_that_appear_are_not_enabled_beyond_the_limit() {
    let mut w = World::with(PRIV_USER);
    let weak = w.consumer_with(Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    });
    w.enable(&weak, &image(&["late*"; 16_000])).ok().unwrap();
    w.begin(&weak);
    let late = w.create(&["late1", "late2", "late3", "late4"]);
    assert_eq!(weak.missed(), 0);
    assert_eq!((walked(late[3]), passed(late[3])), (16_000, 1));
    let more = w.create(&["late5"])[0];
    assert_eq!((weak.missed(), walked(more)), (16_000, 0));
}

#[test]
fn probes_that_cannot_appear_are_counted_by_who_describes_their_module() {
    let mut w = World::new();
    let (all, none) = (w.consumer(), w.consumer());
    w.enable(&all, &image(&["*", "one"])).ok().unwrap();
    w.state.miss(w.index, b"module");
    assert_eq!((all.missed(), none.missed()), (2, 0));
    // There is no provider with this index.
    w.state.miss(w.index + 1, b"module");
    assert_eq!(all.missed(), 2);
}

/// All ECBs of a consumer at a probe, in order.
fn ecbs(at: &Enabled) -> Vec<Ecb> {
    let mut all = Vec::new();
    let end = at.find_map(|ecb| {
        all.push(ecb);
        None::<()>
    });
    assert!(end.is_none());
    all
}

/// Number of ECBs at a probe.
fn walked(probe: ProbeRef) -> usize {
    let nodes = probe.enabled().iter(&CpuGuard);
    let counted = |at: &Enabled| {
        assert_eq!(at.count() as usize, ecbs(at).len());
        ecbs(at).len()
    };
    nodes.map(counted).sum()
}

/// Number of consumers that a firing passes.
fn passed(probe: ProbeRef) -> usize {
    probe.enabled().iter(&CpuGuard).count()
}

/// Probes that fire for one consumer at a time have no list, so no firing passes another consumer's
/// ECBs. They still count as wanted.
#[test]
fn a_consumers_own_probes_are_on_no_list() {
    let mut w = World::new();
    let one = w.probes[0];
    let payers = [(); 2].map(|()| Users::new(LIMITS).payer(None).unwrap());
    let [a, b] = payers.map(|payer| w.tracer_of(one.id(), Privileges::ALL, None, payer));
    let enabling = image(&["one", "two", "one"]);
    for consumer in [&a, &b] {
        assert_eq!(w.enable(consumer, &enabling).ok().unwrap().0, 3);
        w.begin(consumer);
    }
    assert_eq!((walked(one), walked(w.probes[1])), (0, 2));
    assert_eq!(a.engine.own(one.id()).count(), 2);
    drop(w.state.withdraw(&a));
    assert!(one.is_wanted() && w.armed().contains(&one.id()));
    drop(w.state.withdraw(&b));
    assert!(!one.is_wanted() && w.armed().is_empty());
}

#[test]
fn the_deadman_kills_what_starves_or_is_left_alone() {
    const SECOND: u64 = 1_000_000_000;
    let (timeout, user) = (10 * SECOND, 30 * SECOND);
    let mut w = World::new();
    // The first gets control calls every 5 s, the second for 20 s only. The beats of the third end
    // after 20 s. The fourth has stopped.
    let [asked, left, starving, stopped] = [(); 4].map(|()| w.consumer());
    for consumer in [&asked, &left, &starving, &stopped] {
        consumer.engine.go().unwrap();
        consumer.engine.activate();
        consumer.begin(0);
    }
    stopped.engine.stop();
    let mut killed = [0; 4];
    for second in 1..100 {
        let now = second * SECOND;
        if second % 5 == 0 {
            asked.ask(now);
            starving.ask(now);
            if second <= 20 {
                left.ask(now);
            }
        }
        for (n, consumer) in [&asked, &left, &starving, &stopped].into_iter().enumerate() {
            if second <= 20 || n < 2 {
                consumer.beat(now, user);
            }
            consumer.watch(now, SECOND, timeout, |_| 0);
            if killed[n] == 0 && consumer.engine.activity() == Activity::Killed {
                killed[n] = second;
            }
        }
    }
    // The last beat of the second one counted at 49 s.
    assert_eq!(killed, [0, 59, 30, 0]);
    assert_eq!(asked.engine.activity(), Activity::Active);
    // The machine is stopped for an hour.
    asked.watch(3600 * SECOND, SECOND, timeout, |_| 0);
    assert_eq!(asked.engine.activity(), Activity::Active);
    for second in 3601..3606 {
        asked.watch(second * SECOND, SECOND, timeout, |_| 0);
    }
    assert_eq!(asked.engine.activity(), Activity::Active);
    asked.watch(3606 * SECOND, SECOND, timeout, |_| 0);
    assert_eq!(asked.engine.activity(), Activity::Killed);
    // One CPU shows no life, but the machine does.
    let alone = w.consumer();
    alone.engine.go().unwrap();
    alone.engine.activate();
    alone.begin(0);
    let mut without = 0;
    for second in 1..=timeout / SECOND + 1 {
        assert_eq!(alone.engine.activity(), Activity::Active);
        alone.beat(second * SECOND, user);
        alone.watch(second * SECOND, SECOND, timeout, |since| {
            without += since;
            without
        });
    }
    assert_eq!(alone.engine.activity(), Activity::Killed);
}

/// A provider that comes back gets its old index, and its probes their old ids. Meanwhile no other
/// provider can take its name.
#[test]
fn a_provider_comes_again() {
    let mut world = World::new();
    let again = world.state.add_provider(world.fake.clone()).unwrap_err();
    assert_eq!(again.to_errno(), EEXIST.to_errno());
    let ids: Vec<_> = world.probes.iter().map(|probe| probe.id()).collect();
    world.state.remove_provider(world.index);
    assert!(world.state.provider(b"fake", true).is_none());
    assert!(world.probes.iter().all(|probe| !probe.is_live()));
    let fake = Arc::new(Fake::default());
    assert_eq!(world.state.add_provider(fake).unwrap(), world.index);
    assert!(world.state.provider(b"fake", true).is_some());
    let back = world.create(&["one", "two", "three", "bad"]);
    assert_eq!(back.iter().map(|probe| probe.id()).collect::<Vec<_>>(), ids);
}
