//! Every attempt.

use anyhow::Result;
use futures::{FutureExt, future::LocalBoxFuture};

use super::{calls, claims, deposits, life::Wish, market, providers, stranger::Scene, told};

type Act = for<'a> fn(&'a mut Scene) -> LocalBoxFuture<'a, Result<()>>;

/// What is tried beside an honest order.
pub struct Attack {
    pub name: &'static str,
    /// In words.
    pub tried: &'static str,
    /// What the honest user wants.
    pub wish: Wish,
    /// Before anything is counted.
    pub prepare: Act,
    /// What is not done of the honest order when it returns is done then.
    pub act: Act,
}

const fn attack(name: &'static str, tried: &'static str, act: Act) -> Attack {
    Attack {
        name,
        tried,
        wish: Wish::ETHER,
        prepare: |_| async { Ok(()) }.boxed_local(),
        act,
    }
}

pub static ATTACKS: [Attack; 17] = [
    attack(
        "dust",
        "a wei under the user's order: before, between and after, on both chains",
        |scene| deposits::dust(scene).boxed_local(),
    ),
    Attack {
        prepare: |scene| deposits::mint_worthless(scene).boxed_local(),
        ..attack(
            "worthless-token",
            "a token of his own under the user's order, and for an order of his own",
            |scene| deposits::worthless(scene).boxed_local(),
        )
    },
    attack(
        "wrong-currency",
        "dollars for orders that ask for ether, the user's and his own; then taken back at the oracle",
        |scene| deposits::wrong_currency(scene).boxed_local(),
    ),
    attack("double-deposits", "one order paid six times", |scene| {
        deposits::doubles(scene).boxed_local()
    }),
    attack(
        "small-first",
        "a hundredth of an order, then all of it",
        |scene| deposits::small_first(scene).boxed_local(),
    ),
    Attack {
        prepare: |scene| market::give_gold(scene).boxed_local(),
        ..attack(
            "late-deposit",
            "a quote kept until what is paid with has lost a tenth of its price",
            |scene| market::late(scene).boxed_local(),
        )
    },
    Attack {
        prepare: |scene| calls::deploy_burner(scene).boxed_local(),
        ..attack(
            "gas-burner",
            "calls that burn three million gas: only where gas is paid for, or only after the quote",
            |scene| calls::burner(scene).boxed_local(),
        )
    },
    attack(
        "foreign-transaction",
        "transactions of his own, failed and unknown ones, told as the user's",
        |scene| told::foreign(scene).boxed_local(),
    ),
    attack(
        "forced-claim",
        "`force` without a deposit, without a key, with a guest's key and with the key that may",
        |scene| claims::forced(scene).boxed_local(),
    ),
    attack(
        "dust-claim",
        "the solver's fill claimed for a wei, before the solver is paid for it",
        |scene| claims::dust_first(scene).boxed_local(),
    ),
    attack(
        "refund-claim",
        "a wei, and a fiftieth, paid to the user under the order's id, claimed as the refund",
        |scene| claims::refund(scene).boxed_local(),
    ),
    Attack {
        wish: Wish::DOLLARS,
        prepare: |scene| market::feed_contracts(scene).boxed_local(),
        ..attack(
            "token-off",
            "quotes for the router, the proxy and the depository as the user, to have a coin refused to others",
            |scene| market::token_off(scene).boxed_local(),
        )
    },
    Attack {
        prepare: |scene| market::depeg(scene).boxed_local(),
        ..attack(
            "depeg",
            "a bridged dollar that is worth 0.90 for a real one",
            |scene| market::depegged(scene).boxed_local(),
        )
    },
    attack(
        "unfillable",
        "fills that no node takes: too large, junk authorizations, one that is stale when it is used",
        |scene| calls::unfillable(scene).boxed_local(),
    ),
    Attack {
        prepare: |scene| calls::deploy_noise(scene).boxed_local(),
        ..attack(
            "junk-logs",
            "4,000 junk logs, or 160 deposits, in the transaction of a deposit",
            |scene| calls::junk(scene).boxed_local(),
        )
    },
    attack(
        "lying-nonce",
        "one provider of three says that the solver's nonce is 1, or 1,000, higher",
        |scene| providers::nonce(scene).boxed_local(),
    ),
    attack(
        "empty-logs",
        "one provider of three shows no logs",
        |scene| providers::logs(scene).boxed_local(),
    ),
];
