//! The rules of an order beside what was found, for whoever asks why a claim was signed. Pure: no I/O, no clock.

use std::fmt;

use alloy::primitives::aliases::U1024;

use super::{backing::Backing, order::Terms, paid::Served};

/// The payments that end an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// Those that serve it.
    pub served: Vec<Served>,
    /// The rules that they meet.
    pub rules: Vec<Measured>,
}

/// A rule of an order, with what meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub what: What,
    pub found: U1024,
    /// What `found` is compared with.
    pub bound: U1024,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A payment of the output, by its index: what was paid, and the least.
    Payment(usize),
    /// The refund of an input, by its index: what was paid, and the least.
    Refund(usize),
    /// The calls of the output: those that were made, and those that are ordered.
    Calls,
    /// A transaction that pays: its block time, and the last time that counts, both in unix seconds.
    Time,
}

impl Measured {
    /// A transaction in a block of the unix second `time` that may not be later than `deadline`.
    pub fn in_time(time: u64, deadline: u64) -> Self {
        Self {
            what: What::Time,
            found: U1024::from(time),
            bound: U1024::from(deadline),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, bound) = (self.found, self.bound);
        match self.what {
            What::Payment(at) => write!(f, "payment {at}: {found} paid, at least {bound}"),
            What::Refund(at) => write!(f, "refund of input {at}: {found} paid, at least {bound}"),
            What::Calls => write!(f, "calls: {found} of {bound} made in their order"),
            What::Time => write!(f, "deadline: block time {found}, at most {bound}"),
        }
    }
}

/// The rules of a claim in words: of its deposits, then of its payments.
pub fn words(terms: &Terms, backing: &Backing<'_>, paid: &[Measured]) -> Vec<String> {
    let accepted = match backing.vouched {
        true => "accepted by the solver's signature".to_owned(),
        false => {
            let points = backing.tolerance.basis_points();
            format!("at most {points} basis points less")
        }
    };
    let funded = terms.inputs.iter().zip(backing.funded).enumerate();
    let deposits = funded.map(|(at, (input, message))| {
        let (deposited, ordered) = (message.deposit.amount, input.amount);
        format!("input {at}: {deposited} deposited, {ordered} ordered, {accepted}")
    });
    deposits
        .chain(paid.iter().map(ToString::to_string))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attest::{
        backing::Tolerance,
        fill,
        fixtures::{self, DEADLINE, Fixture, REFUND_DEADLINE, Read},
        refund,
    };

    #[test]
    fn the_rules_of_an_order_stand_beside_what_meets_them() {
        let wanted = fixtures::call(b"a", 0);
        let mut fixture = Fixture::ordering(|order| Fixture::want_call(order, &wanted));
        fixture.fill.receipt().calls = vec![fixtures::made(&wanted)];
        let (terms, funded) = fixture.funded().unwrap();
        let inputs: Vec<_> = fixture.deposits.iter().map(Read::seen).collect();
        let backing = |vouched| Backing {
            funded: &funded,
            inputs: &inputs,
            vouched,
            tolerance: Tolerance::default(),
        };
        let in_time = |read: &Read, deadline| {
            let time = read.seen().receipt().unwrap().block.time;
            format!("deadline: block time {time}, at most {deadline}")
        };
        let paid = fill::judge(&terms, &backing(false), &fixture.fill.seen()).unwrap();
        let expected = [
            "input 0: 1000 deposited, 1000 ordered, at most 100 basis points less".to_owned(),
            "payment 0: 900 paid, at least 900".to_owned(),
            "calls: 1 of 1 made in their order".to_owned(),
            in_time(&fixture.fill, DEADLINE),
        ];
        assert_eq!(words(&terms, &backing(false), &paid.rules), expected);
        let refunded = &fixture.refunded[0];
        let seen = [Some(refunded.seen())];
        let paid = refund::judge(&terms, &fixture.refunds, &backing(true), &seen).unwrap();
        let expected = [
            "input 0: 1000 deposited, 1000 ordered, accepted by the solver's signature".to_owned(),
            "refund of input 0: 900 paid, at least 900".to_owned(),
            in_time(refunded, REFUND_DEADLINE),
        ];
        assert_eq!(words(&terms, &backing(true), &paid.rules), expected);
    }
}
