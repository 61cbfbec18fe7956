// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of probes that are timers, of which a member has few (INV-33).

use super::*;
use crate::quota::{HZ_MAX, TIMERS_MAX};

/// A provider of timers. Probes called `made...` are made to order. The probe `fast` is only for
/// consumers that see everything.
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

    fn permits(&self, probe: ProbeRef, _: &Consumer) -> Result<bool> {
        Ok(probe.names().name != b"fast")
    }

    fn refusal(&self, _: ProbeRef) -> Refusal {
        Refusal::new(EACCES, "too fast")
    }

    fn hz(&self, probe: ProbeRef) -> Option<usize> {
        Some(usize::try_from(probe.cookie()).unwrap().max(1))
    }

    fn provide(&self, desc: &Description<'_>, _: &Consumer, batch: &mut Batch<'_>) -> Result {
        let is_order = desc.name.starts_with(b"made") && !desc.name.ends_with(b"*");
        if is_order && batch.find(b"", b"", desc.name).is_none() {
            batch.create(b"", b"", desc.name, 0)?;
        }
        Ok(())
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
        let users = Users::new(LIMITS);
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
        self.create_at(name, 1)
    }

    /// Creates a probe that fires so often in a second.
    fn create_at(&mut self, name: &str, hz: u64) -> ProbeRef {
        let create = |batch: &mut Batch<'_>| batch.create(b"", b"", name.as_bytes(), hz);
        self.w.state.populate(self.index, create).unwrap()
    }

    /// A consumer of a member.
    fn consumer(&mut self, user: u32) -> Arc<Consumer> {
        let privileges = Privileges {
            kernel: false,
            kernel_memory: false,
            all_users: false,
            user_memory: true,
            destructive: false,
        };
        let payer = self.users.payer(Some(user)).unwrap();
        self.w
            .consumer_of(privileges, Some(Arc::new(Rights)), payer)
    }

    /// Enables `n` clauses at the probes with a name.
    fn enable(&mut self, consumer: &Arc<Consumer>, name: &str, n: usize) -> Result<u32, Refusal> {
        let mut image = Image::default();
        for _ in 0..n {
            image.clause("clock", name, None, &[]);
        }
        let enabling = Enabling::parse(&image.write()).unwrap_or_else(|r| panic!("{r}"));
        Ok(self.w.enable(consumer, &enabling)?.0)
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
    for consumer in [&one, &two] {
        let before = c.w.picture(consumer);
        let refusal = c.enable(consumer, "slow", 1).unwrap_err();
        assert_eq!(told(refusal), too_many());
        assert_eq!(c.w.picture(consumer), before);
    }
    assert_eq!(c.enable(&other, "slow", MOST).ok(), Some(32));
    let root = c.w.consumer();
    assert_eq!(c.enable(&root, "slow", 1000).ok(), Some(1000));
    // Probes that are not timers do not count.
    assert_eq!(c.w.enable(&one, &image(&["two"; 100])).ok().unwrap().0, 100);
    c.w.begin(&one);
    drop(c.w.state.withdraw(&one));
    assert!(c.enable(&two, "slow", MOST).is_err());
    assert_eq!(c.enable(&two, "slow", MOST - 1).ok(), Some(31));
    drop(c.w.state.withdraw(&two));
    drop(c.w.state.withdraw(&other));
    drop(c.w.state.withdraw(&root));
}

#[test]
fn timers_that_appear_are_paid_for_or_counted() {
    let mut c = Clocks::new();
    let consumer = c.consumer(7);
    c.enable(&consumer, "late*", 20).ok().unwrap();
    c.w.begin(&consumer);
    let first = c.create("late1");
    assert_eq!((walked(first), consumer.missed()), (20, 0));
    let second = c.create("late2");
    assert_eq!((walked(second), consumer.missed()), (0, 20));
    let another = c.consumer(7);
    assert_eq!(c.enable(&another, "slow", MOST - 20).ok(), Some(12));
    drop(c.w.state.withdraw(&consumer));
    assert_eq!(c.enable(&another, "slow", 20).ok(), Some(20));
    drop(c.w.state.withdraw(&another));
}

#[test]
fn what_is_not_for_a_user_is_refused_by_its_provider() {
    let mut c = Clocks::new();
    let consumer = c.consumer(7);
    let refusal = c.enable(&consumer, "fast", 1).unwrap_err();
    assert_eq!(told(refusal), (EACCES, "too fast".into()));
    assert_eq!(c.enable(&consumer, "*", 1).ok(), Some(1));
    let root = c.w.consumer();
    assert_eq!(c.enable(&root, "*", 1).ok(), Some(2));
    drop(c.w.state.withdraw(&consumer));
    drop(c.w.state.withdraw(&root));
}

