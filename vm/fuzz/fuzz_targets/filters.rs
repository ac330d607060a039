//! `filters` of the listing: refused, or compared with a request, without a panic and within bounds.
#![no_main]

use intentd::request::{
    filter::{Asked, Caller, Edition, matches},
    name::Name,
    status::Status,
    summary::{Kind, Side, Summary},
};
use libfuzzer_sys::fuzz_target;

fn summary() -> Summary {
    let side = |chain| Side {
        chain,
        currency: Name::of("0x00"),
        symbol: "ETH".into(),
    };
    Summary {
        id: Default::default(),
        order_id: Default::default(),
        status: Status::Success,
        fail_reason: None,
        refund_fail_reason: None,
        sender: Name::of("0x01"),
        recipient: Name::of("bc1q"),
        deposit_address: None,
        depositor: None,
        api_key: None,
        referrer: None,
        kind: Kind::Bridge,
        origin: side(1),
        destination: side(2),
        created_at: 1,
        updated_at: 2,
        origin_blocks: vec![3],
        destination_blocks: Vec::new(),
        amount: Some(4),
        app_fees: None,
        fill_time: None,
        features: 0,
        transactions: Vec::new(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let pairs = [("filters".to_owned(), text.to_owned())];
    let asked = Asked::parse(Edition::V3, pairs, &Caller::default(), &[]);
    let Ok(asked) = asked else {
        return;
    };
    assert!(asked.query.any.len() <= 16);
    let again = asked.query.clone();
    assert_eq!(asked.query.fingerprint(), again.fingerprint());
    let found = matches(&asked.query, &summary());
    assert_eq!(found, matches(&again, &summary()));
    assert!(asked.query.lookups().is_none_or(|all| all.len() <= 64));
});
