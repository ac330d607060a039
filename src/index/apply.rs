//! Turns what is seen of transactions into changes of facts. Pure; applying a change twice is harmless.

use vm::{B256, TxRef, protocol::id, spelled_alike};

use crate::request::{
    Request,
    fact::{Agreed, Deposit, Facts, Inclusion, Sent, Standing, State, Waited},
    mismatch::{asked, mismatch},
    quoted,
    reason::FailReason,
};

/// Deposits of one order that are kept of each kind.
const MOST_PAYING: usize = 512;
const MOST_PARTS: usize = 16;
const MOST_NAMED: usize = 64;
const MOST_OTHERS: usize = 64;
/// How often the order's amount is halved: a smaller deposit is dust.
const HALVINGS: usize = 8;
/// Deposits of an order that are kept, including those that left the chain.
const MOST_KEPT: usize = 1_024;
/// Own transactions of one request that are kept: each does the same again.
const MOST_OWN: usize = 16;

/// The protocol's id of the deposit at `index` of a transaction (guide: protocol 2.3).
pub fn onchain_id(network: &str, transaction: &str, index: u32) -> B256 {
    id::deterministic(&[network, transaction, &index.to_string()])
}

/// The order that a deposit names; `None` where it names none, or spells the id otherwise than orders do: no claim is
/// attested for such a deposit (guide: protocol 7.2).
pub fn order(deposit: &vm::Deposit) -> Option<B256> {
    let id: B256 = deposit.id.parse().ok()?;
    (!id.is_zero() && *id.to_string() == *deposit.id).then_some(id)
}

/// A deposit of `transaction` in the block at `place`, as facts record it.
pub fn deposit(
    network: &str,
    transaction: &TxRef,
    place: &Inclusion,
    deposit: &vm::Deposit,
) -> Deposit {
    Deposit {
        onchain_id: onchain_id(network, &transaction.text, deposit.index),
        network: network.to_owned(),
        transaction: transaction.text.to_string(),
        depository: deposit.depository.text().to_owned(),
        depositor: deposit.depositor.text().to_owned(),
        currency: deposit.currency.text().to_owned(),
        amount: deposit.amount,
        place: place.clone(),
        standing: Standing::Included,
        together: 0,
        own: false,
        named_by_other: false,
    }
}

/// The kind of a deposit: it competes for room with those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It pays for the order.
    Paying,
    /// A part of what the order asks for, by how often that is halved. To keep a deposit out, somebody must have
    /// given many that are at least half as large.
    Part(usize),
    /// A deposit in the user's name; anybody can make one.
    Named,
    Other,
}

impl Kind {
    fn of(request: &Request, deposit: &Deposit) -> Self {
        let part = match mismatch(request, deposit) {
            None => return Self::Paying,
            Some(FailReason::DepositedAmountTooLowToFill) => {
                let asked = asked(request).unwrap_or_default();
                (0..HALVINGS).find(|times| deposit.amount > asked >> (times + 1))
            }
            Some(_) => None,
        };
        match part {
            Some(times) => Self::Part(times),
            None if spelled_alike(&deposit.depositor, &request.user) => Self::Named,
            None => Self::Other,
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Paying => MOST_PAYING,
            Self::Part(_) => MOST_PARTS,
            Self::Named => MOST_NAMED,
            Self::Other => MOST_OTHERS,
        }
    }
}

/// Whether a deposit that is left out says nothing of its order: it is tiny, or another's money.
pub fn is_small(request: &Request, deposit: &Deposit) -> bool {
    let of = (deposit.network.as_str(), deposit.currency.as_str());
    Kind::of(request, deposit) == Kind::Other || quoted::is_nothing(request, of, deposit.amount)
}

/// How urgent a deposit is among those of all orders, the lowest first: what pays for its order, parts of that, the
/// rest.
pub fn rank(request: &Request, deposit: &Deposit) -> u8 {
    match Kind::of(request, deposit) {
        Kind::Paying => 0,
        Kind::Part(_) => 1,
        Kind::Named | Kind::Other => 2,
    }
}

