//! A body made valid: every refusal that needs no network is here. Pure.

mod calls;
mod later;
mod side;
mod sources;
mod text;

use std::{num::NonZero, sync::Arc};

use alloy::primitives::U256;
use vm::{
    Address, ChainSpec, OrderCall,
    trade::{Authorization, Choices},
};

use super::{
    body::{Body, on},
    code::{Code, Refused},
};
use crate::{
    json::{Flag, Number},
    market::{Market, Network},
    request::{Operation, TradeType},
};

pub use calls::total;
pub use side::Side;
pub use sources::Sources;
pub use text::{AppFee, LIFE, app_fees, misspelled};

/// What a body is read against.
pub struct Basis<'m, 'a> {
    pub market: &'m Market,
    /// The chain of a network, where it is traded on.
    pub chain: &'a (dyn Fn(&str) -> Option<Traded> + Sync),
    /// The caller has shown a key.
    pub keyed: bool,
}

/// A chain that is traded on.
pub struct Traded {
    pub spec: Arc<ChainSpec>,
    /// The solver's account on it.
    pub solver: Address,
}

/// What somebody wants, in full and valid.
#[derive(Clone, Debug)]
pub struct Intent<'m> {
    pub user: Address,
    /// The user's public key, as the caller spelled it.
    pub user_key: Option<String>,
    pub recipient: Address,
    pub refund_to: Address,
    pub origin: Side<'m>,
    pub destination: Side<'m>,
    /// Never zero. Of the origin's currency for an exact input, else of the destination's.
    pub amount: U256,
    pub trade_type: TradeType,
    pub operation: Operation,
    /// The user's own transaction does everything.
    pub own: bool,
    pub calls: Vec<OrderCall>,
    /// Work that the calls may take, as the caller limited it.
    pub calls_work: Option<u64>,
    pub authorizations: Vec<Authorization>,
    /// Basis points.
    pub slippage: Option<u16>,
    pub late_slippage: Option<u16>,
    pub app_fees: Vec<AppFee>,
    pub explicit_deposit: bool,
    pub true_exact_output: bool,
    pub override_price_impact: bool,
    pub use_fallbacks: bool,
    pub disable_origin_swaps: bool,
    /// Pools that an exchange may go through.
    pub most_pools: Option<NonZero<u64>>,
    /// How the user's transactions are to be made.
    pub choices: Choices,
    pub include_protocol_data: bool,
    pub origin_gas_overhead: u64,
    pub ttl: Option<u64>,
    pub referrer: Option<String>,
    pub referrer_address: Option<String>,
    pub sources: Sources,
}

impl<'m> Intent<'m> {
    /// Reads `body`; the first thing that is wrong is refused with its code.
    pub fn of(body: &Body, basis: &Basis<'m, '_>) -> Result<Self, Refused> {
        later::refuse(body, basis.keyed)?;
        let trade_type = trade_type(&body.trade_type)?;
        let (origin, destination) = sides(body, basis)?;
        let user = text::owner(&origin.spec, "user", &body.user)?;
        let choices = later::choices(body, &origin.spec, &user)?;
        let ends = (&origin, &destination);
        let recipient = match &body.recipient {
            Some(given) => recipient(given, &destination)?,
            None => unnamed(&user, ends)?,
        };
        let refund_to = refund_to(body, ends, &user, &recipient)?;
        let calls = calls::read(body, trade_type, &destination)?;
        let authorizations = calls::authorizations(body, &destination)?;
        let operation = operation(&origin, &destination);
        let app_fees = text::app_fees(body.app_fees.as_deref().unwrap_or_default())?;
        let forced = on(body.force_solver_execution)
            || !calls.is_empty()
            || !authorizations.is_empty()
            || (operation == Operation::Swap && !app_fees.is_empty());
        let intent = Self {
            own: origin.network.chain_id == destination.network.chain_id && !forced,
            amount: text::amount(&body.amount)?,
            slippage: text::slippage("slippageTolerance", body.slippage_tolerance.as_deref())?,
            late_slippage: text::slippage(
                "latePaymentSlippageTolerance",
                body.late_payment_slippage_tolerance.as_deref(),
            )?,
            calls_work: calls::work(body, trade_type)?,
            explicit_deposit: body.explicit_deposit != Some(Flag(false)),
            true_exact_output: on(body.enable_true_exact_output),
            override_price_impact: on(body.override_price_impact),
            use_fallbacks: on(body.use_fallbacks),
            disable_origin_swaps: on(body.disable_origin_swaps),
            most_pools: text::most_pools(number(body.max_route_length))?,
            include_protocol_data: on(body.include_protocol_data),
            origin_gas_overhead: text::gas("originGasOverhead", number(body.origin_gas_overhead))?
                .unwrap_or_default(),
            ttl: text::ttl(number(body.ttl))?,
            referrer: text::referrer(body)?,
            referrer_address: body.referrer_address.clone(),
            sources: Sources::of(body)?,
            user_key: user_key(body),
            user,
            recipient,
            refund_to,
            origin,
            destination,
            trade_type,
            operation,
            calls,
            authorizations,
            app_fees,
            choices,
        };
        intent.deliverable()?;
        Ok(intent)
    }

