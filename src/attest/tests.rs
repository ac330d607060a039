//! The judges over hostile histories of fills, refunds and deposits; each has a valid case next to the invalid ones.

mod bitcoin;

use std::collections::{HashMap, HashSet};

use alloy::primitives::aliases::U1024;
use proptest::{collection, sample};
use vm::{B256, ChainId, FAMILIES, FillRouters, PaymentKind, Transaction, U256};

use super::{
    backing,
    claim::MOST_ITEMS,
    deposit, fill,
    fixtures::{
        self, DEADLINE, DEPOSITOR, Fixture, NATIVE, RECIPIENT, REFUND_DEADLINE, ROUTER, TOKEN,
        address,
    },
    order::Terms,
    paid::{Expected, Ledger, Payer},
    refund::Refund,
    statement::{Mode, Outcome},
};

/// The refusal and the change that causes it.
type Case = (&'static str, fn(&mut Fixture));

fn router() -> PaymentKind {
    PaymentKind::Router(address(ROUTER))
}

/// The code of a fill's refusal; `OK` for a valid one.
fn filled(fixture: &Fixture) -> &'static str {
    fixture
        .judge_fill()
        .map_or_else(|refusal| refusal.code(), |_| "OK")
}

fn refunded(fixture: &Fixture) -> &'static str {
    fixture
        .judge_refund()
        .map_or_else(|refusal| refusal.code(), |_| "OK")
}

fn filling(change: impl FnOnce(&mut Fixture)) -> &'static str {
    filled(&Fixture::new().with(change))
}

fn refunding(change: impl FnOnce(&mut Fixture)) -> &'static str {
    refunded(&Fixture::new().with(change))
}

#[test]
fn honest_fill_and_refund_hold_and_tell_what_served() {
    let fixture = Fixture::new();
    let (difference, served) = fixture.judge_fill().unwrap();
    assert_eq!(difference.to_string(), "0");
    assert_eq!((served.len(), served[0].index), (1, 0));
    assert_eq!(served[0].chain.as_str(), "base");
    assert_eq!(fixture.judge_refund().unwrap().len(), 1);
}

#[test]
fn solver_signature_is_over_this_order_by_this_solver() {
    let cases: &[Case] = &[
        ("ORDER_SIGNATURE_INVALID", |s| s.signature = "0x".into()),
        ("ORDER_SIGNATURE_INVALID", |s| {
            s.signature = "garbage".into();
        }),
        ("ORDER_SIGNATURE_INVALID", |s| s.order.salt = "2".into()),
        ("ORDER_SIGNATURE_INVALID", |s| {
            s.order.solver = NATIVE.into();
        }),
        ("ORDER_SIGNATURE_INVALID", |s| {
            s.order.solver_chain_id = "zzz".into();
        }),
        ("ORDER_SIGNATURE_INVALID", |s| s.order.output.deadline += 1),
        // The 64-byte form of EIP-2098 is refused.
        ("ORDER_SIGNATURE_INVALID", |s| s.signature.truncate(2 + 128)),
        ("INVALID_REQUEST", |s| s.order.salt = "abc".into()),
        ("INVALID_REQUEST", |s| {
            s.order.inputs[0].payment.currency = "0xabc".into();
        }),
        // Bytes that are no account and no currency.
        ("INVALID_REQUEST", |s| {
            s.order.inputs[0].payment.currency.truncate(40);
        }),
        ("INVALID_REQUEST", |s| {
            s.order.inputs[0].refunds[0].recipient.push_str("00");
        }),
        ("INVALID_REQUEST", |s| {
            s.order.output.payments[0].recipient = "0x".into();
        }),
        ("INVALID_REQUEST", |s| {
            s.order.output.payments[0]
                .currency
                .push_str(&"00".repeat(12));
        }),
        ("CHAIN_NOT_AVAILABLE", |s| {
            s.order.output.chain_id = "nochain".into();
        }),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        assert_eq!(filling(change), *code, "{at}");
    }
}

