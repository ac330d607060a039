use super::{
    super::{body::address, fixtures::key, pay},
    *,
};
use crate::{
    trade::{Call, Draft, Landing as _, PaymentTerms},
    types::B256,
};

fn intent(amount: u64) -> Intent {
    let draft = pay::send(&PaymentTerms {
        from: &address(&key(1)),
        to: &address(&key(2)),
        currency: &address(&key(0)),
        amount: Amount::from(amount),
        order: B256::repeat_byte(3),
    });
    Intent {
        draft: draft.unwrap(),
        work: 40,
        besides: None,
        spends: Vec::new(),
    }
}

#[test]
fn attempts_are_read_as_they_are_written() {
    let mut own = Own::of(&intent(5), (7, 40_000)).unwrap();
    assert_eq!((own.number(), own.signed.len()), (7, 0));
    for signature in [[8; 64], [9; 64]] {
        own.signed.push(Signed {
            raw: vec![1, 2, 3],
            signature,
            slot: 100,
            last: 250,
            fee: 5_000,
        });
    }
    let spends = vec![(address(&key(0)), Amount::from(5_005))];
    let attempt = own.attempt(spends.clone()).unwrap();
    assert_eq!(Own::read(&attempt), Ok(own.clone()));
    assert_eq!(
        (&attempt.resources[..], attempt.spends),
        (&[attempt.id][..], spends)
    );
    let ids: Vec<_> = attempt.signed.iter().map(|one| one.id.as_str()).collect();
    let expected = [[8; 64], [9; 64]].map(|id| bs58::encode(id).into_string());
    assert_eq!(ids, expected);
    assert!(attempt.signed.iter().all(|one| !one.cancels));
}

#[test]
fn attempts_differ_by_number_and_by_payment() {
    let id = |number, amount| Own::of(&intent(amount), (number, 1)).unwrap().id;
    assert_eq!(id(1, 5), id(1, 5));
    assert_ne!(id(1, 5), id(2, 5));
    assert_ne!(id(1, 5), id(1, 6));
    let call = Intent {
        draft: Draft::call(Call::nothing(&address(&key(1)))),
        ..intent(1)
    };
    assert!(Own::of(&call, (1, 1)).is_err());
}

#[test]
fn other_formats_are_refused() {
    let own = Own::of(&intent(5), (7, 1)).unwrap();
    let attempt = own.attempt(Vec::new()).unwrap();
    for wrong in [
        Vec::new(),
        [&[2], &attempt.own[1..]].concat(),
        attempt.own[..20].to_vec(),
        [&attempt.own[..], &[0]].concat(),
    ] {
        let attempt = Attempt {
            own: wrong.into(),
            ..attempt.clone()
        };
        assert!(Own::read(&attempt).is_err());
    }
    for account in [&[][..], &[1], &[2, 0, 0, 0, 0, 0, 0, 0, 5]] {
        assert!(numbered::count(account).is_err());
        assert!(Landing.standing(account, &[], &[]).is_err());
    }
}

#[test]
fn account_knows_the_attempts_that_it_has_come_to() {
    let account = numbered::counted(8);
    assert_eq!(numbered::count(&account), Ok(8));
    let of = |number| Own::of(&intent(5), (number, 1)).unwrap().id;
    assert_eq!(Landing.knows(&account, &of(7)), Ok(true));
    assert_eq!(Landing.knows(&account, &of(8)), Ok(false));
    assert!(Landing.knows(&account, &[1, 2]).is_err());
    assert_eq!(Landing.next(&account), Ok(None));
    assert_eq!(
        Landing.standing(&account, &SLOT.bytes(9), &[]),
        Ok(Standing::default())
    );
    assert_eq!(Landing.label(&SLOT.bytes(9)).unwrap().to_string(), "slot 9");
    let label = Landing.label(&of(7)).unwrap().to_string();
    assert!(label.starts_with("attempt 7-"), "{label}");
    assert!(Landing.label(&[1]).is_err());
}
