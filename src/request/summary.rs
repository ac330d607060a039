//! What a request can be found and sorted by, small enough to look at thousands of them.

use std::collections::{BTreeSet, HashSet};

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::{
    Operation, Request,
    fact::{Attempt, Facts, Inclusion, Purpose, State},
    name::Name,
    quoted::Quoted,
    render,
    status::{self, Status},
};
use crate::format;

/// Whoever changes what stands in it, or what it is made of, gives it a new number: stores then make
/// all of them anew.
pub const VERSION: u64 = 3;

/// Blocks of a side, and transactions of a role, that a summary tells: a request may have hundreds,
/// and its summary is written with every change.
const LISTED: usize = 8;

/// What lists of requests are searched and sorted by. Fields are on disk in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub id: B256,
    pub order_id: B256,
    pub status: Status,
    /// The wire's words.
    pub fail_reason: Option<String>,
    pub refund_fail_reason: Option<String>,
    pub sender: Name,
    pub recipient: Name,
    pub deposit_address: Option<Name>,
    /// Who paid into the deposit address.
    pub depositor: Option<Name>,
    /// The label of the key that asked.
    pub api_key: Option<String>,
    pub referrer: Option<String>,
    pub kind: Kind,
    pub origin: Side,
    pub destination: Side,
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds.
    pub updated_at: u64,
    /// Numbers of the blocks with its transactions, the lowest ones.
    pub origin_blocks: Vec<u64>,
    pub destination_blocks: Vec<u64>,
    /// What was to be deposited, millionths of a dollar.
    pub amount: Option<u64>,
    /// Millionths of a dollar.
    pub app_fees: Option<u64>,
    /// Seconds between the blocks of the deposit that counts and of its fill.
    pub fill_time: Option<u64>,
    /// Bits of [`Feature`].
    pub features: u8,
    /// The first ones of each role.
    pub transactions: Vec<(Role, Name)>,
}

/// What is paid in or out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    pub chain: u64,
    pub currency: Name,
    /// Empty where the quote does not tell.
    pub symbol: String,
}

/// `requestType`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
pub enum Kind {
    Bridge,
    #[strum(serialize = "Crosschain Swap")]
    CrosschainSwap,
    #[strum(serialize = "Same-chain Swap")]
    SameChainSwap,
    Send,
    Wrap,
    Unwrap,
    Call,
}

/// What a transaction was for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, VariantArray)]
pub enum Role {
    Deposit,
    Fill,
    Refund,
    /// The solver's, without effect.
    Failed,
    /// The user's own that did everything, or was told to.
    Own,
}

impl Role {
    pub fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Those whose bits are set.
    pub fn of(bits: u8) -> Vec<Self> {
        let all = Self::VARIANTS.iter().copied();
        all.filter(|role| role.bit() & bits != 0).collect()
    }
}

/// `features`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Feature {
    GaslessExecution = 1,
    GaslessSwap = 2,
    FastFill = 4,
    GasTopUp = 8,
    FixedRate = 16,
    AppFees = 32,
    DepositAddress = 64,
}

impl Kind {
    /// The wire's word.
    pub fn text(self) -> &'static str {
        self.into()
    }

    /// What `request` with its quote is; calls are what it is about wherever there are any.
    pub fn of(request: &Request, quoted: &Quoted) -> Self {
        if !request.calls.is_empty() {
            return Self::Call;
        }
        match request.operation {
            Operation::Bridge => Self::Bridge,
            Operation::Swap if request.is_same_chain() => Self::SameChainSwap,
            Operation::Swap if quoted.one_asset => Self::Bridge,
            Operation::Swap => Self::CrosschainSwap,
            Operation::Send => Self::Send,
            Operation::Wrap => Self::Wrap,
            Operation::Unwrap => Self::Unwrap,
        }
    }
}

impl Feature {
    /// The wire's word.
    pub fn text(self) -> &'static str {
        self.into()
    }

    pub fn bit(self) -> u8 {
        self as u8
    }

    /// Those that a request made use of.
    pub fn of(quoted: &Quoted) -> impl Iterator<Item = Self> {
        let fixed = quoted.details.as_ref().is_some_and(|one| one.is_fixed_rate);
        let fees = !quoted.app_fees.is_empty();
        let used = [(fixed, Self::FixedRate), (fees, Self::AppFees)];
        used.into_iter()
            .filter(|(used, _)| *used)
            .map(|(_, one)| one)
    }
}

