//! Every attempt.

use anyhow::Result;
use futures::{FutureExt, future::LocalBoxFuture};

use super::{calls, claims, deposits, life::Wish, market, providers, stranger::Fixture, submitted};

type Act = for<'a> fn(&'a mut Fixture) -> LocalBoxFuture<'a, Result<()>>;

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
        |fixture| deposits::dust(fixture).boxed_local(),
    ),
    Attack {
        prepare: |fixture| deposits::mint_worthless(fixture).boxed_local(),
        ..attack(
            "worthless-token",
            "a token of his own under the user's order, and for an order of his own",
            |fixture| deposits::worthless(fixture).boxed_local(),
        )
    },
    attack(
        "wrong-currency",
        "dollars for orders that ask for ether, the user's and his own; then taken back at the oracle",
        |fixture| deposits::wrong_currency(fixture).boxed_local(),
    ),
    attack("double-deposits", "one order paid six times", |fixture| {
        deposits::doubles(fixture).boxed_local()
    }),
    attack(
        "small-first",
        "a hundredth of an order, then all of it",
        |fixture| deposits::small_first(fixture).boxed_local(),
    ),
    Attack {
        prepare: |fixture| market::give_gold(fixture).boxed_local(),
        ..attack(
            "late-deposit",
            "a quote kept until what is paid with has lost a tenth of its price",
            |fixture| market::late(fixture).boxed_local(),
        )
    },
    Attack {
        prepare: |fixture| calls::deploy_burner(fixture).boxed_local(),
        ..attack(
            "gas-burner",
            "calls that burn three million gas: only where gas is paid for, or only after the quote",
            |fixture| calls::burner(fixture).boxed_local(),
        )
    },
    attack(
        "foreign-transaction",
        "transactions of his own, failed and unknown ones, told as the user's",
        |fixture| submitted::foreign(fixture).boxed_local(),
    ),
    attack(
        "forced-claim",
        "`force` without a deposit, without a key, with a guest's key and with the key that may",
        |fixture| claims::forced(fixture).boxed_local(),
    ),
    attack(
        "dust-claim",
        "the solver's fill claimed for a wei, before the solver is paid for it",
        |fixture| claims::dust_first(fixture).boxed_local(),
    ),
    attack(
        "refund-claim",
        "a wei, and a fiftieth, paid to the user under the order's id, claimed as the refund",
        |fixture| claims::refund(fixture).boxed_local(),
    ),
    Attack {
        wish: Wish::DOLLARS,
        prepare: |fixture| market::feed_contracts(fixture).boxed_local(),
        ..attack(
            "token-off",
            "quotes for the router, the proxy and the depository as the user, to have a coin refused to others",
            |fixture| market::token_off(fixture).boxed_local(),
        )
    },
    Attack {
        prepare: |fixture| market::depeg(fixture).boxed_local(),
        ..attack(
            "depeg",
            "a bridged dollar that is worth 0.90 for a real one",
            |fixture| market::depegged(fixture).boxed_local(),
        )
    },
    attack(
        "unfillable",
        "fills that no node takes: too large, junk authorizations, one that is stale when it is used",
        |fixture| calls::unfillable(fixture).boxed_local(),
    ),
    Attack {
        prepare: |fixture| calls::deploy_noise(fixture).boxed_local(),
        ..attack(
            "junk-logs",
            "4,000 junk logs, or 160 deposits, in the transaction of a deposit",
            |fixture| calls::junk(fixture).boxed_local(),
        )
    },
    attack(
        "lying-nonce",
        "one provider of three says that the solver's nonce is 1, or 1,000, higher",
        |fixture| providers::nonce(fixture).boxed_local(),
    ),
    attack(
        "empty-logs",
        "one provider of three shows no logs",
        |fixture| providers::logs(fixture).boxed_local(),
    ),
];
