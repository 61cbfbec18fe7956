// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of quotas: places in processes, ECBs, timers and memory.

use crate::quota::{
    Charge, Debt, Limits, Payer, Users, ECBS_MAX, HZ_MAX, TIMERS_MAX, TRACINGS_MAX,
};
use crate::text::Refusal;
use kernel::error::{ENOMEM, ENOSPC};

const ALICE: Option<u32> = Some(1000);
const BOB: Option<u32> = Some(1001);

fn users() -> Users {
    Users::new(Limits {
        user: 10,
        consumer: 25,
        memory: 10,
    })
}

fn why(refused: Result<Charge, Refusal>) -> String {
    let refusal = refused.err().expect("a refusal");
    assert_eq!(refusal.errno, ENOSPC);
    let reason = refusal.into_text();
    reason.as_str().to_owned()
}

fn payer(users: &mut Users, user: Option<u32>) -> Payer {
    users.payer(user).unwrap()
}

#[test]
fn a_limit_is_exact_and_named() {
    let mut users = users();
    let (alice, root) = (payer(&mut users, ALICE), payer(&mut users, None));
    let ten = alice.charge(10).ok().unwrap();
    let text = why(alice.charge(1));
    assert_eq!(text, "a user may have 10 places in processes (user_places)");
    let all = root.charge(25).ok().unwrap();
    let text = why(root.charge(1));
    assert_eq!(
        text,
        "a consumer may have 25 places in processes (consumer_places)"
    );
    assert_eq!((alice.room(), root.room()), (0, 0));
    drop((ten, all));
    assert_eq!((alice.room(), root.room()), (10, 25));
}

#[test]
fn what_could_not_be_taken_away_is_owed() {
    let mut users = users();
    let (alice, root) = (payer(&mut users, ALICE), payer(&mut users, None));
    let all = alice.charge(10).ok().unwrap();
    let debtor = alice.debtor().unwrap();
    let [left, gone] = [debtor.debt(), debtor.debt()];
    left.fall_due();
    left.fall_due();
    drop((all, gone));
    assert_eq!(alice.room(), 9);
    assert!(alice.charge(10).is_err() && alice.charge(9).is_ok());
    drop(left);
    assert_eq!(alice.room(), 10);
    let of_root = root.charge(1).ok().unwrap();
    assert!(root.debtor().is_none());
    Debt::none().fall_due();
    drop(of_root);
    assert_eq!((alice.room(), root.room()), (10, 25));
}

#[test]
fn a_user_has_one_account() {
    let mut users = users();
    let (one, two) = (payer(&mut users, ALICE), payer(&mut users, ALICE));
    let bob = payer(&mut users, BOB);
    let of_one = one.charge(6).ok().unwrap();
    assert_eq!((one.room(), two.room(), bob.room()), (4, 4, 10));
    assert!(two.charge(5).is_err());
    let of_two = two.charge(4).ok().unwrap();
    let root = payer(&mut users, None);
    assert!(of_one.is_of(&one) && of_one.is_of(&two));
    assert!(!of_one.is_of(&bob) && !of_one.is_of(&root));
    // The charge counts, even if its payer has gone.
    drop(one);
    assert!(two.charge(1).is_err());
    drop(of_one);
    assert_eq!(two.room(), 6);
    drop(of_two);
    assert_eq!(payer(&mut users, ALICE).room(), 10);
}

#[test]
fn consumers_of_root_have_each_their_own() {
    let mut users = users();
    let (one, two) = (payer(&mut users, None), payer(&mut users, None));
    let _of_one = one.charge(25).ok().unwrap();
    assert_eq!((one.room(), two.room()), (0, 25));
}

#[test]
fn a_refused_charge_costs_nothing() {
    let mut users = users();
    let alice = payer(&mut users, ALICE);
    let mut charge = alice.charge(8).ok().unwrap();
    for _ in 0..100 {
        assert!(charge.add(3).is_err());
        assert!(alice.charge(11).is_err());
        assert!(alice.charge(usize::MAX).is_err());
    }
    assert_eq!(alice.room(), 2);
    assert!(charge.add(2).is_ok());
    drop(charge);
    // Nothing is left of it with the user or the consumer.
    assert_eq!(alice.room(), 10);
    assert!(alice.check(10).is_ok());
    assert!(alice.check(11).is_err());
}

