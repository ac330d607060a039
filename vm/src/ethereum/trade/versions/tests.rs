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
        besides: None,
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
    let none = versions.dearer(false, rate(1, 1), 9);
    assert_eq!((versions.cancels(true), none), (None, None));
    versions.signed.push(signed(80 * GWEI, 8, false));
    let price = |most, tip| Some(Price { most, tip });
    let limit = 108 * GWEI;
    let dearer = |rate, limit| versions.dearer(false, rate, limit);
    // Nothing is asked that the newest one does not pay: two rises are kept.
    assert_eq!(dearer(rate(1, 1), 114 * GWEI), price(90 * GWEI, 9));
    assert_eq!(dearer(rate(1, 1), 113 * GWEI), None);
    // One of them where that is enough for what is asked.
    let risen = dearer(rate(53 * GWEI, 10), limit);
    assert_eq!(risen, price(96 * GWEI, 10));
    let risen = dearer(rate(53 * GWEI, 10), 2 * limit);
    assert_eq!(risen, price(106 * GWEI + 10, 10));
    assert_eq!(dearer(rate(limit, 10), limit), price(limit, 10));
    assert_eq!(dearer(rate(81 * GWEI, 1), 90 * GWEI - 1), None);
    let base = dearer(rate(81 * GWEI, 1), 90 * GWEI);
    assert_eq!(base, price(90 * GWEI, 9));
    let cancelled = |limit| versions.dearer(true, rate(1, 1), limit);
    for limit in [90 * GWEI, limit, 114 * GWEI] {
        assert_eq!(cancelled(limit), price(90 * GWEI, 9), "{limit}");
    }
    assert_eq!(cancelled(90 * GWEI - 1), None);
    let first = |base| Some(Price::first(rate(base, 3), limit));
    assert_eq!(first(60 * GWEI), price(below(96 * GWEI), 3));
    assert_eq!(first(86 * GWEI), price(96 * GWEI, 3));
    assert_eq!(first(97 * GWEI), price(limit, 3));
}

#[test]
fn what_is_signed_lands_by_the_greater_base_of_two_and_with_a_tip() {
    let rate = |base, above, priority| FeeRate {
        above,
        ..FeeRate::new(base, priority)
    };
    for (rate, most, tip) in [
        (rate(8, 22, 2), 62, 2),
        (rate(8, 22, 0), 60, 1),
        (rate(0, 0, 0), 0, 0),
        (rate(0, 0, 5), 5, 5),
    ] {
        let first = Price::first(rate, GWEI);
        assert_eq!(first, Price { most, tip }, "{rate:?}");
    }
    // Near the limit, too, in what replaces it as well.
    let apart = rate(50, 50, 2);
    assert_eq!(Price::first(apart, 108).most, 108);
    let mut versions = Versions::of(&intent(), U256::ZERO).unwrap();
    versions.signed.push(signed(96, 2, false));
    let risen = versions.dearer(false, apart, 108);
    assert_eq!(risen, Some(Price { most: 108, tip: 3 }));
    let level = versions.dearer(false, rate(50, 0, 2), 108);
    assert_eq!(level, None);
    // Where both were nothing a replacement is more than that.
    let mut versions = Versions::of(&intent(), U256::ZERO).unwrap();
    versions.signed.push(signed(0, 0, false));
    let dearer = versions.dearer(false, rate(0, 0, 0), GWEI);
    assert_eq!(dearer, Some(Price { most: 1, tip: 1 }));
}

/// Whether nodes that keep one transaction take the other instead.
fn replaces(kept: &Version, next: Price) -> bool {
    let more = |kept: u128, next: u128| next > kept && next * 10 >= kept * 11;
    more(kept.maxFee, next.most) && more(kept.maxPriorityFee, next.tip)
}

/// What is signed each time that an attempt is stuck, as long as anything is.
fn stuck(versions: &mut Versions, cancel: bool, rate: FeeRate, limit: u128) {
    for _ in 0..2 * MOST_VERSIONS {
        let cancels = versions.cancels(cancel);
        let next = cancels.and_then(|cancels| versions.dearer(cancels, rate, limit));
        let (Some(cancels), Some(next)) = (cancels, next) else {
            return;
        };
        let newest = versions.signed.last().unwrap();
        assert!(next.most <= limit && replaces(newest, next), "{next:?}");
        versions.signed.push(signed(next.most, next.tip, cancels));
    }
    panic!("no end");
}

#[test]
fn a_tip_that_is_asked_after_a_lie_replaces_what_nodes_keep() {
    let base = 30 * GWEI;
    let (lie, honest) = (FeeRate::new(base, 0), FeeRate::new(base, 2 * GWEI));
    for limit in [1_000_000, 1_000, 67, 60, 35].map(|limit| limit * GWEI) {
        let mut versions = Versions::of(&intent(), U256::ZERO).unwrap();
        let first = Price::first(lie, limit);
        assert!(first.tip > 0 && first.most >= base, "{first:?}");
        versions.signed.push(signed(first.most, first.tip, false));
        for cancel in [false, true] {
            stuck(&mut versions, cancel, lie, limit);
            let newest = versions.signed.last().unwrap();
            assert!(newest.cancels == cancel && newest.maxPriorityFee < GWEI);
            // Where gas costs nearly what the operator allows there is room for one of both.
            if cancel && limit == 35 * GWEI {
                continue;
            }
            for cancel in [cancel, true] {
                let cancels = versions.cancels(cancel).unwrap();
                let next = versions.dearer(cancels, honest, limit).unwrap();
                assert!(replaces(newest, next), "{limit}: {newest:?}, {next:?}");
                assert!(next.most <= limit && next.tip == 2 * GWEI, "{next:?}");
            }
        }
    }
    // Where there is none, what no node has kept is replaced all the same.
    let limit = 31 * GWEI;
    let first = Price::first(lie, limit);
    let mut versions = Versions::of(&intent(), U256::ZERO).unwrap();
    versions.signed.push(signed(first.most, first.tip, false));
    assert_eq!(versions.dearer(false, lie, limit), None);
    let (most, tip) = (limit, 2 * GWEI);
    let next = versions.dearer(false, honest, limit);
    assert_eq!(next, Some(Price { most, tip }));
}

#[test]
fn what_is_cancelled_stays_so_and_many_versions_only_get_what_is_needed() {
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
    // Half of the versions, and of their bytes, are left to what is needed.
    let dearer = |versions: &Versions, cancel| {
        let next = versions.dearer(cancel, FeeRate::new(1, 0), GWEI);
        let base = versions.dearer(cancel, FeeRate::new(2, 1), GWEI);
        assert!(base.is_some());
        next.is_some()
    };
    let mut large = signed(1, 1, false);
    large.raw = vec![8; MOST_BYTES / 2 + 1].into();
    for full in [vec![signed(1, 1, false); MOST_VERSIONS / 2], vec![large]] {
        versions.signed = full;
        assert!(!dearer(&versions, false));
        assert!(dearer(&versions, true));
    }
    versions.signed = vec![signed(1, 1, false); MOST_VERSIONS / 2 - 1];
    assert!(dearer(&versions, false));
}