#[test]
fn inputs_name_each_deposit_of_the_order_once() {
    let cases: &[Case] = &[
        ("INPUT_MISSING", |s| s.inputs.clear()),
        ("INPUT_MISSING", |s| s.inputs[0].index = 1),
        ("INPUT_ONCHAIN_ID_REPEATED", |s| {
            s.inputs.push(s.inputs[0].clone());
        }),
        ("INPUT_ONCHAIN_ID_REPEATED", |s| {
            let mut again = s.inputs[0].clone();
            again.onchain_id = again.onchain_id.to_uppercase();
            again.index = 1;
            s.inputs.push(again);
        }),
        ("INPUT_REPEATED", |s| {
            let mut again = s.inputs[0].clone();
            again.onchain_id = "0x1".into();
            s.inputs.push(again);
        }),
        ("INPUT_INVALID", |s| {
            s.inputs[0].onchain_id = format!("0x{}", "00".repeat(32));
        }),
        ("INPUT_INVALID", |s| {
            s.deposits[0].deposits()[0].id = "0x12".into();
        }),
        ("INPUT_CURRENCY_MISMATCH", |s| {
            s.deposits[0].deposits()[0].currency = address(TOKEN);
        }),
        ("DEPOSIT_NAMED_BY_OTHER", |s| {
            s.deposits[0].deposits()[0].named_by_other = true;
        }),
        ("TRANSACTION_MISSING", |s| {
            s.deposits[0].found = Transaction::Missing;
        }),
        ("TRANSACTION_REVERTED", |s| {
            s.deposits[0].found = Transaction::Failed(vm::testing::failure(fixtures::block(10)));
        }),
        ("TRANSACTION_NOT_FINALIZED", |s| {
            s.deposits[0].head.block.number = 19;
        }),
        ("TRANSACTION_NOT_FINALIZED", |s| {
            s.deposits[0].head.block.time -= 1;
        }),
        ("DEPOSIT_UNREADABLE", |s| {
            s.deposits[0].receipt().deposits = Err(vm::Refusal("two depositories".into()));
        }),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        assert_eq!(filling(change), *code, "fill {at}");
        assert_eq!(refunding(change), *code, "refund {at}");
    }
}

#[test]
fn fill_is_in_time_final_for_this_order_and_enough() {
    let cases: &[Case] = &[
        ("OK", |s| s.fill.receipt().block.time = DEADLINE - 1000 + 10),
        ("TRANSACTION_MISSING", |s| {
            s.fill.found = Transaction::Missing;
        }),
        ("TRANSACTION_REVERTED", |s| {
            s.fill.found = Transaction::Failed(vm::testing::failure(fixtures::block(10)));
        }),
        ("TRANSACTION_NOT_FINALIZED", |s| {
            s.fill.head.block.number = 19;
        }),
        ("AFTER_DEADLINE", |s| {
            s.fill.receipt().block.time = DEADLINE + 1;
            s.fill.head.block.time = DEADLINE + 1000;
        }),
        ("OK", |s| {
            s.fill.receipt().block.time = DEADLINE;
            s.fill.head.block.time = DEADLINE + 1000;
        }),
        ("ORDER_NOT_REFERENCED", |s| {
            s.fill.receipt().references.clear();
        }),
        ("ORDER_NOT_REFERENCED", |s| {
            s.fill.receipt().references = vec!["0x12".into()];
        }),
        ("SEVERAL_ORDERS_REFERENCED", |s| {
            s.fill.receipt().references.push("0x12".into());
        }),
        ("FILL_INSUFFICIENT", |s| {
            s.fill.receipt().payments[0].amount = U256::from(899);
        }),
        ("FILL_INSUFFICIENT", |s| {
            s.fill.receipt().payments[0].recipient = address(DEPOSITOR);
        }),
        ("FILL_INSUFFICIENT", |s| {
            s.fill.receipt().payments[0].currency = address(TOKEN);
        }),
        // A router that the order does not name does not count.
        ("FILL_INSUFFICIENT", |s| {
            s.fill.receipt().payments[0].kind = PaymentKind::Router(address(TOKEN));
        }),
        // A direct payment of another order.
        ("FILL_INSUFFICIENT", |s| {
            let order = vm::B256::repeat_byte(9);
            s.fill.receipt().payments[0].kind = PaymentKind::Direct { order };
        }),
        ("OK", |s| {
            let order = s.id();
            s.fill.receipt().payments[0].kind = PaymentKind::Direct { order };
        }),
        ("OK", |s| {
            s.fill.receipt().payments[0].amount = U256::from(400);
            s.fill.pay(router(), RECIPIENT, NATIVE, 500);
        }),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        assert_eq!(filling(change), *code, "{at}");
    }
}

/// Payer of a token transfer, extra data, and the results for a fill and a refund.
#[test]
fn token_transfer_counts_from_sender_solver_or_router_only() {
    let solver = format!("{:#x}", fixtures::key().address());
    let by = |who: &str| PaymentKind::TransferBy(address(who));
    let (missing, refund_missing) = ("FILL_INSUFFICIENT", "REFUND_INSUFFICIENT");
    let cases = [
        (PaymentKind::Transfer, None, "OK", "OK"),
        (by(&solver), None, "OK", "OK"),
        (by(ROUTER), None, "OK", "OK"),
        // Another account's money: a vesting contract, a pool, another solver, a mint.
        (by(TOKEN), None, missing, refund_missing),
        (by(DEPOSITOR), None, missing, refund_missing),
        (by(NATIVE), None, missing, refund_missing),
        // An unreadable router counts as none, and no payment needs it.
        (PaymentKind::Transfer, Some("0x"), "OK", "OK"),
        (by(&solver), Some("0x"), "OK", "OK"),
        (by(ROUTER), Some("0x"), missing, refund_missing),
    ];
    for (at, (kind, extra, fill, refund)) in cases.into_iter().enumerate() {
        let fixture = Fixture::ordering(|order| {
            if let Some(extra) = extra {
                order.output.extra_data = extra.into();
                order.inputs[0].refunds[0].extra_data = extra.into();
            }
        });
        let fixture = fixture.with(|s| {
            s.fill.receipt().payments[0].kind = kind.clone();
            s.refunded[0].receipt().payments[0].kind = kind;
        });
        assert_eq!(filled(&fixture), fill, "fill {at}");
        assert_eq!(refunded(&fixture), refund, "refund {at}");
    }
}