#[test]
fn what_is_merged_is_given_back_once() {
    let mut users = users();
    let alice = payer(&mut users, ALICE);
    let mut charge = alice.charge(4).ok().unwrap();
    charge.merge(alice.charge(3).ok().unwrap());
    assert_eq!(alice.room(), 3);
    charge.give_back(5);
    assert_eq!(alice.room(), 8);
    // More than is left.
    charge.give_back(5);
    assert_eq!(alice.room(), 10);
    drop(charge);
    assert_eq!(alice.room(), 10);
}

#[test]
fn a_user_traces_so_often_at_a_time() {
    let mut users = users();
    let (alice, root) = (payer(&mut users, ALICE), payer(&mut users, None));
    let mut all: Vec<_> = (0..TRACINGS_MAX)
        .map(|_| alice.trace().ok().unwrap())
        .collect();
    let refusal = payer(&mut users, ALICE).trace().err().unwrap();
    let text = "a user may have 64 tracings at a time";
    assert_eq!(refusal.into_text().as_str(), text);
    assert!(payer(&mut users, BOB).trace().is_ok());
    drop(all.pop());
    assert!(alice.trace().is_ok());
    all.extend((0..1000).map(|_| root.trace().ok().unwrap()));
    // Places are counted apart.
    assert_eq!(alice.room(), 10);
}

#[test]
fn a_user_has_so_many_timers() {
    let mut users = users();
    let (one, two) = (payer(&mut users, ALICE), payer(&mut users, ALICE));
    let (bob, root) = (payer(&mut users, BOB), payer(&mut users, None));
    let most = TIMERS_MAX as usize;
    let (mut of_one, mut of_two) = (one.dues(), two.dues());
    assert!(of_one.add_timers(most - 1).is_ok());
    assert!(of_two.add_timers(2).is_err() && of_two.add_timers(usize::MAX).is_err());
    // The refused calls have charged nothing.
    assert!(of_two.add_timers(1).is_ok());
    let refusal = of_one.add_timers(1).unwrap_err();
    assert_eq!(refusal.errno, ENOSPC);
    let text = "a user may have 32 timers at a time";
    assert_eq!(refusal.into_text().as_str(), text);
    assert!(bob.dues().add_timers(most).is_ok());
    assert!(root.dues().add_timers(100_000).is_ok());
    drop(of_two);
    let mut more = one.dues();
    assert!(more.add_timers(1).is_ok());
    of_one.merge(more);
    assert!(one.dues().add_timers(1).is_err());
    drop(of_one);
    assert!(two.dues().add_timers(most).is_ok());
    // Places and tracings are counted apart.
    assert_eq!(one.room(), 10);
}

#[test]
fn a_user_has_so_many_clauses_at_probes() {
    let mut users = users();
    let (one, two) = (payer(&mut users, ALICE), payer(&mut users, ALICE));
    let (bob, root) = (payer(&mut users, BOB), payer(&mut users, None));
    let most = ECBS_MAX as usize;
    let (mut of_one, mut of_two) = (one.dues(), two.dues());
    assert!(of_one.add(most).is_ok());
    let refusal = of_two.add(1).unwrap_err();
    assert_eq!(refusal.errno, ENOSPC);
    let text = "a user may have 65536 enabled probes at a time";
    assert_eq!(refusal.into_text().as_str(), text);
    assert!(bob.dues().add(most).is_ok());
    assert!(root.dues().add(64 * most).is_ok());
    // Timers are counted apart.
    assert!(of_two.add_timers(1).is_ok());
    // No more is given back than was paid.
    of_two.give_back(5);
    of_one.give_back(10);
    assert!(of_two.add(10).is_ok() && of_two.add(1).is_err());
    drop(of_one);
    assert!(of_two.add(most - 10).is_ok() && of_two.add(1).is_err());
}