/// Whether the order's facts take this deposit. Anybody may deposit dust for an order, and one provider may show
/// deposits that do not exist. Neither lets the facts grow without end, nor keeps out a deposit that pays what the
/// order asks for or a part of it, or that is the order's user's.
pub fn has_room(request: &Request, facts: &Facts, deposit: &Deposit) -> bool {
    let kind = Kind::of(request, deposit);
    let most = kind.most();
    let mut all = facts.deposits.iter();
    let known = all.any(|one| one.onchain_id == deposit.onchain_id);
    let others = facts
        .standing()
        .filter(|one| Kind::of(request, one) == kind);
    // A deposit that left the chain may be forgotten while nothing was done because of it.
    let full = facts.deposits.len() >= MOST_KEPT && forgettable(facts).is_none();
    known || (others.count() < most && !full)
}

/// The oldest deposit that left the chain and that nothing depends on.
fn forgettable(facts: &Facts) -> Option<usize> {
    let mut deposits = facts.deposits.iter();
    let oldest = deposits.position(|one| one.standing == Standing::Reorged);
    oldest.filter(|_| facts.attempts.is_empty())
}

/// Records that a deposit is in a block. In another block than before it has to become final anew. What a quorum has
/// not judged is as it was shown last. What waited before its block is the deposit from now on.
pub fn seen(facts: &mut Facts, deposit: &Deposit) {
    let is_same = |one: &Sent| {
        one.state == State::Broadcast
            && one.network == deposit.network
            && one.transaction == deposit.transaction
    };
    facts.own.retain(|one| !is_same(one));
    let known = |one: &&mut Deposit| one.onchain_id == deposit.onchain_id;
    match facts.deposits.iter_mut().find(known) {
        None => {
            if facts.deposits.len() >= MOST_KEPT
                && let Some(oldest) = forgettable(facts)
            {
                facts.deposits.remove(oldest);
            }
            facts.deposits.push(deposit.clone());
        }
        Some(before) if before.place.hash != deposit.place.hash => *before = deposit.clone(),
        Some(before) if before.standing != Standing::Final => *before = deposit.clone(),
        Some(_) => {}
    }
}

/// Records a deposit that one provider alone shows in a block: this adds a deposit, and changes no known one that is
/// still on the chain. One that a quorum did not find is judged again: the quorum may have been wrong.
pub fn shown(facts: &mut Facts, deposit: &Deposit) {
    let stands =
        |one: &Deposit| one.onchain_id == deposit.onchain_id && one.standing != Standing::Reorged;
    if !facts.deposits.iter().any(stands) {
        seen(facts, deposit);
    }
}

/// Records that the block `hash` with this deposit left the chain, as two providers (or the only one) say. A deposit
/// that a quorum called final is only doubted: the quorum has the last word.
pub fn lost(facts: &mut Facts, onchain_id: B256, hash: B256) {
    if let Some(deposit) = at(facts, onchain_id, hash) {
        deposit.standing = match deposit.standing {
            Standing::Final => Standing::Included,
            Standing::Included | Standing::Reorged => Standing::Reorged,
        };
    }
}

/// Records that a quorum calls the deposit in block `hash` final.
pub fn settled(facts: &mut Facts, onchain_id: B256, hash: B256, agreed: &Agreed) {
    let found = at(facts, onchain_id, hash);
    if let Some(deposit) = found.filter(|one| one.standing == Standing::Included) {
        deposit.place = agreed.place.clone();
        deposit.standing = Standing::Final;
        (deposit.together, deposit.own) = (agreed.together, agreed.own);
        deposit.named_by_other = agreed.named_by_other;
    }
}