#[test]
fn strangers_money_fills_no_gap() {
    let filled = |own: u64| {
        filling(move |s| {
            s.fill.receipt().payments[0].amount = U256::from(own);
            let kind = PaymentKind::TransferBy(address(TOKEN));
            s.fill.pay(kind, RECIPIENT, NATIVE, 900);
        })
    };
    assert_eq!(filled(900), "OK");
    assert_eq!(filled(899), "FILL_INSUFFICIENT");
}

#[test]
fn one_payment_serves_one_payment_of_the_order() {
    let twice = Fixture::ordering(|order| {
        let again = order.output.payments[0].clone();
        order.output.payments.push(again);
    });
    assert_eq!(filled(&twice), "FILL_INSUFFICIENT");
    let refusal = twice.judge_fill().unwrap_err().to_string();
    assert_eq!(
        refusal,
        "Insufficient fill amount for order output payment 1 (paidAmount=0, minimumAmount=900)"
    );
    let paid = twice.with(|s| s.fill.pay(router(), RECIPIENT, NATIVE, 900));
    assert_eq!(paid.judge_fill().unwrap().1.len(), 2);
}

#[test]
fn order_of_nothing_is_refused() {
    let nothing = |change: fn(&mut vm::protocol::order::Order)| filled(&Fixture::ordering(change));
    assert_eq!(
        nothing(|order| order.output.payments.clear()),
        "ORDER_EMPTY"
    );
    let zero = |order: &mut vm::protocol::order::Order| {
        order.output.payments[0].minimum_amount = "0".into();
    };
    assert_eq!(nothing(zero), "ORDER_EMPTY");
    let weightless = |order: &mut vm::protocol::order::Order| {
        order.inputs[0].payment.weight = "0".into();
    };
    assert_eq!(nothing(weightless), "ORDER_AMOUNT_ZERO");
    assert_eq!(nothing(|order| order.inputs.clear()), "ORDER_AMOUNT_ZERO");
}

#[test]
fn calls_are_made_by_the_orders_router_in_sequence_each_once() {
    let (first, second) = (fixtures::call(b"\x01\x02", 0), fixtures::call(b"", 7));
    let both = Fixture::ordering(|order| {
        order.output.payments.clear();
        Fixture::want_call(order, &first);
        Fixture::want_call(order, &second);
    });
    let made = |calls: &[&vm::OrderCall]| {
        let calls = calls.iter().map(|call| fixtures::made(call)).collect();
        filled(&both.clone().with(|s| s.fill.receipt().calls = calls))
    };
    let other = fixtures::call(b"\xff", 0);
    assert_eq!(made(&[&first, &second]), "OK");
    assert_eq!(made(&[&other, &first, &other, &second]), "OK");
    assert_eq!(made(&[&second, &first]), "CALLS_MISSING");
    assert_eq!(made(&[&first]), "CALLS_MISSING");
    assert_eq!(made(&[]), "CALLS_MISSING");
    let foreign = both.clone().with(|s| {
        let mut calls = vec![fixtures::made(&first), fixtures::made(&second)];
        calls[1].router = address(TOKEN);
        s.fill.receipt().calls = calls;
    });
    assert_eq!(filled(&foreign), "CALLS_MISSING");
    let twice = Fixture::ordering(|order| {
        Fixture::want_call(order, &first);
        Fixture::want_call(order, &first);
    });
    let once = twice.with(|s| s.fill.receipt().calls = vec![fixtures::made(&first)]);
    assert_eq!(filled(&once), "CALLS_MISSING");
    let garbage = Fixture::ordering(|order| order.output.calls.push("0x1234".into()));
    assert_eq!(filled(&garbage), "INVALID_REQUEST");
}

#[test]
fn unreadable_router_matters_only_where_a_router_counts() {
    let blank = Fixture::ordering(|order| order.output.extra_data = "0x".into());
    assert_eq!(filled(&blank), "INVALID_REQUEST");
    let direct = blank.with(|s| {
        let order = s.id();
        s.fill.receipt().payments[0].kind = PaymentKind::Direct { order };
    });
    assert_eq!(filled(&direct), "OK");
}