#[test]
fn what_a_provider_can_spare_goes_before_it_is_asked_for_more() {
    let mut c = Clocks::new();
    let spare = c.create("spare");
    let id = spare.id();
    c.clock.idle.lock().unwrap().push(spare);
    let consumer = c.consumer(7);
    assert_eq!(c.enable(&consumer, "slow", 1).ok(), Some(1));
    assert!(c.w.state.table.get(id).is_none());
    drop(c.w.state.withdraw(&consumer));
}

#[test]
fn timers_fire_so_often_together() {
    let mut c = Clocks::new();
    c.create_at("most", HZ_MAX.into());
    c.create_at("over", u64::from(HZ_MAX) + 1);
    let [one, two, other] = [7, 7, 8].map(|user| c.consumer(user));
    let why = "a user's timers may fire 997 times a second together";
    let too_often = (ENOSPC, why.to_owned());
    // The rate of each probe counts once.
    assert_eq!(c.enable(&one, "most", 3).ok(), Some(3));
    assert_eq!(c.enable(&one, "most", 3).ok(), Some(3));
    for consumer in [&one, &two] {
        let before = c.w.picture(consumer);
        let refusal = c.enable(consumer, "slow", 1).unwrap_err();
        assert_eq!(told(refusal), too_often);
        assert_eq!(c.w.picture(consumer), before);
    }
    // It would use the same timer, but would have to pay for it alone when the first consumer has
    // ended.
    assert!(c.enable(&two, "most", 1).is_err());
    assert_eq!(told(c.enable(&other, "over", 1).unwrap_err()), too_often);
    // The refused request has not counted as a timer either.
    assert_eq!(c.enable(&other, "slow", MOST).ok(), Some(32));
    let root = c.w.consumer();
    assert_eq!(c.enable(&root, "over", 1).ok(), Some(1));
    drop(c.w.state.withdraw(&one));
    assert_eq!(c.enable(&two, "most", 1).ok(), Some(1));
    [&two, &other, &root].map(|consumer| drop(c.w.state.withdraw(consumer)));
}

#[test]
fn timers_that_appear_are_missed_where_they_fire_too_often() {
    let mut c = Clocks::new();
    let consumer = c.consumer(7);
    c.enable(&consumer, "late*", 2).ok().unwrap();
    c.w.begin(&consumer);
    let first = c.create_at("late1", 900);
    let second = c.create_at("late2", 98);
    let third = c.create_at("late3", 97);
    assert_eq!([first, second, third].map(walked), [2, 0, 2]);
    assert_eq!(consumer.missed(), 2);
    drop(c.w.state.withdraw(&consumer));
}

#[test]
fn what_is_made_for_a_user_is_meant_by_nobody_elses_pattern() {
    let mut c = Clocks::new();
    let root = c.w.consumer();
    let [one, two, other] = [7, 7, 8].map(|user| c.consumer(user));
    let all = [&root, &one, &two, &other];
    // Of the existing probes: "slow" for all, and "fast" for root as well.
    assert_eq!(c.enable(&root, "*", 1).ok(), Some(2));
    assert_eq!(c.enable(&other, "*", 1).ok(), Some(1));
    assert_eq!(c.enable(&two, "made*", 1).ok(), Some(0));
    assert_eq!(c.enable(&one, "made1", 1).ok(), Some(1));
    // A later pattern does not match it either; its exact name does.
    assert_eq!(c.enable(&root, "made*", 1).ok(), Some(0));
    assert_eq!(c.enable(&root, "*", 1).ok(), Some(2));
    assert_eq!(c.enable(&other, "made*", 1).ok(), Some(0));
    assert_eq!(c.enable(&other, "made1", 1).ok(), Some(1));
    assert_eq!(c.enable(&root, "made1", 1).ok(), Some(1));
    // A probe that root has requested is for all users: three patterns of root, two of the other
    // user and one of this one match it.
    assert_eq!(c.enable(&root, "made2", 1).ok(), Some(1));
    all.map(|consumer| c.w.begin(consumer));
    let table = &c.w.state.table;
    let of = |name: &[u8]| walked(table.find([b"clock", b"", b"", name]).unwrap());
    // The name and the pattern of the user's two consumers match it, but of other consumers only
    // names do.
    assert_eq!(of(b"made1"), 4);
    assert_eq!(of(b"made2"), 1 + 3 + 2 + 1);
    all.map(|consumer| drop(c.w.state.withdraw(consumer)));
}