/// Records that a quorum does not find the deposit of block `hash`.
pub fn gone(facts: &mut Facts, onchain_id: B256, hash: B256) {
    let found = at(facts, onchain_id, hash);
    if let Some(deposit) = found.filter(|one| one.standing == Standing::Included) {
        deposit.standing = Standing::Reorged;
    }
}

/// Whether `transaction` had deposits, and all of them left the chain with their blocks.
pub fn is_reorged(facts: &Facts, network: &str, transaction: &str) -> bool {
    let same = |one: &&Deposit| one.network == network && one.transaction == transaction;
    let mut all = facts.deposits.iter().filter(same).peekable();
    all.peek().is_some() && all.all(|one| one.standing == Standing::Reorged)
}

fn at(facts: &mut Facts, onchain_id: B256, hash: B256) -> Option<&mut Deposit> {
    let mut all = facts.deposits.iter_mut();
    all.find(|one| one.onchain_id == onchain_id && one.place.hash == hash)
}

/// Records that a transaction of the user's own is at `state`. One that is in a block does not go back to sent.
pub fn own(facts: &mut Facts, sent: &Sent) {
    let same = |one: &&mut Sent| one.network == sent.network && one.transaction == sent.transaction;
    let full = facts.own.len() >= MOST_OWN;
    match facts.own.iter_mut().find(same) {
        None if full => {}
        None => facts.own.push(sent.clone()),
        Some(before) if sent.state != State::Broadcast => before.state = sent.state.clone(),
        Some(_) => {}
    }
}

/// Records that a transaction of the user's own is in no block, and waits for none any more.
pub fn disowned(facts: &mut Facts, network: &str, transaction: &str) {
    facts
        .own
        .retain(|one| one.network != network || one.transaction != transaction);
    facts
        .waited
        .retain(|one| one.network != network || one.transaction != transaction);
}

