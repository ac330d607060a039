//! What callers say besides a transaction's id so that a family finds it: a hint. Each family declares the fields
//! of its own. Pure.

/// The hints of a family; `None`: the id is enough.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// For the transaction of a deposit.
    pub deposit: Option<HintShape>,
    /// For the transaction of a fill or refund.
    pub payment: Option<HintShape>,
}

impl Hints {
    /// Of a family that finds every transaction by its id.
    pub const NONE: Self = Self {
        deposit: None,
        payment: None,
    };

    /// The hint for a transaction that was made for `purpose`.
    pub const fn of(&self, purpose: Purpose) -> Option<&HintShape> {
        match purpose {
            Purpose::Deposit => self.deposit.as_ref(),
            Purpose::Payment => self.payment.as_ref(),
        }
    }
}

/// What a transaction was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Deposit,
    /// A fill or refund.
    Payment,
}

/// One hint: an object with these fields, in this order.
#[derive(Clone, Copy, Debug)]
pub struct HintShape {
    /// What descriptions call it.
    pub title: &'static str,
    /// What descriptions say of it; empty for nothing.
    pub about: &'static str,
    pub fields: &'static [HintField],
}

/// One field of a hint.
#[derive(Clone, Copy, Debug)]
pub struct HintField {
    pub name: &'static str,
    pub kind: HintKind,
    pub required: bool,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    Text,
    /// A whole number from 0 to 2^53 − 1.
    Number,
}

impl HintField {
    /// A text that has to be there.
    pub const fn text(name: &'static str) -> Self {
        Self {
            name,
            kind: HintKind::Text,
            required: true,
        }
    }

    /// A number that has to be there.
    pub const fn number(name: &'static str) -> Self {
        Self {
            kind: HintKind::Number,
            ..Self::text(name)
        }
    }

    /// The same, which may be left out.
    pub const fn optional(self) -> Self {
        Self {
            required: false,
            ..self
        }
    }
}
