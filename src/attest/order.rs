//! The rules that fills and refunds of an order share (guide: protocol 7.2). Pure: no I/O, no clock.

use std::{collections::HashSet, fmt};

use alloy::primitives::aliases::U1024;
use vm::{
    Address, Amount, B256, Bytes, ChainId, EvmAddress, Family,
    protocol::{
        order::{self as wire, Order, OrderError},
        signature::{eip191, recover_wallet, signature_hex},
    },
};

use super::{
    Refusal,
    claim::{Families, bounded},
    deposit::{self, Deposits, Message},
    refusal::Shown,
};

/// A caller's statement about one input of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub onchain_id: String,
    /// The index of the order's input that the deposit pays.
    pub index: usize,
}

/// An order whose texts the families of its chains have parsed.
#[derive(Clone, Debug)]
pub struct Terms {
    pub id: B256,
    /// The solver that signed the order; an EVM account, whatever the solver's chain is.
    pub solver: EvmAddress,
    /// The order requires its solver's signature in every claim, so that only the solver decides which of several
    /// deposits a payment is for.
    pub vouched: bool,
    pub inputs: Vec<InputTerms>,
    pub output: OutputTerms,
    pub fees: Vec<FeeTerms>,
}

/// An input of an order: what it asks for, and its refund options.
#[derive(Clone, Debug)]
pub struct InputTerms {
    pub chain: String,
    pub currency: Address,
    pub amount: Amount,
    pub weight: Amount,
    pub refunds: Vec<RefundTerms>,
}

/// One refund option of an input.
#[derive(Clone, Debug)]
pub struct RefundTerms {
    pub chain: String,
    pub family: &'static Family,
    pub recipient: Address,
    pub currency: Address,
    pub minimum: Amount,
    /// Unix seconds; the block of the refund must not be later.
    pub deadline: u64,
    pub extra_data: Bytes,
}

/// The output of an order.
#[derive(Clone, Debug)]
pub struct OutputTerms {
    pub chain: String,
    pub family: &'static Family,
    pub payments: Vec<PaymentTerms>,
    pub calls: Vec<Bytes>,
    /// Unix seconds; the block of the fill must not be later.
    pub deadline: u64,
    pub extra_data: Bytes,
}

/// One payment of a fill.
#[derive(Clone, Debug)]
pub struct PaymentTerms {
    pub recipient: Address,
    pub currency: Address,
    pub minimum: Amount,
}

/// A fee that the solver pays at the hub once the order is filled.
#[derive(Clone, Debug)]
pub struct FeeTerms {
    pub recipient_chain: ChainId,
    pub recipient: Address,
    pub currency_chain: ChainId,
    pub currency: Address,
    pub amount: Amount,
}

/// Refuses an order with more parts than [`bounded`] allows.
fn check_shape(order: &Order) -> Result<(), Refusal> {
    bounded("order.inputs", order.inputs.len())?;
    bounded("order.output.payments", order.output.payments.len())?;
    bounded("order.output.calls", order.output.calls.len())?;
    bounded("order.fees", order.fees.len())?;
    for input in &order.inputs {
        bounded("order.inputs.refunds", input.refunds.len())?;
    }
    Ok(())
}

impl Terms {
    /// Parses an order's texts; its chains must be configured.
    pub fn new(order: &Order, families: Families<'_>) -> Result<Self, Refusal> {
        check_shape(order)?;
        let typed = order.checked(families).map_err(unreadable)?;
        let family = |chain: &str| families(chain).ok_or_else(|| missing(chain));
        let output = &order.output;
        Ok(Self {
            id: typed.id(),
            solver: typed.solver,
            vouched: wire::is_vouched(typed.salt),
            inputs: order
                .inputs
                .iter()
                .zip(&typed.inputs)
                .map(|(input, typed)| InputTerms::new(input, typed, families))
                .collect::<Result<_, _>>()?,
            output: OutputTerms {
                chain: output.chain_id.clone(),
                family: family(&output.chain_id)?,
                payments: output
                    .payments
                    .iter()
                    .zip(&typed.output.payments)
                    .map(|(payment, typed)| PaymentTerms {
                        recipient: address(&payment.recipient, &typed.recipient),
                        currency: address(&payment.currency, &typed.currency),
                        minimum: typed.minimumAmount,
                    })
                    .collect(),
                calls: typed.output.calls,
                deadline: output.deadline.into(),
                extra_data: typed.output.extraData,
            },
            fees: order
                .fees
                .iter()
                .zip(&typed.fees)
                .map(|(fee, typed)| FeeTerms {
                    recipient_chain: ChainId::new(&fee.recipient_chain_id),
                    recipient: address(&fee.recipient, &typed.recipient),
                    currency_chain: ChainId::new(&fee.currency_chain_id),
                    currency: address(&fee.currency, &typed.currency),
                    amount: typed.amount,
                })
                .collect(),
        })
    }

    /// The order's id as deposits and payments spell it.
    pub fn name(&self) -> String {
        format!("{:#x}", self.id)
    }
}

impl InputTerms {
    fn new(
        input: &wire::Input,
        typed: &wire::typed::Input,
        families: Families<'_>,
    ) -> Result<Self, Refusal> {
        let payment = &input.payment;
        let refund = |(refund, typed): (&wire::Refund, &wire::typed::InputRefund)| {
            let chain = &refund.chain_id;
            Ok(RefundTerms {
                chain: chain.clone(),
                family: families(chain).ok_or_else(|| missing(chain))?,
                recipient: address(&refund.recipient, &typed.recipient),
                currency: address(&refund.currency, &typed.currency),
                minimum: typed.minimumAmount,
                deadline: refund.deadline.into(),
                extra_data: typed.extraData.clone(),
            })
        };
        Ok(Self {
            chain: payment.chain_id.clone(),
            currency: address(&payment.currency, &typed.payment.currency),
            amount: typed.payment.amount,
            weight: typed.payment.weight,
            refunds: input
                .refunds
                .iter()
                .zip(&typed.refunds)
                .map(refund)
                .collect::<Result<_, Refusal>>()?,
        })
    }
}