#[test]
fn refund_is_complete_and_each_option_exists() {
    let cases: &[Case] = &[
        ("REFUND_MISSING", |s| s.refunds.clear()),
        ("REFUND_MISSING", |s| s.refunds[0].input = 1),
        ("REFUND_REPEATED", |s| s.refunds.push(s.refunds[0].clone())),
        ("REFUND_INVALID", |s| s.refunds[0].option = 3),
        ("REFUND_INSUFFICIENT", |s| {
            s.refunded[0].receipt().payments[0].amount = U256::from(899);
        }),
        ("REFUND_INSUFFICIENT", |s| {
            s.refunded[0].receipt().payments[0].recipient = address(RECIPIENT);
        }),
        ("SEVERAL_ORDERS_REFERENCED", |s| {
            s.refunded[0].receipt().references.push("0x12".into());
        }),
        ("ORDER_NOT_REFERENCED", |s| {
            s.refunded[0].receipt().references.clear();
        }),
        ("AFTER_DEADLINE", |s| {
            s.refunded[0].receipt().block.time = REFUND_DEADLINE + 1;
            s.refunded[0].head.block.time = REFUND_DEADLINE + 1000;
        }),
        ("OK", |s| {
            s.refunded[0].receipt().block.time = REFUND_DEADLINE;
            s.refunded[0].head.block.time = REFUND_DEADLINE + 1000;
        }),
        ("TRANSACTION_NOT_FINALIZED", |s| {
            s.refunded[0].head.block.number = 19;
        }),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        assert_eq!(refunding(change), *code, "{at}");
    }
}

#[test]
fn refund_minimum_follows_what_was_deposited() {
    let half = |paid: u64| {
        refunding(move |s| {
            s.vouched = true;
            s.deposits[0].deposits()[0].amount = U256::from(500);
            s.refunded[0].receipt().payments[0].amount = U256::from(paid);
        })
    };
    assert_eq!(half(450), "OK");
    assert_eq!(half(449), "REFUND_INSUFFICIENT");
    let double = |paid: u64| {
        refunding(move |s| {
            s.deposits[0].deposits()[0].amount = U256::from(2000);
            s.refunded[0].receipt().payments[0].amount = U256::from(paid);
        })
    };
    assert_eq!(double(1800), "OK");
    assert_eq!(double(1799), "REFUND_INSUFFICIENT");
}

#[test]
fn short_claim_needs_the_solvers_word() {
    let deposited = |amount: u64, vouched: bool| {
        Fixture::new().with(|s| {
            s.deposits[0].deposits()[0].amount = U256::from(amount);
            s.vouched = vouched;
        })
    };
    let missing = "SOLVER_SIGNATURE_REQUIRED";
    for (amount, unsigned) in [(1, missing), (989, missing), (990, "OK"), (2000, "OK")] {
        let alone = deposited(amount, false);
        assert_eq!(filled(&alone), unsigned, "{amount}");
        assert_eq!(filled(&deposited(amount, true)), "OK", "{amount}");
        assert_eq!(refunded(&deposited(amount, true)) == "OK", amount <= 1000);
    }
    assert_eq!(refunded(&deposited(989, false)), missing);
    assert_eq!(refunded(&deposited(990, false)), "OK");
    // An input with weight zero must be paid too.
    let two = Fixture::ordering(|order| {
        let mut again = order.inputs[0].clone();
        again.payment.currency = TOKEN.into();
        again.payment.weight = "0".into();
        order.inputs.push(again);
    });
    assert_eq!(filled(&two), "OK");
    let short = two.with(|s| s.deposits[1].deposits()[0].amount = U256::ONE);
    assert_eq!(filled(&short), missing);
}

#[test]
fn solvers_word_is_for_one_claim() {
    let fixture = Fixture::new();
    let (terms, funded) = fixture.funded().unwrap();
    let word = |outcome, terms: &Terms, signature: &str| {
        backing::vouched(outcome, terms, &funded, Some(signature)).map_err(|no| no.code())
    };
    let fill = fixtures::vouch(Outcome::Fill, &terms, &funded);
    assert_eq!(word(Outcome::Fill, &terms, &fill), Ok(true));
    let invalid = Err("SOLVER_SIGNATURE_INVALID");
    assert_eq!(word(Outcome::Refund, &terms, &fill), invalid);
    assert_eq!(word(Outcome::Fill, &terms, &fixture.signature), invalid);
    assert_eq!(word(Outcome::Fill, &terms, "0x"), invalid);
    let mut other = terms.clone();
    other.id = vm::B256::repeat_byte(7);
    assert_eq!(word(Outcome::Fill, &other, &fill), invalid);
    other = terms.clone();
    other.solver = vm::EvmAddress::repeat_byte(7);
    assert_eq!(word(Outcome::Fill, &other, &fill), invalid);
    assert_eq!(
        backing::vouched(Outcome::Fill, &terms, &funded, None),
        Ok(false)
    );
}