#[test]
fn a_users_calls_take_turns() {
    let mut users = users();
    let (one, two) = (payer(&mut users, ALICE), payer(&mut users, ALICE));
    let (bob, root) = (payer(&mut users, BOB), payer(&mut users, None));
    let turn = |payer: &Payer| payer.turn().map(core::ptr::from_ref);
    assert!(turn(&one).is_some() && turn(&one) == turn(&two));
    assert!(turn(&bob).is_some() && turn(&bob) != turn(&one));
    assert!(turn(&root).is_none());
}

#[test]
fn a_users_timers_fire_so_often_together() {
    let mut users = users();
    let (one, two) = (payer(&mut users, ALICE), payer(&mut users, ALICE));
    let (bob, root) = (payer(&mut users, BOB), payer(&mut users, None));
    let most = HZ_MAX as usize;
    let mut of_one = one.dues();
    assert!(of_one.add_hz(most - 1).is_ok());
    let refusal = two.dues().add_hz(2).unwrap_err();
    assert_eq!(refusal.errno, ENOSPC);
    let text = "a user's timers may fire 997 times a second together";
    assert_eq!(refusal.into_text().as_str(), text);
    let mut more = one.dues();
    assert!(more.add_hz(1).is_ok());
    of_one.merge(more);
    assert!(two.dues().add_hz(1).is_err());
    assert!(bob.dues().add_hz(most).is_ok());
    assert!(root.dues().add_hz(100_000).is_ok());
    drop(of_one);
    assert!(two.dues().add_hz(most).is_ok());
}

#[test]
fn the_shares_of_time_are_a_users_and_everybodys() {
    let mut users = users();
    let (one, two) = (payer(&mut users, ALICE), payer(&mut users, ALICE));
    let (bob, root) = (payer(&mut users, BOB), payer(&mut users, None));
    let user = |payer: &Payer| payer.shares().map(|shares| &raw const *shares.user);
    let all = |payer: &Payer| payer.shares().map(|shares| &raw const *shares.all);
    assert!(user(&one).is_some() && user(&one) == user(&two));
    assert!(user(&bob) != user(&one) && all(&bob) == all(&one));
    assert!(user(&root).is_none());
}

#[test]
fn a_users_memory_is_limited_and_given_back() {
    const MIB: usize = 1 << 20;
    let mut users = users();
    let [alice, again] = [ALICE; 2].map(|user| payer(&mut users, user).purse());
    let [bob, root] = [BOB, None].map(|user| payer(&mut users, user).purse());
    let refused = |refusal: Refusal| {
        assert_eq!(refusal.errno, ENOMEM);
        refusal.into_text().as_str().to_owned()
    };
    let text = "a user's tracings may have 10 MiB of memory (user_memory)";
    alice.pay(4 * MIB).ok().unwrap().keep();
    // A payment for buffers replaces the last one; it does not add to it.
    again.set_buffers(6 * MIB as u64).ok().unwrap();
    assert_eq!(refused(alice.pay(1).err().unwrap()), text);
    again.set_buffers(5 * MIB as u64).ok().unwrap();
    drop(alice.pay(MIB).ok().unwrap());
    again.set_buffers(6 * MIB as u64).ok().unwrap();
    let too_many = again.set_buffers(6 * MIB as u64 + 1);
    assert_eq!(refused(too_many.err().unwrap()), text);
    // The refusal leaves the last payment as it was.
    assert!(alice.pay(1).is_err());
    drop(again);
    alice.pay(6 * MIB).ok().unwrap().keep();
    assert!(alice.pay(1).is_err());
    bob.set_buffers(10 * MIB as u64).ok().unwrap();
    // Two members with the most that each may have use up what all may have together.
    let carol = payer(&mut users, Some(1002)).purse();
    let text = "the tracings of all users together may have 20 MiB of memory (user_memory)";
    assert_eq!(refused(carol.pay(1).err().unwrap()), text);
    bob.set_buffers(9 * MIB as u64).ok().unwrap();
    drop(carol.pay(MIB).ok().unwrap());
    assert!(carol.pay(2 * MIB).is_err());
    carol.pay(MIB).ok().unwrap().keep();
    drop(carol);
    root.set_buffers(u64::MAX).ok().unwrap();
    drop(alice);
    let alice = payer(&mut users, ALICE).purse();
    alice.pay(10 * MIB).ok().unwrap().keep();
}