fn address(text: &str, bytes: &Bytes) -> Address {
    Address::from_parts(text, bytes.clone())
}

fn missing(chain: &str) -> Refusal {
    Refusal::ChainNotAvailable(chain.into())
}

fn unreadable(error: OrderError) -> Refusal {
    match error {
        OrderError::Chain(chain) => missing(&chain),
        field => Refusal::Malformed(format!("body/order{field}").into()),
    }
}

/// Refuses ids and indexes that appear twice.
pub fn check_inputs(inputs: &[Input]) -> Result<(), Refusal> {
    bounded("inputs", inputs.len())?;
    let mut ids = HashSet::new();
    if !inputs
        .iter()
        .all(|i| ids.insert(i.onchain_id.to_ascii_lowercase()))
    {
        return Err(Refusal::RepeatedOnchainId);
    }
    let mut indexes = HashSet::new();
    if !inputs.iter().all(|i| indexes.insert(i.index)) {
        return Err(Refusal::RepeatedInput);
    }
    Ok(())
}

/// Refuses an order without its solver's signature: personal_sign over the raw id.
pub fn check_signature(solver: &str, id: B256, signature: &str) -> Result<(), Refusal> {
    let invalid = || Refusal::OrderSignature;
    let solver: EvmAddress = solver.parse().map_err(|_| invalid())?;
    let bytes = signature_hex(signature).map_err(|_| invalid())?;
    let signer = recover_wallet(&bytes, &eip191(id.as_slice())).map_err(|_| invalid())?;
    if signer == solver && !solver.is_zero() {
        Ok(())
    } else {
        Err(invalid())
    }
}

/// The deposit of every input of an order, in the order of the inputs. `deposits[n]` are those of the transaction
/// that `inputs[n]` names.
pub fn funded(
    terms: &Terms,
    inputs: &[Input],
    deposits: &Deposits,
) -> Result<Vec<Message>, Refusal> {
    let id = terms.name();
    let mut funded = Vec::with_capacity(terms.inputs.len());
    for (index, wanted) in terms.inputs.iter().enumerate() {
        let at = inputs
            .iter()
            .position(|input| input.index == index)
            .ok_or(Refusal::MissingInput(index))?;
        let listed = match deposits.get(at) {
            Some(Ok(listed)) => listed,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(Refusal::MissingInput(index)),
        };
        let onchain = &inputs[at].onchain_id;
        let message = listed
            .find(onchain)
            .filter(|message| *message.deposit.id == *id)
            .ok_or_else(|| Refusal::InvalidInput {
                index,
                order: (&id).into(),
                onchain: onchain.into(),
                deposits: Shown::list(&deposit::quote(&listed.messages)),
            })?;
        if message.deposit.named_by_other {
            return Err(Refusal::NamedByOther(onchain.into()));
        }
        if message.deposit.currency != wanted.currency {
            return Err(Refusal::WrongCurrency {
                index,
                deposited: message.deposit.currency.text().into(),
                ordered: wanted.currency.text().into(),
            });
        }
        funded.push(message.clone());
    }
    Ok(funded)
}

/// The deposits of a forced claim: every deposit that names the order, once.
pub fn forced(terms: &Terms, deposits: &Deposits) -> Result<Vec<Message>, Refusal> {
    let id = terms.name();
    let (mut known, mut funded) = (HashSet::new(), Vec::new());
    for listed in deposits.distinct() {
        let messages = &listed.as_ref().map_err(Clone::clone)?.messages;
        let named =
            |message: &&Message| *message.deposit.id == *id && !message.deposit.named_by_other;
        let named = messages.iter().filter(named);
        funded.extend(named.filter(|m| known.insert(m.onchain_id)).cloned());
    }
    Ok(funded)
}

/// How far the weighted deposits differ from what the order asks for, times 1e18.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    negative: bool,
    size: U1024,
}

/// 1e18: the scale of [`Difference`].
const SCALE: u64 = 1_000_000_000_000_000_000;

impl Difference {
    /// `(paid - requested) * 1e18 / requested` over the weighted sums, truncated towards zero.
    pub fn of(terms: &Terms, funded: &[Message]) -> Result<Self, Refusal> {
        let weighted = |amount: Amount, weight: Amount| U1024::from(amount) * U1024::from(weight);
        let sum = |a: U1024, b: U1024| a + b;
        let requested = terms
            .inputs
            .iter()
            .map(|input| weighted(input.amount, input.weight))
            .fold(U1024::ZERO, sum);
        let paid = terms
            .inputs
            .iter()
            .zip(funded)
            .map(|(input, message)| weighted(message.deposit.amount, input.weight))
            .fold(U1024::ZERO, sum);
        if requested.is_zero() {
            return Err(Refusal::ZeroRequested);
        }
        let size = paid.abs_diff(requested) * U1024::from(SCALE) / requested;
        Ok(Self {
            negative: paid < requested && !size.is_zero(),
            size,
        })
    }

    /// `minimum + minimum * self / 1e18`, truncated towards zero: the least that a refund must pay.
    pub fn scale(&self, minimum: Amount) -> U1024 {
        let minimum = U1024::from(minimum);
        let part = minimum * self.size / U1024::from(SCALE);
        if self.negative {
            minimum.saturating_sub(part)
        } else {
            minimum + part
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{}", self.size)
    }
}