#[test]
fn nobody_but_the_solver_refunds_for_it() {
    let strange = |kind: fn(&Fixture) -> PaymentKind| {
        Fixture::new().with(|s| {
            let kind = kind(s);
            let receipt = s.refunded[0].receipt();
            receipt.payments[0].kind = kind;
            receipt.sender = Some(address(TOKEN));
            let fill = s.fill.receipt();
            fill.sender = Some(address(TOKEN));
        })
    };
    let kinds: &[fn(&Fixture) -> PaymentKind] = &[
        |s| PaymentKind::Direct { order: s.id() },
        |_| PaymentKind::Transfer,
        |_| router(),
        |_| PaymentKind::TransferBy(address(ROUTER)),
        |_| PaymentKind::TransferBy(address(TOKEN)),
    ];
    for (at, kind) in kinds.iter().enumerate() {
        let fixture = strange(*kind);
        assert_eq!(refunded(&fixture), "REFUND_INSUFFICIENT", "{at}");
        // A fill by another account benefits the solver.
        assert_eq!(filled(&fixture), "OK", "{at}");
        let vouched = fixture.with(|s| s.vouched = true);
        assert_eq!(refunded(&vouched) == "OK", at < 4, "{at}");
    }
    let own = |_: &Fixture| PaymentKind::TransferBy(fixtures::sender());
    assert_eq!(refunded(&strange(own)), "OK");
    let unknown = Fixture::new().with(|s| s.refunded[0].receipt().sender = None);
    assert_eq!(refunded(&unknown), "REFUND_INSUFFICIENT");
}

#[test]
fn transaction_that_funds_the_order_pays_nobody() {
    let code = "TRANSACTION_FUNDS_ORDER";
    let same_chain = || {
        Fixture::ordering(|order| {
            order.output.chain_id = "ethereum".into();
        })
    };
    let named = same_chain().with(|s| {
        s.fill.spec = fixtures::spec("ethereum");
        s.fill.tx = s.deposits[0].tx.clone();
        s.refunded[0].tx = s.deposits[0].tx.clone();
    });
    assert_eq!(filled(&named), code);
    assert_eq!(refunded(&named), code);
    // Another deposit of the order that the claim does not name.
    let deposit = |s: &mut Fixture, sender| {
        let another = s.deposits[0].deposits()[0].clone();
        for read in [&mut s.fill, &mut s.refunded[0]] {
            read.deposits().push(another.clone());
            read.receipt().sender = Some(address(sender));
        }
        s.vouched = true;
    };
    let unnamed = Fixture::new().with(|s| deposit(s, DEPOSITOR));
    assert_eq!(filled(&unnamed), code);
    assert_eq!(refunded(&unnamed), code);
    // The order's own calls may deposit during the fill without harm to the solver.
    let own = fixtures::sender();
    let solver = Fixture::new().with(|s| deposit(s, own.text()));
    assert_eq!(filled(&solver), "OK");
    // A deposit of another order does not matter.
    let foreign = Fixture::new().with(|s| {
        deposit(s, DEPOSITOR);
        s.fill.deposits()[0].id = "0x12".into();
    });
    assert_eq!(filled(&foreign), "OK");
}

/// Counts the payments looked at, over a receipt as large as a block: the judge does not look at one payment for each
/// item of the order.
#[test]
fn work_grows_with_the_receipt_and_not_with_the_order_times_it() {
    let steps = |payments: u32, items: usize| {
        let fixture = Fixture::ordering(|order| {
            let one = order.output.payments[0].clone();
            order.output.payments = vec![one; items];
        });
        let mut read = fixture.fill.clone();
        read.receipt().payments = (0..payments)
            .map(|index| vm::Payment {
                index,
                kind: router(),
                recipient: address(RECIPIENT),
                currency: address(NATIVE),
                amount: U256::from(900),
            })
            .collect();
        let terms = fixture.terms();
        let (mut ledger, seen) = (Ledger::default(), read.seen());
        let router = address(ROUTER);
        for payment in &terms.output.payments {
            let expected = Expected {
                order: terms.id,
                recipient: &payment.recipient,
                currency: &payment.currency,
                deadline: DEADLINE,
                solver: terms.solver,
                router: Some(&router),
                payer: Payer::Sender,
            };
            let paid = U1024::from(900);
            assert!(ledger.paid(&seen, &expected).unwrap() >= paid);
            ledger.take(&seen, &expected, paid);
        }
        let steps = ledger.steps();
        // One row for each needed payment, whatever else was paid.
        assert_eq!(ledger.served().unwrap().len(), items);
        steps
    };
    assert_eq!(steps(1_000, 1), 1_001);
    assert_eq!(steps(100_000, 1), 100_001);
    assert_eq!(steps(100_000, 64), 100_064);
}

