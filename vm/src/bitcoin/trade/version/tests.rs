use bitcoin::{OutPoint, ScriptBuf, Txid, hashes::Hash};

use super::*;

fn script(byte: u8) -> ScriptBuf {
    let mut script = vec![0, 20];
    script.extend([byte; 20]);
    script.into()
}

fn coin(number: u8, value: u64) -> Coin {
    Coin {
        outpoint: OutPoint::new(Txid::from_byte_array([number; 32]), 0),
        value,
        height: 1,
    }
}

fn paid(satoshis: u64) -> TxOut {
    TxOut {
        value: Amount::from_sat(satoshis),
        script_pubkey: script(7),
    }
}

/// What the rest of the test says about a transaction: what it pays out, its change, its fee.
fn told(plan: &Plan<'_>, made: &Transaction) -> (u64, Option<u64>, u64) {
    let own = |output: &&TxOut| output.script_pubkey == *plan.change;
    let change = made.output.iter().find(own).map(|it| it.value.to_sat());
    let all = body::sum(&made.output);
    let fee = plan.fee(made).unwrap();
    (all - change.unwrap_or_default(), change, fee)
}

/// One P2WPKH input and output have 110 virtual bytes (10.5 + 68 + 31, BIP 141), change adds 31.
#[test]
fn the_first_pays_its_rate_and_gives_the_rest_back() {
    let (outputs, own) = ([paid(50_000)], script(8));
    let made = |value: u64, rate: u64| {
        let plan = Plan {
            coins: &[coin(1, value)],
            outputs: &outputs,
            change: &own,
        };
        plan.first(rate).map(|made| told(&plan, &made))
    };
    assert_eq!(made(100_000, 10), Some((50_000, Some(48_590), 1_410)));
    // The least change, and one satoshi less.
    assert_eq!(made(51_704, 10), Some((50_000, Some(294), 1_410)));
    assert_eq!(made(51_703, 10), Some((50_000, None, 1_703)));
    // Enough to the satoshi, and one satoshi less.
    assert_eq!(made(51_100, 10), Some((50_000, None, 1_100)));
    assert_eq!(made(51_099, 10), None);
    assert_eq!(made(49_999, 0), None);
}

#[test]
fn a_replacement_spends_the_same_and_pays_the_same_for_more() {
    let (coins, outputs, own) = (
        [coin(1, 60_000), coin(2, 40_000)],
        [paid(50_000)],
        script(8),
    );
    let plan = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    let first = plan.first(10).unwrap();
    let before = Before {
        fee: plan.fee(&first).unwrap(),
        size: size(&first),
    };
    let replaced = |now: u64, most: u64| plan.replacing(before, Rates { now, most }, Rise::Least);
    let dearer = replaced(20, 100).unwrap();
    assert_eq!(dearer.input, first.input);
    assert_eq!(dearer.output[0], first.output[0]);
    assert_eq!(plan.fee(&dearer), Some(20 * before.size));
    // At the same rate it still pays what relaying it costs.
    let again = replaced(10, 100).unwrap();
    assert_eq!(plan.fee(&again), Some(before.fee + before.size));
    // The operator's limit.
    assert!(replaced(20, 20).is_some());
    assert_eq!(replaced(21, 20), None);
    assert_eq!(replaced(10, 10), None);
}

#[test]
fn change_pays_for_replacements_until_it_is_dust() {
    let (coins, outputs, own) = ([coin(1, 52_000)], [paid(50_000)], script(8));
    let plan = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    let first = plan.first(10).unwrap();
    assert_eq!(told(&plan, &first), (50_000, Some(590), 1_410));
    let before = Before {
        fee: 1_410,
        size: 141,
    };
    let replaced = |now: u64| plan.replacing(before, Rates { now, most: 1_000 }, Rise::Least);
    let without = replaced(15).unwrap();
    assert_eq!(told(&plan, &without), (50_000, None, 2_000));
    // 110 virtual bytes at 19 would be more than the coin has left.
    assert_eq!(replaced(19), None);
}

