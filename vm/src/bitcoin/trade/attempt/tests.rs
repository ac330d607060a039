use bitcoin::{OutPoint, ScriptBuf, Txid, hashes::Hash};

use super::*;
use crate::{
    trade::{Call, Draft, Landing as _},
    types::B256,
};

fn script(byte: u8) -> ScriptBuf {
    let mut script = vec![0, 20];
    script.extend([byte; 20]);
    script.into()
}

fn account(byte: u8) -> Address {
    Address::from_parts("account", vec![byte; 20])
}

fn intent(satoshis: u64) -> Intent {
    let paid = TxOut {
        value: bitcoin::Amount::from_sat(satoshis),
        script_pubkey: script(7),
    };
    let outputs = vec![paid, body::note(B256::repeat_byte(0xee))];
    Intent {
        draft: Content::Outputs(outputs).draft(&account(1), satoshis),
        work: 1_000,
        besides: None,
        spends: Vec::new(),
    }
}

fn own(number: u64) -> Own {
    let coin = |byte: u8| Coin {
        outpoint: OutPoint::new(Txid::from_byte_array([byte; 32]), 1),
        value: 60_000,
        height: 5,
    };
    Own::of(&intent(50_000), number, vec![coin(1), coin(2)]).unwrap()
}

#[test]
fn an_attempt_is_stored_with_all_that_was_signed_for_it() {
    let (mut own, change) = (own(3), script(8));
    let first = own.plan(false, &change).first(10).unwrap();
    own.signed.push(Version::of(&first, false, 9));
    let cancel = own.plan(true, &change).first(30).unwrap();
    own.signed.push(Version::of(&cancel, true, 10));
    let attempt = own.attempt(&account(0), Vec::new()).unwrap();
    assert_eq!(Own::read(&attempt), Ok(own.clone()));
    let ids = [&first, &cancel].map(|one| one.compute_txid().to_string());
    let shown = attempt.signed.iter();
    let shown: Vec<_> = shown.map(|one| (one.id.clone(), one.cancels)).collect();
    assert_eq!(shown, [(ids[0].clone(), false), (ids[1].clone(), true)]);
    // Its payments, and the dearer of both fees: 178 virtual bytes with signatures, which these do not have.
    let fees = own.signed.iter().map(|one| own.paid(one).unwrap().fee);
    let most = fees.max().unwrap();
    assert_eq!(most, 178 * 30);
    assert_eq!(attempt.spends, [(account(0), Amount::from(50_000 + most))]);
    assert_eq!(attempt.resources.len(), 2);
    assert_eq!(attempt.resources[0], coin::output(&own.coins[0].outpoint));
}

#[test]
fn bytes_of_another_format_are_refused() {
    let attempt = own(3).attempt(&account(0), Vec::new()).unwrap();
    for wrong in [&[][..], &[2], &attempt.own[1..], &attempt.own[..9]] {
        let wrong = Attempt {
            own: wrong.to_vec().into(),
            ..attempt.clone()
        };
        assert!(Own::read(&wrong).is_err());
    }
    for wrong in [&[][..], &[1], &[2, 0, 0, 0, 0, 0, 0, 0, 3], &[1; 10]] {
        assert!(numbered::count(wrong).is_err(), "{wrong:?}");
    }
    let call = Intent {
        draft: Draft::call(Call::nothing(&account(1))),
        ..intent(1)
    };
    assert!(Own::of(&call, 0, Vec::new()).is_err());
}

#[test]
fn an_account_knows_the_attempts_that_it_has_come_to() {
    let stored = numbered::counted(4);
    assert_eq!(numbered::count(&stored), Ok(4));
    let id = |number| own(number).attempt(&account(0), Vec::new()).unwrap().id;
    assert_eq!(Landing.knows(&stored, &id(3)), Ok(true));
    assert_eq!(Landing.knows(&stored, &id(4)), Ok(false));
    assert!(Landing.knows(&stored, &[1]).is_err());
    assert_eq!(Landing.next(&stored), Ok(None));
    assert_eq!(
        Landing.standing(&stored, &HEIGHT.bytes(9), &[]),
        Ok(Standing::default())
    );
    assert!(Landing.standing(&[9], &HEIGHT.bytes(9), &[]).is_err());
}

#[test]
fn outputs_and_heights_have_names() {
    let label = |resource: &[u8]| Landing.label(resource).unwrap().to_string();
    assert_eq!(label(&HEIGHT.bytes(812)), "height 812");
    let spent = coin::output(&own(0).coins[0].outpoint);
    assert_eq!(label(&spent), format!("output {}:1", "01".repeat(32)));
    assert!(Landing.label(&[1, 2]).is_err());
}