#[test]
fn payments_that_a_claim_needs_are_bounded() {
    for (parts, code) in [(1_024_u32, "OK"), (1_025, "TOO_MANY_ITEMS")] {
        let mut fixture = Fixture::ordering(|order| {
            order.output.payments[0].minimum_amount = parts.to_string();
            order.output.payments[0].expected_amount = parts.to_string();
        });
        let receipt = fixture.fill.receipt();
        let one = receipt.payments[0].clone();
        let part = |index| vm::Payment {
            index,
            amount: U256::ONE,
            ..one.clone()
        };
        receipt.payments = (0..parts).map(part).collect();
        assert_eq!(filled(&fixture), code, "{parts}");
        // Surplus payments serve nothing and get no row.
        fixture.fill.receipt().payments[0].amount = U256::from(parts);
        assert_eq!(filled(&fixture), "OK", "{parts}");
    }
}

#[test]
fn refund_of_nothing_gives_nothing_back() {
    let free = Fixture::ordering(|order| order.inputs[0].refunds[0].minimum_amount = "0".into());
    assert_eq!(refunded(&free), "OK");
    let unpaid = free.with(|s| s.refunded[0].receipt().payments.clear());
    assert_eq!(refunded(&unpaid), "REFUND_INSUFFICIENT");
}

#[test]
fn one_refund_payment_serves_one_input() {
    let two = Fixture::ordering(|order| {
        let mut again = order.inputs[0].clone();
        again.payment.currency = TOKEN.into();
        order.inputs.push(again);
    })
    .with(|s| {
        s.refunds.push(Refund {
            input: 1,
            option: 0,
        });
        s.refunded.push(s.refunded[0].clone());
    });
    assert_eq!(refunded(&two), "REFUND_INSUFFICIENT");
    let paid = two.with(|s| {
        for read in &mut s.refunded {
            read.pay(router(), DEPOSITOR, NATIVE, 900);
        }
    });
    assert_eq!(paid.judge_refund().unwrap().len(), 2);
}

#[test]
fn native_recipient_of_a_refund_means_the_depositor() {
    let native = Fixture::ordering(|order| order.inputs[0].refunds[0].recipient = NATIVE.into());
    assert_eq!(refunded(&native), "OK");
    let elsewhere = native.clone().with(|s| {
        s.refunded[0].receipt().payments[0].recipient = address(NATIVE);
    });
    assert_eq!(refunded(&elsewhere), "REFUND_INSUFFICIENT");
    // A deposit without a depositor: paying nobody refunds nothing.
    let nobody = native.with(|s| {
        s.deposits[0].deposits()[0].depositor = address(NATIVE);
        s.refunded[0].receipt().payments[0].recipient = address(NATIVE);
    });
    assert_eq!(refunded(&nobody), "REFUND_RECIPIENT_MISSING");
    // Where the order names a recipient, the depositor does not matter.
    let named = Fixture::new().with(|s| s.deposits[0].deposits()[0].depositor = address(NATIVE));
    assert_eq!(refunded(&named), "OK");
}

#[test]
fn lists_are_bounded() {
    let many = |change: fn(&mut Fixture)| filling(change);
    let code = "TOO_MANY_ITEMS";
    assert_eq!(
        many(|s| s.inputs = vec![s.inputs[0].clone(); MOST_ITEMS + 1]),
        code
    );
    assert_eq!(
        many(|s| s.order.inputs = vec![s.order.inputs[0].clone(); MOST_ITEMS + 1]),
        code
    );
    assert_eq!(
        many(|s| s.order.output.calls = vec!["0x".into(); MOST_ITEMS + 1]),
        code
    );
    assert_eq!(
        many(|s| {
            let refund = s.order.inputs[0].refunds[0].clone();
            s.order.inputs[0].refunds = vec![refund; MOST_ITEMS + 1];
        }),
        code
    );
    assert_eq!(
        refunding(|s| s.refunds = vec![s.refunds[0].clone(); MOST_ITEMS + 1]),
        code
    );
}

#[test]
fn difference_is_exact_at_the_largest_amounts() {
    let max = U256::MAX.to_string();
    let fixture = Fixture::ordering(|order| {
        order.inputs[0].payment.amount = max.clone();
        order.inputs[0].payment.weight = max.clone();
    });
    assert_eq!(fixture.judge_fill().unwrap().0.to_string(), "0");
    let less = fixture.with(|s| {
        s.vouched = true;
        s.deposits[0].deposits()[0].amount = U256::from(1);
    });
    assert_eq!(
        less.judge_fill().unwrap().0.to_string(),
        "-999999999999999999"
    );
    let more = Fixture::ordering(|order| order.inputs[0].payment.amount = "1".into())
        .with(|s| s.deposits[0].deposits()[0].amount = U256::MAX);
    let difference = more.judge_fill().unwrap().0.to_string();
    let wanted = (U256::MAX - U256::from(1)).to_string() + &"0".repeat(18);
    assert_eq!(difference, wanted);
}