/// Records that a quorum shows a deposit waiting for a block. The first time counts.
pub fn waited(facts: &mut Facts, seen: &Waited) {
    let same = |one: &Waited| one.network == seen.network && one.transaction == seen.transaction;
    if facts.waited.len() < MOST_OWN && !facts.waited.iter().any(same) {
        facts.waited.push(seen.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{fact::Purpose, fixtures};

    /// Deposit 1 in block `number` of the fixture.
    fn in_block(number: u64) -> Deposit {
        let mut deposit = fixtures::deposit(1, Standing::Included);
        deposit.place = fixtures::place(number);
        deposit
    }

    /// Whoever gives it, and for whatever order.
    #[test]
    fn what_the_quote_prices_at_next_to_nothing_is_small() {
        let (bare, priced) = (fixtures::request(1), fixtures::priced(fixtures::request(1)));
        let given = |amount: u64, currency: &str| Deposit {
            amount: vm::Amount::from(amount),
            currency: currency.into(),
            ..in_block(1)
        };
        for (request, amount, currency, small) in [
            (&priced, 50_000, fixtures::USDC, true),
            (&priced, 50_001, fixtures::USDC, false),
            (&priced, 100_000_000, fixtures::USDC, false),
            // Nobody has a price for it.
            (&priced, 1, fixtures::USER, false),
            (&bare, 1, fixtures::USDC, false),
        ] {
            let is = is_small(request, &given(amount, currency));
            assert_eq!(is, small, "{amount} {currency}");
        }
        let mut large = given(0, fixtures::USDC);
        large.amount = vm::Amount::MAX;
        assert!(!is_small(&priced, &large));
    }

    enum Event {
        Seen(u64),
        Lost(u64),
        Settled(u64, u64),
        Gone(u64),
    }

    fn after(events: &[Event]) -> Vec<(u64, Standing)> {
        let mut facts = Facts::default();
        let id = in_block(1).onchain_id;
        let hash = |number| fixtures::place(number).hash;
        for event in events {
            match event {
                Event::Seen(number) => seen(&mut facts, &in_block(*number)),
                Event::Lost(number) => lost(&mut facts, id, hash(*number)),
                Event::Settled(from, to) => {
                    settled(
                        &mut facts,
                        id,
                        hash(*from),
                        &fixtures::agreed(&fixtures::place(*to)),
                    );
                }
                Event::Gone(number) => gone(&mut facts, id, hash(*number)),
            }
        }
        let found = facts.deposits.iter();
        found.map(|one| (one.place.number, one.standing)).collect()
    }

    #[test]
    fn one_deposit_through_every_turn() {
        use Event::{Gone, Lost, Seen, Settled};
        use Standing::{Final, Included, Reorged};
        type Case<'a> = (&'a [Event], &'a [(u64, Standing)]);
        let cases: &[Case<'_>] = &[
            (&[], &[]),
            (&[Seen(5)], &[(5, Included)]),
            // Twice is once, and says nothing new of what is final.
            (&[Seen(5), Seen(5)], &[(5, Included)]),
            (&[Seen(5), Settled(5, 5), Seen(5)], &[(5, Final)]),
            // Reorged, and in another block, in either order of the news.
            (&[Seen(5), Lost(5)], &[(5, Reorged)]),
            (&[Seen(5), Lost(5), Lost(5)], &[(5, Reorged)]),
            (&[Seen(5), Lost(5), Seen(6)], &[(6, Included)]),
            (&[Seen(5), Seen(6), Lost(5)], &[(6, Included)]),
            (&[Seen(5), Lost(5), Seen(5)], &[(5, Included)]),
            // Final is doubted by one provider, never undone.
            (&[Seen(5), Settled(5, 5), Lost(5)], &[(5, Included)]),
            (&[Seen(5), Settled(5, 5), Seen(6)], &[(6, Included)]),
            (&[Seen(5), Settled(5, 5), Gone(5)], &[(5, Final)]),
            // The quorum's word about a block that is not the deposit's any more is late.
            (&[Seen(5), Seen(6), Settled(5, 5)], &[(6, Included)]),
            (&[Seen(5), Seen(6), Gone(5)], &[(6, Included)]),
            (&[Seen(5), Lost(5), Settled(5, 5)], &[(5, Reorged)]),
            (&[Seen(5), Gone(5)], &[(5, Reorged)]),
            (&[Seen(5), Gone(5), Seen(6), Settled(6, 6)], &[(6, Final)]),
            // The quorum knows the block better.
            (&[Seen(5), Settled(5, 6)], &[(6, Final)]),
            // News of what was never seen.
            (&[Lost(5), Settled(5, 5), Gone(5)], &[]),
        ];
        for (row, (events, wanted)) in cases.iter().enumerate() {
            assert_eq!(after(events), *wanted, "row {row}");
        }
    }

    #[test]
    fn dust_neither_fills_the_facts_nor_keeps_out_who_pays() {
        let request = fixtures::request(1);
        let paying = fixtures::deposit(1, Standing::Included);
        let dust = Deposit {
            amount: vm::Amount::from(1),
            ..paying.clone()
        };
        let numbered = |deposit: &Deposit, number: u64| Deposit {
            onchain_id: alloy::primitives::U256::from(number).into(),
            ..deposit.clone()
        };
        let anothers = Deposit {
            depositor: fixtures::USDC.into(),
            ..dust.clone()
        };
        let part = |times: usize| Deposit {
            amount: paying.amount >> (times + 1),
            depositor: fixtures::USDC.into(),
            ..paying.clone()
        };
        // A half is no part of more than a half, and so on.
        let parts: Vec<_> = (1..HALVINGS - 1).map(part).collect();
        let mut facts = Facts::default();
        let named = [(&anothers, MOST_OTHERS), (&dust, MOST_NAMED)];
        let all = named.into_iter().chain([(&paying, MOST_PAYING)]);
        for (deposit, most) in all.chain(parts.iter().map(|part| (part, MOST_PARTS))) {
            let first = facts.deposits.len() as u64 + 1;
            for number in first..first + most as u64 {
                let deposit = numbered(deposit, number);
                assert!(has_room(&request, &facts, &deposit), "{number}");
                seen(&mut facts, &deposit);
            }
            assert!(!has_room(&request, &facts, &numbered(deposit, 1_000_000)));
            assert!(has_room(&request, &facts, &numbered(deposit, first)));
        }
        let bytes = serde_json::to_vec(&facts).unwrap();
        assert!(bytes.len() < 1 << 19, "{}", bytes.len());
    }

    #[test]
    fn strangers_dust_keeps_no_short_deposit_of_the_users_out() {
        let request = fixtures::request(1);
        let small = |number: u64, amount: u64, depositor: &str| Deposit {
            onchain_id: alloy::primitives::U256::from(number).into(),
            amount: vm::Amount::from(amount),
            depositor: depositor.into(),
            ..fixtures::deposit(1, Standing::Included)
        };
        // Dust, and a hundredth of what is asked for, in their own names and in the user's.
        for (amount, name) in [
            (1, fixtures::USDC),
            (1, fixtures::USER),
            (1_000_000, fixtures::USER),
        ] {
            let mut facts = Facts::default();
            for number in 0..300 {
                let deposit = small(number, amount, name);
                if has_room(&request, &facts, &deposit) {
                    seen(&mut facts, &deposit);
                }
            }
            assert!(facts.deposits.len() < 300);
            let short = small(1_000_000, 50_000_000, fixtures::USER);
            assert!(has_room(&request, &facts, &short), "{amount} {name}");
        }
        // What the user deposits in another currency has its place beside what others deposit.
        let mut facts = Facts::default();
        for number in 0..300 {
            let deposit = small(number, 1, fixtures::USDC);
            if has_room(&request, &facts, &deposit) {
                seen(&mut facts, &deposit);
            }
        }
        let mut foreign = small(1_000_000, 1, fixtures::USER);
        foreign.currency = fixtures::USER.into();
        assert!(has_room(&request, &facts, &foreign));
        foreign.depositor = fixtures::USDC.into();
        assert!(!has_room(&request, &facts, &foreign));
    }

    #[test]
    fn what_left_the_chain_takes_nobodys_place() {
        let request = fixtures::request(1);
        let numbered = |number: u64| Deposit {
            onchain_id: alloy::primitives::U256::from(number).into(),
            ..fixtures::deposit(1, Standing::Included)
        };
        let mut facts = Facts::default();
        // Again and again one provider shows as many deposits as there may be, and none is there.
        for round in 0..4 {
            let first = 1 + round * MOST_PAYING as u64;
            for number in first..first + MOST_PAYING as u64 {
                let deposit = numbered(number);
                assert!(has_room(&request, &facts, &deposit), "{number}");
                seen(&mut facts, &deposit);
            }
            assert!(!has_room(&request, &facts, &numbered(1_000_000)));
            for deposit in facts.deposits.clone() {
                gone(&mut facts, deposit.onchain_id, deposit.place.hash);
            }
        }
        assert!(has_room(&request, &facts, &numbered(1_000_000)));
        assert!(
            facts.deposits.len() <= MOST_KEPT,
            "{}",
            facts.deposits.len()
        );
        // What the solver acted on stays, however much comes.
        facts
            .attempts
            .push(fixtures::attempt(Purpose::Fill, State::Broadcast));
        let before = facts.deposits.clone();
        seen(&mut facts, &numbered(1_000_000));
        assert_eq!(facts.deposits[..before.len()], before);
    }

    #[test]
    fn a_deposit_is_what_was_shown_of_it_last_until_a_quorum_has_it() {
        let forged = Deposit {
            amount: vm::Amount::from(1),
            ..in_block(5)
        };
        let mut facts = Facts::default();
        seen(&mut facts, &forged);
        seen(&mut facts, &in_block(5));
        assert_eq!(facts.deposits, [in_block(5)]);
        let hash = fixtures::place(5).hash;
        settled(
            &mut facts,
            forged.onchain_id,
            hash,
            &fixtures::agreed(&fixtures::place(5)),
        );
        let before = facts.clone();
        seen(&mut facts, &forged);
        assert_eq!(facts, before);
    }

    #[test]
    fn what_one_provider_alone_shows_changes_nothing_that_is_known() {
        let mut facts = Facts::default();
        let forged = Deposit {
            amount: vm::Amount::from(1),
            ..in_block(6)
        };
        shown(&mut facts, &in_block(5));
        assert_eq!(facts.deposits, [in_block(5)]);
        let (id, hash) = (forged.onchain_id, fixtures::place(5).hash);
        shown(&mut facts, &forged);
        assert_eq!(facts.deposits, [in_block(5)]);
        settled(&mut facts, id, hash, &fixtures::agreed(&fixtures::place(5)));
        let before = facts.clone();
        shown(&mut facts, &forged);
        assert_eq!(facts, before);
        // What left the chain may be in its block after all, or in another one.
        lost(&mut facts, id, hash);
        lost(&mut facts, id, hash);
        shown(&mut facts, &in_block(5));
        assert_eq!(facts.deposits, [in_block(5)]);
        gone(&mut facts, id, hash);
        shown(&mut facts, &in_block(6));
        assert_eq!(facts.deposits, [in_block(6)]);
    }

    #[test]
    fn deposits_of_one_order_stand_for_themselves() {
        let mut facts = Facts::default();
        let mut elsewhere = fixtures::deposit(3, Standing::Included);
        elsewhere.network = "destination".into();
        for deposit in [
            fixtures::deposit(2, Standing::Included),
            fixtures::deposit(1, Standing::Included),
            elsewhere,
        ] {
            seen(&mut facts, &deposit);
        }
        let first = fixtures::deposit(1, Standing::Included);
        lost(&mut facts, first.onchain_id, first.place.hash);
        let found: Vec<_> = facts
            .deposits
            .iter()
            .map(|one| (one.onchain_id[31], one.network.as_str(), one.standing))
            .collect();
        let wanted = [
            (2, "origin", Standing::Included),
            (1, "origin", Standing::Reorged),
            (3, "destination", Standing::Included),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn own_transactions_move_on_and_never_back_to_sent() {
        let mut facts = Facts::default();
        let included = State::Included(fixtures::place(1));
        for (state, wanted) in [
            (State::Broadcast, State::Broadcast),
            (included.clone(), included.clone()),
            (State::Broadcast, included.clone()),
            (
                State::Confirmed(fixtures::place(1)),
                State::Confirmed(fixtures::place(1)),
            ),
        ] {
            own(&mut facts, &fixtures::sent("0x1", state));
            assert_eq!(facts.own, [fixtures::sent("0x1", wanted)]);
        }
        disowned(&mut facts, "destination", "0x1");
        disowned(&mut facts, "origin", "0x2");
        assert_eq!(facts.own.len(), 1);
        disowned(&mut facts, "origin", "0x1");
        assert!(facts.own.is_empty());
    }

    #[test]
    fn order_ids_are_whole_or_none() {
        let named = |id: &str| vm::Deposit {
            id: id.into(),
            ..crate::index::fixtures::deposit(B256::ZERO, 1)
        };
        assert_eq!(
            order(&named(&B256::repeat_byte(7).to_string())),
            Some(B256::repeat_byte(7))
        );
        let capitals = format!("0x{}", "AB".repeat(32));
        let bare = "ab".repeat(32);
        for none in [
            B256::ZERO.to_string(),
            String::new(),
            "0x07".into(),
            capitals,
            bare,
        ] {
            assert_eq!(order(&named(&none)), None, "{none}");
        }
    }
}
