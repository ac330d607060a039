use bitcoin::OutPoint;
use proptest::{collection, prelude::*, sample};

use crate::{
    OrderCall,
    bitcoin::{
        network::{LOCAL, MAIN},
        trade::{
            coin::Coin,
            version::{self, Before, Plan, Rates, Rise},
        },
    },
    types::{Amount, Bytes},
};

use super::*;

const SOLVER: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
const SHOP: &str = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT";
const FRIEND: &str = "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy";
const ORDER: B256 = B256::repeat_byte(0xee);

fn address(text: &str) -> Address {
    Address::from_parts(text, MAIN.encode_address(text).unwrap())
}

fn native() -> Address {
    address(MAIN.native())
}

fn payout(to: &str, satoshis: u64) -> Payout {
    Payout {
        to: address(to),
        currency: native(),
        amount: Amount::from(satoshis),
    }
}

fn filled(payments: &[Payout], calls: &[OrderCall]) -> Result<Fill, CodecError> {
    MAIN.fill(&FillTerms {
        solver: &address(SOLVER),
        router: None,
        proxy: None,
        payments,
        calls,
        authorizations: &[],
        order: ORDER,
    })
}

fn refunded(payment: &Payout) -> Draft {
    let sent = MAIN.send(&PaymentTerms {
        from: &address(SOLVER),
        to: &payment.to,
        currency: &payment.currency,
        amount: payment.amount,
        order: ORDER,
    });
    sent.unwrap()
}

fn content(draft: &Draft) -> Vec<TxOut> {
    let Ok(Content::Outputs(outputs)) = Content::of(draft) else {
        panic!("no outputs");
    };
    outputs
}

/// What outputs name.
fn notes(outputs: &[TxOut]) -> Vec<TxOut> {
    let notes = outputs.iter().filter(|it| it.script_pubkey.is_op_return());
    notes.cloned().collect()
}

fn outputs(draft: &Draft) -> Vec<(String, u64)> {
    let shown = |output: &TxOut| {
        let text = MAIN.address_text(&output.script_pubkey);
        (text.unwrap_or_default(), output.value.to_sat())
    };
    content(draft).iter().map(shown).collect()
}

#[test]
fn a_fill_pays_each_and_names_its_order() {
    let fill = filled(&[payout(SHOP, 70_000), payout(FRIEND, 600)], &[]).unwrap();
    assert!(!fill.routed && fill.spender.is_none());
    assert_eq!(fill.draft.value, Amount::from(70_600));
    let named = (String::new(), 0);
    let paid = [(SHOP.to_owned(), 70_000), (FRIEND.to_owned(), 600), named];
    assert_eq!(outputs(&fill.draft), paid);
    assert_eq!(content(&fill.draft).last(), Some(&body::note(ORDER)));
}

#[test]
fn what_pays_nobody_is_no_payment() {
    let refused = |payments: &[Payout]| filled(payments, &[]).unwrap_err().to_string();
    assert!(refused(&[]).contains("Nothing"));
    assert!(refused(&[payout(SOLVER, 9_000)]).contains("itself"));
    assert!(refused(&[payout(MAIN.native(), 9_000)]).contains("zeros"));
    assert!(refused(&[payout(SHOP, 0)]).contains("amount"));
    assert!(refused(&[payout(SHOP, 2_100_000_000_000_001)]).contains("amount"));
    let token = Payout {
        currency: address(SHOP),
        ..payout(SHOP, 9_000)
    };
    assert!(refused(&[token]).contains("currencies"));
    let much = Payout {
        amount: Amount::MAX,
        ..payout(SHOP, 1)
    };
    assert!(refused(&[much]).contains("amount"));
}

#[test]
fn calls_and_addresses_of_other_networks_are_refused() {
    let call = OrderCall {
        to: address(SHOP),
        data: Bytes::new(),
        value: Amount::ZERO,
    };
    assert!(filled(&[payout(SHOP, 9_000)], &[call]).is_err());
    let sent = LOCAL.send(&PaymentTerms {
        from: &address(SOLVER),
        to: &address(SHOP),
        currency: &native(),
        amount: Amount::from(9_000),
        order: ORDER,
    });
    assert!(sent.is_err());
}

#[test]
fn a_payment_can_be_given_another_name() {
    let sent = refunded(&payout(SHOP, 9_000));
    let renamed = MAIN.name(sent.clone(), B256::ZERO).unwrap();
    assert_eq!((renamed.value, &renamed.from), (sent.value, &sent.from));
    assert_eq!(outputs(&renamed), outputs(&sent));
    assert_ne!(renamed, sent);
    assert_eq!(MAIN.name(renamed, ORDER).unwrap(), sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Of a transaction that names several orders, or none, oracles attest no payment.
    #[test]
    fn a_draft_and_each_of_its_versions_name_one_order(
        paid in collection::vec((sample::select(vec![SHOP, FRIEND]), 600_u64..1_000_000), 1..6),
        (other, rate) in (any::<[u8; 32]>(), 1_u64..50),
    ) {
        let paid: Vec<_> = paid.into_iter().map(|(to, satoshis)| payout(to, satoshis)).collect();
        let (own, other) = (MAIN.script(SOLVER).unwrap(), B256::from(other));
        let coins = [Coin { outpoint: OutPoint::null(), value: 10_000_000, height: 1 }];
        for made in [filled(&paid, &[]).unwrap().draft, refunded(&paid[0])] {
            let renamed = MAIN.name(made.clone(), other).unwrap();
            for (draft, order) in [(made, ORDER), (renamed, other)] {
                let (note, outputs) = (body::note(order), content(&draft));
                prop_assert_eq!(notes(&outputs), std::slice::from_ref(&note));
                let plan = Plan { coins: &coins, outputs: &outputs, change: &own };
                let cancels = Plan { outputs: &[], ..plan };
                let first = plan.first(rate).unwrap();
                prop_assert_eq!(notes(&first.output), std::slice::from_ref(&note));
                let before = Before { fee: plan.fee(&first).unwrap(), size: version::size(&first) };
                for rise in [Rise::Least, Rise::Quarter] {
                    let rates = Rates { now: 2 * rate, most: 1_000 };
                    let dearer = plan.replacing(before, rates, rise).unwrap();
                    prop_assert_eq!(notes(&dearer.output), std::slice::from_ref(&note));
                    // What cancels is for no order.
                    let cancel = cancels.replacing(before, rates, rise).unwrap();
                    prop_assert!(notes(&cancel.output).is_empty());
                }
            }
        }
    }
}