#[test]
fn deposits_with_one_index_or_unfinal_are_refused() {
    let judged = |change: fn(&mut fixtures::Read)| {
        let mut read = Fixture::new().deposits.remove(0);
        change(&mut read);
        deposit::judge(&read.seen(), Mode::Slow).map_or_else(|refusal| refusal.code(), |_| "OK")
    };
    assert_eq!(judged(|_| {}), "OK");
    assert_eq!(judged(|read| read.deposits().clear()), "OK");
    assert_eq!(
        judged(|read| {
            let again = read.deposits()[0].clone();
            read.deposits().push(again);
        }),
        "DEPOSIT_AMBIGUOUS"
    );
    // Empty, but not final: a later block of another fork may contain something.
    assert_eq!(
        judged(|read| {
            read.deposits().clear();
            read.head.block.number = 19;
        }),
        "TRANSACTION_NOT_FINALIZED"
    );
    // A block above the head is on another fork, or invented.
    assert_eq!(
        judged(|read| read.head.block.number = 9),
        "TRANSACTION_NOT_FINALIZED"
    );
}

#[test]
fn deposit_of_nothing_is_left_out_and_blocks_no_other() {
    let mut read = Fixture::new().deposits.remove(0);
    let honest = read.deposits()[0].clone();
    let wanted = deposit::settled(&read.seen()).unwrap();
    for index in [0, 7] {
        let mut nothing = honest.clone();
        (nothing.amount, nothing.index) = (U256::ZERO, index);
        read.deposits().push(nothing);
    }
    read.deposits().rotate_right(1);
    assert_eq!(deposit::settled(&read.seen()).unwrap(), wanted);
    read.deposits().retain(|deposit| deposit.amount.is_zero());
    assert_eq!(deposit::settled(&read.seen()).unwrap(), []);
}

#[test]
fn deposits_of_one_transaction_have_ids_of_their_own() {
    let mut read = Fixture::new().deposits.remove(0);
    let mut again = read.deposits()[0].clone();
    again.index = 1;
    read.deposits().push(again);
    let messages = deposit::settled(&read.seen()).unwrap();
    assert_ne!(messages[0].onchain_id, messages[1].onchain_id);
}

/// The chain of a deposit, its transaction and its index.
type Named<'a> = (&'a str, &'a str, u32);

/// The id of the deposit of `read`, once it is called so.
fn onchain_id(read: &mut fixtures::Read, (chain, transaction, index): Named<'_>) -> B256 {
    read.spec.id = ChainId::new(chain);
    read.tx.text = transaction.into();
    read.deposits()[0].index = index;
    deposit::listed(&read.seen()).unwrap()[0].onchain_id
}

/// All ways to make two texts of one. A separator between them belongs to one of them, or to none.
fn halves(text: &str) -> impl Iterator<Item = (&str, &str)> {
    (0..=text.len()).flat_map(move |at| {
        let (before, after) = text.split_at(at);
        let without = after.strip_prefix(|first: char| !first.is_alphanumeric());
        let all = std::iter::once(after).chain(without);
        all.map(move |after| (before, after))
    })
}

/// All deposits that can be called by what is in `text`. A transaction's id has no colon.
fn named_in(text: &str) -> Vec<Named<'_>> {
    let all = halves(text).flat_map(|(chain, rest)| {
        halves(rest).filter_map(move |(transaction, digits)| {
            let index: u32 = digits.parse().ok()?;
            let exists = index.to_string() == digits && !transaction.contains(':');
            exists.then_some((chain, transaction, index))
        })
    });
    all.collect()
}

/// Of what names are made: letters, digits and separators.
const LETTERS: &[char] = &['a', '7', ':', '/', '|', ',', '.', '-', '_', ' '];

proptest::proptest! {
    #[test]
    fn two_deposits_have_two_ids_whatever_separates_their_names(
        text in collection::vec(sample::select(LETTERS), 1..8), index in 1_u32..1_000,
    ) {
        let text: String = text.into_iter().collect();
        let text = format!("{text}{index}");
        let (mut read, mut known) = (Fixture::new().deposits.remove(0), HashMap::new());
        for named in named_in(&text) {
            let first = *known.entry(onchain_id(&mut read, named)).or_insert(named);
            proptest::prop_assert_eq!(first, named);
        }
        proptest::prop_assert!(known.len() > 1);
    }
}

#[test]
fn chain_transaction_and_index_are_each_in_an_id() {
    let all = [
        ("a", "b", 1),
        ("a", "b", 11),
        ("a", "b1", 1),
        ("a", "c", 1),
        ("c", "b", 1),
        ("ab", "1", 1),
        ("a:b", "1", 1),
        ("a", "1", 1),
    ];
    let mut read = Fixture::new().deposits.remove(0);
    let ids: HashSet<_> = all.map(|named| onchain_id(&mut read, named)).into();
    assert_eq!(ids.len(), all.len());
}

