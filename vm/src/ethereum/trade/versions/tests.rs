use super::*;
use crate::types::B256;

const GWEI: u128 = 1_000_000_000;

fn intent() -> Intent {
    let account = |byte| spelled(EvmAddress::repeat_byte(byte));
    Intent {
        draft: Draft {
            from: account(1),
            value: U256::from(5),
            body: Body::Call {
                to: account(2),
                data: vec![9].into(),
                authorizations: vec![Authorization {
                    chain_id: 1,
                    address: account(3),
                    nonce: 2,
                    y_parity: 1,
                    r: B256::repeat_byte(4),
                    s: B256::repeat_byte(5),
                }],
            },
        },
        work: 300,
        spends: Vec::new(),
    }
}

fn signed(most: u128, tip: u128, cancels: bool) -> Version {
    Version {
        hash: B256::repeat_byte(7),
        raw: vec![8].into(),
        gas: 300,
        maxFee: most,
        maxPriorityFee: tip,
        cancels,
    }
}

#[test]
fn versions_are_read_as_written_and_nothing_else_is() {
    let mut versions = Versions::of(&intent(), U256::from(7)).unwrap();
    versions.signed = vec![signed(3, 1, false), signed(4, 2, true)];
    let bytes = versions.bytes();
    assert_eq!(Versions::read(&bytes), Ok(versions.clone()));
    let draft = intent().draft;
    assert_eq!(versions.draft(&draft.from), draft);
    // Gas of the dearest one, bytes and value.
    assert_eq!(versions.native(), U256::from(300 * 4 + 7 + 5));
    let mut other = bytes.to_vec();
    other[0] = 2;
    for foreign in [&other[..], &[], &bytes[..9]] {
        assert!(Versions::read(foreign).is_err());
    }
}

#[test]
fn a_replacement_pays_an_eighth_more_and_what_is_asked_up_to_the_limit() {
    let rate = FeeRate::new;
    let mut versions = Versions::of(&intent(), U256::ZERO).unwrap();
    assert_eq!(
        (versions.cancels(true), versions.dearer(rate(1, 1), 9)),
        (None, None)
    );
    versions.signed.push(signed(80 * GWEI, 8, false));
    let price = |most, tip| Some(Price { most, tip });
    let limit = 100 * GWEI;
    assert_eq!(versions.dearer(rate(1, 1), limit), price(90 * GWEI, 9));
    let risen = versions.dearer(rate(47 * GWEI, 10), limit);
    assert_eq!(risen, price(94 * GWEI + 10, 10));
    assert_eq!(versions.dearer(rate(limit, 10), limit), price(limit, 10));
    assert_eq!(versions.dearer(rate(1, 1), 90 * GWEI - 1), None);
    let first = Price::first(rate(60 * GWEI, 3), limit);
    assert_eq!(Some(first), price(limit, 3));
}

#[test]
fn what_is_cancelled_stays_so_and_many_versions_only_get_cancelled() {
    let mut versions = Versions::of(&intent(), U256::ZERO).unwrap();
    versions.signed.push(signed(1, 1, false));
    assert_eq!(
        (versions.cancels(false), versions.cancels(true)),
        (Some(false), Some(true))
    );
    versions.signed = vec![signed(1, 1, false); MOST_VERSIONS];
    assert_eq!(
        (versions.cancels(false), versions.cancels(true)),
        (None, Some(true))
    );
    versions.signed.push(signed(1, 1, true));
    assert_eq!(
        (versions.cancels(false), versions.cancels(true)),
        (None, None)
    );
    versions.signed.truncate(1);
    versions.signed.push(signed(1, 1, true));
    assert_eq!(versions.cancels(false), Some(true));
}