impl Summary {
    pub fn of(request: &Request, facts: &Facts) -> Self {
        let quoted = Quoted::of(request);
        let (details, fees) = (quoted.details.as_ref(), quoted.fees.as_ref());
        let verdict = status::of(request, facts);
        let (origin_blocks, destination_blocks) = blocks(request, facts);
        let input = details.map(|details| &details.currency_in);
        let output = details.map(|details| &details.currency_out);
        let side = |leg: &super::Leg, amount: Option<&super::quoted::Amount>| Side {
            chain: leg.chain,
            currency: Name::of(&leg.currency),
            symbol: amount
                .map(|it| it.currency.symbol.to_lowercase())
                .unwrap_or_default(),
        };
        let micro = |amount: &super::quoted::Amount| {
            let micro = format::micro_of(&amount.amount_usd)?;
            u64::try_from(micro).ok()
        };
        Self {
            id: request.id,
            order_id: request.order_id,
            status: verdict.status,
            fail_reason: verdict.fail_reason.map(|reason| reason.text()),
            refund_fail_reason: verdict.refund_fail_reason.map(|reason| reason.text()),
            sender: Name::of(&request.user),
            recipient: Name::of(&request.recipient),
            deposit_address: None,
            depositor: None,
            api_key: request.api_key.clone(),
            referrer: request.referrer.clone(),
            kind: Kind::of(request, &quoted),
            origin: side(&request.origin, input),
            destination: side(&request.destination, output),
            created_at: request.created_at,
            updated_at: render::updated_at(request, facts),
            origin_blocks,
            destination_blocks,
            amount: input.and_then(micro),
            app_fees: fees.and_then(|fees| micro(&fees.app)),
            fill_time: fill_time(request, facts),
            features: Feature::of(&quoted).map(Feature::bit).sum(),
            transactions: first(transactions(facts)),
        }
    }

    /// Every account that it can be looked for by, each once.
    pub fn accounts(&self) -> BTreeSet<&Name> {
        let own = [&self.sender, &self.recipient].into_iter();
        let others = [&self.deposit_address, &self.depositor];
        own.chain(others.into_iter().flatten()).collect()
    }

    /// With a transaction that it may not tell.
    pub fn with(&mut self, roles: &[Role], name: &Name) {
        for role in roles {
            let one = (*role, name.clone());
            if !self.transactions.contains(&one) {
                self.transactions.push(one);
            }
        }
    }
}

fn blocks(request: &Request, facts: &Facts) -> (Vec<u64>, Vec<u64>) {
    let (mut origin, mut destination) = (BTreeSet::new(), BTreeSet::new());
    for (network, _, place) in facts.placed() {
        let there = network != request.origin.network && network == request.destination.network;
        let blocks = if there { &mut destination } else { &mut origin };
        blocks.extend(place.map(|place| place.number));
    }
    let all = |blocks: BTreeSet<u64>| blocks.into_iter().take(LISTED).collect();
    (all(origin), all(destination))
}

/// The block of the fill that counts.
pub(super) fn filled(facts: &Facts) -> Option<(&Attempt, &Inclusion)> {
    let mut fills = facts.alive(Purpose::Fill);
    fills.find_map(|attempt| Some((attempt, attempt.state.place()?)))
}

fn fill_time(request: &Request, facts: &Facts) -> Option<u64> {
    let (_, place) = filled(facts)?;
    let deposit = render::counting(request, facts)?;
    Some(place.time.saturating_sub(deposit.place.time))
}

/// Every transaction that `facts` tell of with what it was for, each once.
pub fn transactions(facts: &Facts) -> Vec<(Role, Name)> {
    let deposits = facts
        .deposits
        .iter()
        .map(|one| (Role::Deposit, &one.transaction));
    let own = facts.own.iter().map(|one| (Role::Own, &one.transaction));
    let attempts = facts.attempts.iter().map(|one| {
        let role = match (&one.state, one.purpose) {
            (State::Reverted { .. } | State::Replaced, _) => Role::Failed,
            (_, Purpose::Fill) => Role::Fill,
            (_, Purpose::Refund | Purpose::Excess) => Role::Refund,
        };
        (role, &one.transaction)
    });
    let all = deposits.chain(own).chain(attempts);
    let mut known = HashSet::new();
    all.map(|(role, text)| (role, Name::of(text)))
        .filter(|one| known.insert(one.clone()))
        .collect()
}

fn first(all: Vec<(Role, Name)>) -> Vec<(Role, Name)> {
    let mut counts = [0; Role::VARIANTS.len()];
    let few = |(role, _): &(Role, Name)| {
        counts[*role as usize] += 1;
        counts[*role as usize] <= LISTED
    };
    all.into_iter().filter(few).collect()
}
