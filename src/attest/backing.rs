//! The support of a claim that an order was filled or refunded: its deposits, and where needed the solver's
//! signature. Pure: no I/O, no clock.
//!
//! Anybody may claim, so the first claimant must not choose for the solver which of several deposits pays it. Short
//! deposits therefore need the solver's signature for the claim. An order can require that signature in every claim
//! ([`Terms::vouched`]), because of two full deposits, one filled and one refunded, each could be claimed with the
//! other's payment.

use alloy::primitives::aliases::U512;
use vm::{
    B256, Seen,
    protocol::{
        BASIS_POINTS, id,
        signature::{eip191, recover_wallet, signature_hex},
    },
};

use super::{
    Refusal,
    deposit::Message,
    order::{Difference, Terms},
    paid::Payer,
    statement::Outcome,
};

/// How far a deposit may fall short of its order without the solver's signature, in basis points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance(u16);

impl Default for Tolerance {
    fn default() -> Self {
        Self(100)
    }
}

impl Tolerance {
    /// `None` above [`BASIS_POINTS`].
    pub fn new(basis_points: u16) -> Option<Self> {
        (u64::from(basis_points) <= BASIS_POINTS).then_some(Self(basis_points))
    }

    /// The tolerance in basis points.
    pub fn basis_points(self) -> u16 {
        self.0
    }

    /// Whether a deposit falls short of its input by more than this.
    fn exceeded(self, terms: &Terms, funded: &[Message]) -> bool {
        let mut pairs = terms.inputs.iter().zip(funded);
        pairs.any(|(input, message)| {
            let least = U512::from(input.amount) * U512::from(BASIS_POINTS - u64::from(self.0));
            U512::from(message.deposit.amount) * U512::from(BASIS_POINTS) < least
        })
    }
}

/// The support of a claim.
#[derive(Clone, Copy, Debug)]
pub struct Backing<'a> {
    /// The deposit of every input of the order, in the order of the inputs.
    pub funded: &'a [Message],
    /// The transactions that the claim names as the order's deposits.
    pub inputs: &'a [Seen<'a>],
    /// Whether the claim carries its solver's signature: see [`vouched`].
    pub vouched: bool,
    pub tolerance: Tolerance,
}

impl Backing<'_> {
    /// How far the deposits differ from the order. Refuses a claim without the solver's signature where the deposits
    /// fall short or the order requires it.
    pub fn check(&self, terms: &Terms) -> Result<Difference, Refusal> {
        let difference = Difference::of(terms, self.funded)?;
        match self.vouched {
            false if terms.vouched => Err(Refusal::Unvouched),
            false if self.is_short(terms) => Err(Refusal::ShortClaim),
            _ => Ok(difference),
        }
    }

    /// Whether the deposits fall short of the order by more than the tolerance.
    pub fn is_short(&self, terms: &Terms) -> bool {
        self.tolerance.exceeded(terms, self.funded)
    }

    /// Whose payments count for an order that ended with `outcome`.
    pub fn payer(&self, outcome: Outcome) -> Payer {
        match outcome {
            Outcome::Refund if !self.vouched => Payer::Solver,
            Outcome::Fill | Outcome::Refund => Payer::Sender,
        }
    }
}

/// The text id that the solver signs for a claim: see [`id::claim`].
pub fn claim_id(outcome: Outcome, terms: &Terms, funded: &[Message]) -> B256 {
    let ids: Vec<B256> = funded.iter().map(|message| message.onchain_id).collect();
    id::claim(&outcome.to_string(), &ids, terms.id)
}

/// Whether the claim carries its solver's signature; refuses any other signature.
pub fn vouched(
    outcome: Outcome,
    terms: &Terms,
    funded: &[Message],
    signature: Option<&str>,
) -> Result<bool, Refusal> {
    let ids: Vec<B256> = funded.iter().map(|message| message.onchain_id).collect();
    vouched_for(&outcome.to_string(), terms, &ids, signature)
}

/// Whether, before any read, a claim of the deposits `ids` (in the order of the inputs) carries its solver's signature.
/// Refuses a claim that lacks a required signature, or that carries another one.
pub fn check_word(
    outcome: Outcome,
    terms: &Terms,
    ids: &[B256],
    signature: Option<&str>,
) -> Result<bool, Refusal> {
    match vouched_for(&outcome.to_string(), terms, ids, signature)? {
        false if terms.vouched => Err(Refusal::Unvouched),
        vouched => Ok(vouched),
    }
}

/// The same for a claim that an order ends at the hub by an exchange of the deposit `onchain`. A signature for a fill or
/// refund is none for that: peers and providers of claims have seen it.
pub fn check_exchange(
    outcome: Outcome,
    terms: &Terms,
    onchain: &str,
    signature: Option<&str>,
) -> Result<(), Refusal> {
    let kind = exchange_kind(outcome);
    let ids = onchain.parse().map(|id: B256| vec![id]);
    let ids = ids.unwrap_or_default();
    match vouched_for(&kind, terms, &ids, signature)? {
        false if terms.vouched => Err(Refusal::Unvouched),
        _ => Ok(()),
    }
}

/// What the solver's signature for such a claim names it.
fn exchange_kind(outcome: Outcome) -> String {
    format!("withdraw-and-{outcome}")
}

fn vouched_for(
    kind: &str,
    terms: &Terms,
    ids: &[B256],
    signature: Option<&str>,
) -> Result<bool, Refusal> {
    let Some(signature) = signature else {
        return Ok(false);
    };
    let invalid = || Refusal::ClaimSignature;
    let bytes = signature_hex(signature).map_err(|_| invalid())?;
    let claim = id::claim(kind, ids, terms.id);
    let digest = eip191(claim.as_slice());
    let signer = recover_wallet(&bytes, &digest).map_err(|_| invalid())?;
    match signer == terms.solver && !signer.is_zero() {
        true => Ok(true),
        false => Err(invalid()),
    }
}
