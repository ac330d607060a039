use bitcoin::{OutPoint, ScriptBuf, Txid, hashes::Hash};

use super::*;

fn script(byte: u8) -> ScriptBuf {
    let mut script = vec![0, 20];
    script.extend([byte; 20]);
    script.into()
}

fn coins(values: &[u64]) -> Vec<Coin> {
    let each = (1..).zip(values).map(|(number, value)| Coin {
        outpoint: OutPoint::new(Txid::from_byte_array([number; 32]), 0),
        value: *value,
        height: 1,
    });
    each.collect()
}

fn chosen(values: &[u64], paid: u64, (rates, work): (Rates, u64)) -> Result<Choice, SubmitError> {
    let outputs = [TxOut {
        value: Amount::from_sat(paid),
        script_pubkey: script(7),
    }];
    let plan = Plan {
        coins: &[],
        outputs: &outputs,
        change: &script(8),
    };
    choose(&coins(values), &plan, (rates, work))
}

const RATES: Rates = Rates { now: 10, most: 500 };

fn change(choice: &Choice) -> u64 {
    let own = |output: &&TxOut| output.script_pubkey == script(8);
    let change = choice.made.output.iter().find(own);
    change.map_or(0, |output| output.value.to_sat())
}

#[test]
fn change_has_room_for_a_replacement_at_eight_times_the_rate() {
    // 50,000 and 1,410 of fee leave 90: nothing to raise the fee from.
    let two = chosen(&[51_500, 20_000], 50_000, (RATES, 1_000)).unwrap();
    assert_eq!(two.coins.len(), 2);
    let plan = Plan {
        coins: &two.coins,
        outputs: &two.made.output[..1],
        change: &script(8),
    };
    let before = version::Before {
        fee: plan.fee(&two.made).unwrap(),
        size: version::size(&two.made),
    };
    let dearer = Rates { now: 80, most: 500 };
    let made = plan.replacing(before, dearer, version::Rise::Least);
    assert!(made.is_some());
    // Where there is nothing else, the payment is made all the same.
    let one = chosen(&[51_500], 50_000, (RATES, 1_000)).unwrap();
    assert_eq!((one.coins.len(), change(&one)), (1, 0));
    // Room beyond the operator's limit is of no use.
    let most = Rates { now: 10, most: 10 };
    let one = chosen(&[51_800, 20_000], 50_000, (most, 1_000)).unwrap();
    assert_eq!((one.coins.len(), change(&one)), (1, 390));
}

/// A stranger's tiny orders would else hold what a large one needs.
#[test]
fn a_payment_holds_the_smallest_output_that_is_enough() {
    let held = |paid| {
        let choice = chosen(&[1_000_000, 100_000, 3_000], paid, (RATES, 1_000)).unwrap();
        choice
            .coins
            .iter()
            .map(|coin| coin.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(held(5_000), [100_000]);
    assert_eq!(held(500_000), [1_000_000]);
    assert_eq!(held(1_050_000), [1_000_000, 100_000]);
}

/// What cannot pay alone is no output that is left to others: anybody sends the account such.
#[test]
fn a_small_payment_leaves_a_quarter_of_the_outputs_that_are_as_large() {
    let beside = |values: &[u64], held: &[u64], paid: u64| {
        let choice = chosen(values, paid, (RATES, 1_000)).unwrap();
        crowds_out(&choice, paid, (&coins(values), &coins(held)))
    };
    let crowds =
        |values: &[u64], held: usize, paid: u64| beside(values, &vec![1_000_000; held], paid);
    let (one, two) = ([1_000_000], [1_000_000; 2]);
    let dusty: Vec<u64> = one.iter().copied().chain([1_000; 100]).collect();
    assert!(crowds(&one, 3, 5_000));
    assert!(crowds(&dusty, 3, 5_000));
    assert!(!crowds(&two, 2, 5_000));
    assert!(crowds(&two, 6, 5_000));
    // Of three outputs none is kept.
    assert!(!crowds(&one, 2, 5_000));
    // Several that are spent together count as so many.
    assert!(crowds(&[15_000, 15_000], 6, 5_000));
    assert!(!crowds(&[15_000, 15_000], 6, 8_000));
    // Held ones that are smaller leave nothing less than they took.
    assert!(!beside(&one, &[999_999; 50], 5_000));
    assert!(!beside(&one, &[1_000_000, 1_000_000, 999_999], 5_000));
}

#[test]
fn what_does_not_fit_its_work_is_made_without_room_or_not_at_all() {
    let tight = chosen(&[51_500, 20_000], 50_000, (RATES, 150)).unwrap();
    assert_eq!(tight.coins.len(), 1);
    let refused = chosen(&[30_000, 30_000], 50_000, (RATES, 150));
    assert!(matches!(refused, Err(SubmitError::Read(_))), "{refused:?}");
}

#[test]
fn dust_and_what_is_missing_are_told() {
    let dust = chosen(&[51_500], 293, (RATES, 1_000)).unwrap_err();
    assert!(dust.to_string().contains("294"), "{dust}");
    let short = chosen(&[20_000, 10_000], 50_000, (RATES, 1_000));
    let Err(SubmitError::Short { available, needed }) = short else {
        panic!("{short:?}");
    };
    assert_eq!(available, types::Amount::from(30_000));
    // Two inputs and an output: 10.5 + 2 x 68 + 31 virtual bytes.
    assert_eq!(needed, types::Amount::from(50_000 + 1_780));
}

#[test]
fn work_is_that_of_the_transaction_that_is_made() {
    let outputs = [TxOut {
        value: Amount::from_sat(50_000),
        script_pubkey: script(7),
    }];
    let plan = Plan {
        coins: &[],
        outputs: &outputs,
        change: &script(8),
    };
    let taken = |values: &[u64]| work(&coins(values), &plan, RATES);
    assert_eq!(taken(&[100_000]), Ok(141));
    assert_eq!(taken(&[51_500]), Ok(110));
    assert_eq!(taken(&[40_000, 40_000]), Ok(209));
    assert!(matches!(taken(&[40_000]), Err(Unselected::Short { .. })));
}

/// With version 3 nothing larger is passed on.
#[test]
fn nothing_is_made_that_is_larger_than_its_version_allows() {
    let most = choose_many(140).unwrap();
    assert!(version::size(&most.made) <= version::LARGEST);
    let larger = choose_many(150);
    assert!(matches!(larger, Err(SubmitError::Read(_))));
}

fn choose_many(count: u8) -> Result<Choice, SubmitError> {
    let paid = u64::from(count) * 19_900;
    let rates = Rates { now: 1, most: 1 };
    chosen(&vec![20_000; usize::from(count)], paid, (rates, 50_000))
}