#[test]
fn what_cancels_pays_nobody_else_and_replaces_what_pays() {
    let (coins, outputs, own) = (
        [coin(1, 60_000), coin(2, 40_000)],
        [paid(50_000)],
        script(8),
    );
    let paying = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    let first = paying.first(10).unwrap();
    let before = Before {
        fee: paying.fee(&first).unwrap(),
        size: size(&first),
    };
    let plan = Plan {
        outputs: &[],
        ..paying
    };
    let rates = Rates { now: 1, most: 100 };
    let cancel = plan.replacing(before, rates, Rise::Least).unwrap();
    assert_eq!(cancel.input, first.input);
    assert_eq!(cancel.output.len(), 1);
    assert_eq!(cancel.output[0].script_pubkey, own);
    let fee = plan.fee(&cancel).unwrap();
    assert_eq!(fee, before.fee + size(&cancel));
    // Nothing is left to give back.
    let poor = [coin(1, before.fee + 300)];
    let plan = Plan {
        coins: &poor,
        ..plan
    };
    assert_eq!(plan.replacing(before, rates, Rise::Least), None);
}

/// It is about half as long, and pays more in all than a payment at the limit.
#[test]
fn what_cancels_replaces_a_payment_at_the_limit_and_is_raised_no_further() {
    let (coins, outputs, own) = ([coin(1, 90_000)], [paid(50_000)], script(8));
    let paying = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    let cancel = |rate: u64, rise: Rise| {
        let first = paying.first(rate).unwrap();
        let before = Before {
            fee: paying.fee(&first).unwrap(),
            size: size(&first),
        };
        let plan = Plan {
            outputs: &[],
            ..paying
        };
        let rates = Rates { now: 0, most: 100 };
        let made = plan.replacing(before, rates, rise);
        made.map(|made| plan.fee(&made).unwrap() - before.fee)
    };
    // Where the payment has 141 virtual bytes it has 110, and pays for these besides.
    assert_eq!(cancel(50, Rise::Least), Some(110));
    assert_eq!(cancel(100, Rise::Least), Some(110));
    assert_eq!(cancel(100, Rise::Quarter), None);
}

#[test]
fn a_replacement_is_dearer_by_the_byte_too() {
    let (coins, outputs, own) = ([coin(1, 60_000)], [paid(50_000)], script(8));
    let plan = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    // Half as long, at the same fee.
    let before = Before {
        fee: 2_000,
        size: 70,
    };
    let rates = Rates { now: 1, most: 100 };
    let made = plan.replacing(before, rates, Rise::Least).unwrap();
    let (fee, size) = (plan.fee(&made).unwrap(), size(&made));
    assert!(fee * before.size > before.fee * size, "{fee} for {size}");
}

#[test]
fn sizes_are_those_of_signed_transactions() {
    let made = |inputs: u8, outputs: usize| {
        let coins: Vec<_> = (0..inputs).map(|number| coin(number, 1_000)).collect();
        let plan = Plan {
            coins: &coins,
            outputs: &vec![paid(1); outputs],
            change: &script(8),
        };
        size(&plan.made(None))
    };
    // BIP 141: 10.5 + 68 for each input + 31 for each output.
    assert_eq!(made(1, 1), 110);
    assert_eq!(made(1, 2), 141);
    assert_eq!(made(2, 2), 209);
    assert_eq!(made(10, 1), 722);
}

#[test]
fn a_quarter_more_is_paid_up_to_the_limit_whatever_is_asked_now() {
    let (coins, outputs, own) = ([coin(1, 60_000)], [paid(50_000)], script(8));
    let plan = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    let paid = |fee: u64, most: u64| {
        let before = Before { fee, size: 141 };
        let rates = Rates { now: 1, most };
        let made = plan.replacing(before, rates, Rise::Quarter);
        made.map(|made| plan.fee(&made).unwrap())
    };
    assert_eq!(paid(1_410, 100), Some(1_762));
    assert_eq!(paid(141, 100), Some(282));
    // The operator's limit counts, and so does the least that nodes ask for.
    assert_eq!(paid(1_410, 12), Some(141 * 12));
    assert_eq!(paid(1_410, 11), Some(1_551));
    assert_eq!(paid(1_411, 11), None);
}

#[test]
fn every_transaction_is_of_version_3() {
    let (coins, outputs, own) = ([coin(1, 60_000)], [paid(50_000)], script(8));
    let plan = Plan {
        coins: &coins,
        outputs: &outputs,
        change: &own,
    };
    let cancel = Plan {
        outputs: &[],
        ..plan
    };
    for made in [plan.first(1), cancel.first(1)] {
        assert_eq!(made.unwrap().version, Version(3));
    }
}