    /// Both sides are on one chain.
    pub fn same_chain(&self) -> bool {
        self.origin.network.chain_id == self.destination.network.chain_id
    }

    /// Until the recipient has it: the deposit is final or small enough, the fill is in a block with those on top that
    /// confirm it. How much is deposited for an output is not known here: it counts as large.
    pub fn seconds(&self) -> u64 {
        let given = self.trade_type == TradeType::ExactInput;
        self.seconds_where(given && is_small(&self.origin, self.amount))
    }

    /// As [`Self::seconds`], where so many smallest units of `paid` are deposited.
    pub fn seconds_for(&self, paid: &Side<'_>, units: U256) -> u64 {
        self.seconds_where(is_small(paid, units))
    }

    fn seconds_where(&self, small: bool) -> u64 {
        let (origin, destination) = (&self.origin, &self.destination);
        let lag = |side: &Side<'_>| side.spec.family.finality.lag_seconds;
        let pace = origin.network.block_seconds;
        if self.own {
            return pace.saturating_add(lag(origin));
        }
        let acted_on = match small {
            true => pace,
            false => origin.spec.finality.usual(pace),
        };
        let confirmed = destination.network.fill_confirmations.saturating_add(1);
        let confirmed = confirmed.saturating_mul(destination.network.block_seconds);
        [lag(origin), confirmed, lag(destination)]
            .into_iter()
            .fold(acted_on, u64::saturating_add)
    }

    /// What the route cannot do for these people.
    fn deliverable(&self) -> Result<(), Refused> {
        let to_self = self.user == self.recipient;
        let idle = self.operation == Operation::Send && to_self && self.calls.is_empty();
        if idle {
            let what = "destinationCurrency: expected another currency, chain or recipient than the \
                        origin's";
            return Err(Refused::new(Code::UnsupportedRoute, what));
        }
        if self.own && self.operation == Operation::Send {
            later::of_payment(&self.choices)?;
        }
        if self.own && self.operation == Operation::Swap && self.disable_origin_swaps {
            let what = "disableOriginSwaps: a swap on one chain is made on the origin";
            return Err(Refused::new(Code::NoSwapRoutesFound, what));
        }
        let turning = matches!(self.operation, Operation::Wrap | Operation::Unwrap);
        if turning && self.own && !to_self {
            let what = "recipient: wrapping and unwrapping reach the user only";
            return Err(Refused::new(Code::UserRecipientMismatch, what));
        }
        Ok(())
    }
}

/// Whether a deposit of so many units is acted on before it is final.
fn is_small(paid: &Side<'_>, units: U256) -> bool {
    let (network, currency) = (paid.network, &paid.currency.address);
    network.acts_in_one_block(currency, units)
}

/// The user's public key, as the caller spelled it.
fn user_key(body: &Body) -> Option<String> {
    let data = body.additional_data.as_ref()?;
    data.user_public_key.clone()
}

fn number(given: Option<Number>) -> Option<u64> {
    given.map(|given| given.0)
}

fn trade_type(text: &str) -> Result<TradeType, Refused> {
    match text {
        "EXACT_INPUT" => Ok(TradeType::ExactInput),
        "EXACT_OUTPUT" => Ok(TradeType::ExactOutput),
        "EXPECTED_OUTPUT" => Ok(TradeType::ExpectedOutput),
        _ => Err(Refused::new(
            Code::InvalidField,
            "tradeType: expected EXACT_INPUT, EXACT_OUTPUT or EXPECTED_OUTPUT",
        )),
    }
}

fn sides<'m>(body: &Body, basis: &Basis<'m, '_>) -> Result<(Side<'m>, Side<'m>), Refused> {
    let origin = End {
        chain: "originChainId",
        currency: "originCurrency",
        malformed: Code::InvalidInputCurrency,
    };
    let destination = End {
        chain: "destinationChainId",
        currency: "destinationCurrency",
        malformed: Code::InvalidOutputCurrency,
    };
    let from = origin.chain(body.origin_chain_id.0, basis)?;
    let to = destination.chain(body.destination_chain_id.0, basis)?;
    let input = origin.side(from, &body.origin_currency)?;
    Ok((input, destination.side(to, &body.destination_currency)?))
}

/// How one end of a body is spelled, and the code of a currency that is none.
struct End {
    chain: &'static str,
    currency: &'static str,
    malformed: Code,
}

