//! What supports a claim that an order was filled or refunded: its deposits, and where needed the solver's signature.
//! Pure: no I/O, no clock.
//!
//! Anybody may claim. So whoever claims first must not choose for the solver which of several deposits pays it: short
//! deposits need the solver's signature for the claim. An order can ask for that signature in every claim
//! ([`Terms::vouched`]), because two full deposits, one filled and one given back, could be claimed with each other's
//! payments.

use alloy::primitives::aliases::U512;
use vm::{
    B256, Seen,
    protocol::{
        id,
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

/// The whole of a deposit, in basis points.
const WHOLE: u16 = 10_000;

impl Default for Tolerance {
    fn default() -> Self {
        Self(100)
    }
}

impl Tolerance {
    /// `None` for more than the whole of a deposit.
    pub fn new(basis_points: u16) -> Option<Self> {
        (basis_points <= WHOLE).then_some(Self(basis_points))
    }

    /// Whether some deposit falls short of what the order asks for there by more than this.
    fn exceeded(self, terms: &Terms, funded: &[Message]) -> bool {
        let mut pairs = terms.inputs.iter().zip(funded);
        pairs.any(|(input, message)| {
            let least = U512::from(input.amount) * U512::from(WHOLE - self.0);
            U512::from(message.deposit.amount) * U512::from(WHOLE) < least
        })
    }
}

/// A claim's support.
#[derive(Clone, Copy, Debug)]
pub struct Backing<'a> {
    /// The deposit of every input of the order, in the order of the inputs.
    pub funded: &'a [Message],
    /// The transactions that the claim names as the order's deposits.
    pub inputs: &'a [Seen<'a>],
    /// The solver vouches for this claim: see [`vouched`].
    pub vouched: bool,
    pub tolerance: Tolerance,
}

impl Backing<'_> {
    /// By how much the deposits differ from the order. Refused where they fall short of it, or the order asks for its
    /// solver's signature, and the claim does not carry that signature.
    pub fn check(&self, terms: &Terms) -> Result<Difference, Refusal> {
        let difference = Difference::of(terms, self.funded)?;
        match self.vouched {
            false if terms.vouched => Err(Refusal::Unvouched),
            false if self.is_short(terms) => Err(Refusal::ShortClaim),
            _ => Ok(difference),
        }
    }

    /// Whether the deposits fall short of the order by more than is tolerated.
    pub fn is_short(&self, terms: &Terms) -> bool {
        self.tolerance.exceeded(terms, self.funded)
    }

    /// Whose payments count for the order.
    pub fn payer(&self, outcome: Outcome) -> Payer {
        match outcome {
            Outcome::Refund if !self.vouched => Payer::Solver,
            Outcome::Fill | Outcome::Refund => Payer::Sender,
        }
    }
}

/// What the solver signs to vouch for a claim: see [`id::claim`].
pub fn claim_id(outcome: Outcome, terms: &Terms, funded: &[Message]) -> B256 {
    let ids: Vec<B256> = funded.iter().map(|message| message.onchain_id).collect();
    id::claim(&outcome.to_string(), &ids, terms.id)
}

/// Whether the claim carries its solver's signature; another signature is refused.
pub fn vouched(
    outcome: Outcome,
    terms: &Terms,
    funded: &[Message],
    signature: Option<&str>,
) -> Result<bool, Refusal> {
    let ids: Vec<B256> = funded.iter().map(|message| message.onchain_id).collect();
    vouched_for(outcome, terms, &ids, signature)
}

/// Refuses, before anything is read, a claim of the deposits `ids` (in the order of the inputs) that lacks the
/// solver's signature where the order asks for it, or that carries another one.
pub fn check_word(
    outcome: Outcome,
    terms: &Terms,
    ids: &[B256],
    signature: Option<&str>,
) -> Result<(), Refusal> {
    match vouched_for(outcome, terms, ids, signature)? {
        false if terms.vouched => Err(Refusal::Unvouched),
        _ => Ok(()),
    }
}

fn vouched_for(
    outcome: Outcome,
    terms: &Terms,
    ids: &[B256],
    signature: Option<&str>,
) -> Result<bool, Refusal> {
    let Some(signature) = signature else {
        return Ok(false);
    };
    let invalid = || Refusal::ClaimSignature;
    let bytes = signature_hex(signature).map_err(|_| invalid())?;
    let claim = id::claim(&outcome.to_string(), ids, terms.id);
    let digest = eip191(claim.as_slice());
    let signer = recover_wallet(&bytes, &digest).map_err(|_| invalid())?;
    match signer == terms.solver && !signer.is_zero() {
        true => Ok(true),
        false => Err(invalid()),
    }
}
