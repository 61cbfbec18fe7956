// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of probes that are timers, of which a user has few.

use super::*;
use crate::quota::TIMERS_MAX;
use crate::sys::rights::Rights;

/// Its probes are timers. One that is called `fast` is for nobody who does not see everything.
#[derive(Default)]
struct Clock {
    idle: Mutex<Vec<ProbeRef>>,
}

impl Provider for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn attributes(&self) -> ProviderAttributes {
        ProviderAttributes::new_zeroed()
    }

    fn privileges(&self) -> u32 {
        PRIV_USER
    }

    fn permits(&self, probe: ProbeRef, _: &Tracer) -> Result<bool> {
        Ok(probe.names().name != b"fast")
    }

    fn refusal(&self, _: ProbeRef) -> Refusal {
        Refusal::new(EACCES, "too fast")
    }

    fn are_timers(&self) -> bool {
        true
    }

    fn abandoned(&self) -> Option<ProbeRef> {
        self.idle.lock().unwrap().pop()
    }

    fn enable(&self, _: &[ProbeRef], _: &mut Failed) {}

    fn disable(&self, _: &[ProbeRef]) {}
}

struct Clocks {
    w: World,
    clock: Arc<Clock>,
    index: u32,
    users: Users,
}

impl Clocks {
    fn new() -> Self {
        let mut w = World::new();
        let clock = Arc::new(Clock::default());
        let index = w.state.add_provider(clock.clone()).unwrap();
        let users = Users::new(Limits {
            user: 10,
            consumer: 10,
            cpus: 1,
        });
        let mut this = Self {
            w,
            clock,
            index,
            users,
        };
        this.create("slow");
        this.create("fast");
        this
    }

    fn create(&mut self, name: &str) -> ProbeRef {
        let create = |batch: &mut Batch<'_>| batch.create(b"", b"", name.as_bytes(), 0);
        self.w.state.populate(self.index, create).unwrap()
    }

    /// A consumer that may trace this user's processes alone.
    fn consumer(&mut self, user: u32) -> Arc<Tracer> {
        let config = Config {
            ncpus: 1,
            privileges: Privileges {
                kernel: false,
                all_users: false,
                destructive: false,
            },
            features: Features::default(),
            begin: 1001,
            end: 1002,
            error: 1003,
            seed: 1,
        };
        let payer = self.users.payer(Some(user)).unwrap();
        let (engine, rights) = (Consumer::new(config).unwrap(), Arc::new(Rights));
        Arc::new(Tracer::new(engine, self.w.probes[0], Some(rights), payer))
    }

    /// Enables so many clauses at the probes of a name.
    fn enable(&mut self, tracer: &Arc<Tracer>, name: &str, n: usize) -> Result<u32, Refusal> {
        let mut image = Image::default();
        for _ in 0..n {
            image.clause("clock", name, None, &[]);
        }
        let enabling = Enabling::parse(&image.write()).unwrap_or_else(|r| panic!("{r}"));
        Ok(self.w.enable(tracer, &enabling)?.0)
    }
}

const MOST: usize = TIMERS_MAX as usize;

fn too_many() -> (Error, String) {
    (ENOSPC, "a user may have 32 timers at a time".into())
}

#[test]
fn each_clause_at_a_timer_is_paid_for_until_its_consumer_ends() {
    let mut c = Clocks::new();
    let [one, two, other] = [7, 7, 8].map(|user| c.consumer(user));
    let refusal = c.enable(&one, "slow", MOST + 1).unwrap_err();
    assert_eq!(told(refusal), too_many());
    assert_eq!(c.enable(&one, "slow", MOST - 1).ok(), Some(31));
    assert_eq!(c.enable(&two, "slow", 1).ok(), Some(1));
    for tracer in [&one, &two] {
        let before = c.w.picture(tracer);
        let refusal = c.enable(tracer, "slow", 1).unwrap_err();
        assert_eq!(told(refusal), too_many());
        assert_eq!(c.w.picture(tracer), before);
    }
    assert_eq!(c.enable(&other, "slow", MOST).ok(), Some(32));
    let root = c.w.consumer();
    assert_eq!(c.enable(&root, "slow", 1000).ok(), Some(1000));
    // What is no timer costs none.
    assert_eq!(c.w.enable(&one, &image(&["two"; 100])).ok().unwrap().0, 100);
    c.w.begin(&one);
    drop(c.w.state.detach(&one));
    assert!(c.enable(&two, "slow", MOST).is_err());
    assert_eq!(c.enable(&two, "slow", MOST - 1).ok(), Some(31));
    drop(c.w.state.detach(&two));
    drop(c.w.state.detach(&other));
    drop(c.w.state.detach(&root));
}

#[test]
fn timers_that_appear_are_paid_for_or_counted() {
    let mut c = Clocks::new();
    let tracer = c.consumer(7);
    c.enable(&tracer, "late*", 20).ok().unwrap();
    c.w.begin(&tracer);
    let first = c.create("late1");
    assert_eq!((walked(first), tracer.missed()), (20, 0));
    let second = c.create("late2");
    assert_eq!((walked(second), tracer.missed()), (0, 20));
    let another = c.consumer(7);
    assert_eq!(c.enable(&another, "slow", MOST - 20).ok(), Some(12));
    drop(c.w.state.detach(&tracer));
    assert_eq!(c.enable(&another, "slow", 20).ok(), Some(20));
    drop(c.w.state.detach(&another));
}

#[test]
fn what_is_not_for_a_user_is_refused_by_its_provider() {
    let mut c = Clocks::new();
    let tracer = c.consumer(7);
    let refusal = c.enable(&tracer, "fast", 1).unwrap_err();
    assert_eq!(told(refusal), (EACCES, "too fast".into()));
    assert_eq!(c.enable(&tracer, "*", 1).ok(), Some(1));
    let root = c.w.consumer();
    assert_eq!(c.enable(&root, "*", 1).ok(), Some(2));
    drop(c.w.state.detach(&tracer));
    drop(c.w.state.detach(&root));
}

#[test]
fn what_a_provider_can_spare_goes_before_it_is_asked_for_more() {
    let mut c = Clocks::new();
    let spare = c.create("spare");
    let id = spare.id();
    c.clock.idle.lock().unwrap().push(spare);
    let tracer = c.consumer(7);
    assert_eq!(c.enable(&tracer, "slow", 1).ok(), Some(1));
    assert!(c.w.state.table.get(id).is_none());
    drop(c.w.state.detach(&tracer));
}