type Listed<'m> = (&'m Network, Traded);

impl End {
    fn chain<'m>(&self, number: u64, basis: &Basis<'m, '_>) -> Result<Listed<'m>, Refused> {
        let field = self.chain;
        let Some(network) = basis.market.by_number(number) else {
            return Err(later::chain(field, number));
        };
        if network.disabled {
            let what = format!("{field}: chain {number} is switched off");
            return Err(Refused::new(Code::ChainDisabled, what));
        }
        let chain = (basis.chain)(&network.name);
        let chain = chain.filter(|chain| chain.spec.family.steps.is_some());
        chain.map(|chain| (network, chain)).ok_or_else(|| {
            let what = format!("{field}: chain {number} is not traded yet");
            Refused::new(Code::UnsupportedRoute, what)
        })
    }

    fn side<'m>(&self, listed: Listed<'m>, given: &str) -> Result<Side<'m>, Refused> {
        let (field, (network, Traded { spec, solver })) = (self.currency, listed);
        let Some(currency) = network.currency(given) else {
            let code = match text::currency(&spec, given) {
                Some(_) => Code::UnsupportedCurrency,
                None => self.malformed,
            };
            let what = format!("{field}: expected the address of a supported currency");
            return Err(Refused::new(code, what));
        };
        let address = text::currency(&spec, &currency.address).ok_or_else(|| {
            let what = format!("{field}: has no usable address");
            Refused::new(Code::UnsupportedCurrency, what)
        })?;
        Ok(Side {
            network,
            spec,
            solver,
            currency,
            address,
        })
    }
}

/// Money sent to a contract that does not expect it is lost.
fn recipient(given: &str, side: &Side<'_>) -> Result<Address, Refused> {
    let recipient =
        text::account(&side.spec, given).ok_or_else(|| text::bad("recipient", given))?;
    let refused = |what| Refused::new(Code::InvalidRecipient, format!("recipient: {what}"));
    let unfit = unfit(&recipient, side).map(refused);
    unfit.map_or(Ok(recipient), Err)
}

/// The recipient where nobody is named: the user, whose account must be one of the destination, too.
fn unnamed(
    user: &Address,
    (origin, destination): (&Side<'_>, &Side<'_>),
) -> Result<Address, Refused> {
    if !origin.is_like(destination) {
        let what = "recipient: required where the destination has other accounts than the origin";
        return Err(Refused::new(Code::InvalidRecipient, what));
    }
    if *user == destination.solver {
        let what = "user: must not be an account of this service";
        return Err(Refused::new(Code::InvalidAddress, what));
    }
    Ok(user.clone())
}

/// Whom a refund reaches: as asked, else the recipient where the origin can pay it, else the user.
fn refund_to(
    body: &Body,
    (origin, destination): (&Side<'_>, &Side<'_>),
    user: &Address,
    recipient: &Address,
) -> Result<Address, Refused> {
    let refused = |what: String| Refused::new(Code::InvalidAddress, what);
    if let Some(given) = &body.refund_to {
        let account = text::owner(&origin.spec, "refundTo", given)?;
        let unfit = unfit(&account, origin);
        let unfit = unfit.map(|what| refused(format!("refundTo: {what}")));
        return unfit.map_or(Ok(account), Err);
    }
    // A text that is an account of both families need not be the same owner's on both.
    if origin.is_like(destination) && unfit(recipient, origin).is_none() {
        return Ok(recipient.clone());
    }
    match unfit(user, origin) {
        None => Ok(user.clone()),
        Some(what) => Err(refused(format!(
            "user: {what}, as nobody else can be refunded"
        ))),
    }
}

/// Why money must not be sent to `account`.
fn unfit(account: &Address, side: &Side<'_>) -> Option<&'static str> {
    if text::is_zero(account) {
        return Some("must not be the zero address");
    }
    if side.network.currency(account.text()).is_some() {
        return Some("must not be a token's contract");
    }
    let contracts = side.network.fill_routers();
    let mut contracts = contracts.chain(&side.network.approval_proxy);
    let contract = contracts.any(|one| text::account(&side.spec, one).as_ref() == Some(account))
        || side.spec.depositories().any(|one| one == account);
    let own = contract || *account == side.solver;
    own.then_some("must not be an account of this service")
}

fn operation(origin: &Side<'_>, destination: &Side<'_>) -> Operation {
    if origin.network.chain_id != destination.network.chain_id {
        return Operation::Swap;
    }
    if origin.address == destination.address {
        return Operation::Send;
    }
    if origin.is_native() && destination.is_wrapped() {
        Operation::Wrap
    } else if origin.is_wrapped() && destination.is_native() {
        Operation::Unwrap
    } else {
        Operation::Swap
    }
}

#[cfg(test)]
mod tests;