/// Ids are made of the texts with colons between them, in lower case (guide: protocol 2.3): a colon in a transaction's
/// id would make one of two.
#[test]
fn what_would_share_its_id_with_another_deposit_is_no_transaction() {
    let mut read = Fixture::new().deposits.remove(0);
    for (one, other) in [
        (("a:b", "c", 1), ("a", "b:c", 1)),
        (("a:1", "2", 3), ("a", "1:2", 3)),
        ((":", "a", 0), ("", ":a", 0)),
        // A transaction's id in another case is the same one.
        (("a", "0xAB", 1), ("a", "0xab", 1)),
    ] {
        let ids = [one, other].map(|named| onchain_id(&mut read, named));
        assert_eq!(ids[0], ids[1], "{one:?} {other:?}");
    }
    for family in FAMILIES {
        let bytes = vec![0xab; family.lengths.transaction.unwrap_or(32)];
        let id = family.codec.decode_transaction_id(&bytes).unwrap();
        let id = format!("{}{id}", family.tx_prefix);
        assert!(family.tx(&id, None).is_ok(), "{} {id}", family.name);
        for at in 0..=id.len() {
            let (before, after) = id.split_at(at);
            let kept = after.get(1..).unwrap_or_default();
            for other in [format!("{before}:{after}"), format!("{before}:{kept}")] {
                assert!(family.tx(&other, None).is_err(), "{} {other}", family.name);
            }
        }
    }
}

#[test]
fn every_amount_of_an_order_is_a_whole_number() {
    for bad in [
        "",
        "-1",
        "1.5",
        "1e3",
        " 1",
        "0x",
        "115792089237316195423570985008687907853269984665640564039457584007913129639936",
    ] {
        let mut fixture = Fixture::new();
        fixture.order.inputs[0].payment.amount = bad.into();
        let refusal = Terms::new(&fixture.order, &fixtures::families)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refusal.code(), "INVALID_REQUEST", "{bad}");
    }
    assert!(fill::check_ordered(&Fixture::new().terms().output).is_ok());
}

#[test]
fn a_router_that_is_not_listed_is_believed_nothing() {
    let listed =
        |routers: &[&str]| FillRouters::Listed(routers.iter().map(|it| address(it)).collect());
    let call = fixtures::call(b"do", 5);
    // A direct payment, the router's events for ether and for a token, and its calls.
    let direct = |s: &mut Fixture| {
        let order = s.id();
        s.fill.receipt().payments.clear();
        s.fill
            .pay(PaymentKind::Direct { order }, RECIPIENT, NATIVE, 900);
    };
    let token = Fixture::ordering(|order| order.output.payments[0].currency = TOKEN.into());
    let given = token.clone().with(|s| {
        s.fill.receipt().payments.clear();
        let by = PaymentKind::TransferBy(address(ROUTER));
        s.fill.pay(by, RECIPIENT, TOKEN, 900);
    });
    let sent = token.with(|s| {
        s.fill.receipt().payments.clear();
        s.fill.pay(PaymentKind::Transfer, RECIPIENT, TOKEN, 900);
        // Additions by others do not harm the fill.
        let by = PaymentKind::TransferBy(address(ROUTER));
        s.fill.pay(by, RECIPIENT, TOKEN, 1);
    });
    let called = Fixture::ordering(|order| {
        order.output.payments.clear();
        Fixture::want_call(order, &call);
    });
    let called = called.with(|s| s.fill.receipt().calls.push(fixtures::made(&call)));
    for (routers, believed) in [
        (FillRouters::Any, true),
        (listed(&[ROUTER]), true),
        (listed(&[TOKEN, ROUTER]), true),
        (listed(&[]), false),
        (listed(&[TOKEN]), false),
    ] {
        let code = match believed {
            true => "OK",
            false => "FILL_ROUTER_NOT_LISTED",
        };
        let on = |fixture: &Fixture| {
            fixture.clone().with(|s| {
                s.fill.spec.fill_routers = routers.clone();
                s.refunded[0].spec.fill_routers = routers.clone();
            })
        };
        let fixture = on(&Fixture::new());
        assert_eq!(
            (filled(&fixture), refunded(&fixture)),
            (code, code),
            "{routers:?}"
        );
        assert_eq!(filled(&on(&given)), code, "{routers:?}");
        assert_eq!(filled(&on(&called)), code, "{routers:?}");
        assert_eq!(filled(&on(&sent)), "OK", "{routers:?}");
        assert_eq!(filled(&fixture.clone().with(direct)), "OK", "{routers:?}");
        // Too small an amount is refused, whoever reports it.
        let little = fixture.with(|s| s.fill.receipt().payments[0].amount = U256::from(899));
        let little = filled(&little);
        assert_eq!(little == "FILL_INSUFFICIENT", believed, "{little}");
    }
}

#[test]
fn what_the_solver_paid_itself_is_told_apart() {
    let own = |change: fn(&mut Fixture)| {
        let (_, served) = Fixture::new().with(change).judge_fill().unwrap();
        served.iter().all(|one| one.own)
    };
    assert!(own(|_| {}));
    assert!(!own(|s| s.fill.receipt().sender = Some(address(RECIPIENT))));
}
