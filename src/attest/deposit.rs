//! Judges a transaction's deposits (guide: protocol 4 and 7.1). Pure: no I/O, no clock.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Serialize;
use vm::{
    B256, ChainId, Deposit, Finality, Seen,
    protocol::{id, limits},
};

use super::{Refusal, finality, refusal::QUOTED, statement::Mode};

/// One attested deposit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub chain: ChainId,
    /// The transaction id in the caller's spelling.
    pub transaction: Arc<str>,
    /// The id of this deposit, unique over all chains.
    pub onchain_id: B256,
    pub deposit: Deposit,
    /// The deposit's block time in unix seconds.
    pub timestamp: u64,
}

/// The deposits of one transaction, indexed by their onchain ids.
#[derive(Clone, Debug)]
pub struct Listed {
    pub messages: Vec<Message>,
    positions: HashMap<B256, usize>,
}

impl Listed {
    fn of(messages: Vec<Message>) -> Self {
        let ids = messages.iter().enumerate();
        Self {
            positions: ids.map(|(at, message)| (message.onchain_id, at)).collect(),
            messages,
        }
    }

    /// The deposit with the onchain id `text`; ignores case.
    pub fn find(&self, text: &str) -> Option<&Message> {
        let digits = text
            .strip_prefix("0x")
            .or_else(|| text.strip_prefix("0X"))?;
        let id: B256 = digits.parse().ok().filter(|_| digits.len() == 64)?;
        self.messages.get(*self.positions.get(&id)?)
    }
}

/// The deposits of several transactions; each transaction is judged once.
#[derive(Clone, Debug)]
pub struct Deposits {
    distinct: Vec<Result<Listed, Refusal>>,
    /// The index into `distinct` of each transaction asked for.
    at: Vec<usize>,
}

impl Deposits {
    /// Judges transactions that are final by their chains' own rules.
    pub fn of(seen: &[Seen<'_>]) -> Self {
        let mut positions = HashMap::new();
        let mut distinct = Vec::new();
        let at = seen.iter().map(|seen| {
            let hint = seen.transaction.hint.as_ref().map(ToString::to_string);
            let key = (&seen.spec.id, &seen.transaction.bytes, hint);
            *positions.entry(key).or_insert_with(|| {
                distinct.push(settled(seen).map(Listed::of));
                distinct.len() - 1
            })
        });
        Self {
            at: at.collect(),
            distinct,
        }
    }

    /// Takes known deposits, each as a transaction of its own.
    pub fn known(messages: impl Iterator<Item = Message>) -> Self {
        let distinct: Vec<_> = messages.map(|one| Ok(Listed::of(vec![one]))).collect();
        Self {
            at: (0..distinct.len()).collect(),
            distinct,
        }
    }

    /// The deposits of the `n`-th transaction asked for.
    pub fn get(&self, n: usize) -> Option<&Result<Listed, Refusal>> {
        self.distinct.get(*self.at.get(n)?)
    }

    /// The deposits of each transaction, once.
    pub fn distinct(&self) -> impl Iterator<Item = &Result<Listed, Refusal>> {
        self.distinct.iter()
    }
}

/// A deposit in the form of refusals; the reference fixes the order of the fields.
#[derive(Serialize)]
struct Quoted<'a> {
    data: QuotedData<'a>,
    result: QuotedResult<'a>,
    #[serde(rename = "extraData")]
    extra_data: QuotedExtra,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QuotedData<'a> {
    chain_id: &'a str,
    transaction_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QuotedResult<'a> {
    onchain_id: String,
    depository: &'a str,
    deposit_id: &'a str,
    depositor: &'a str,
    currency: &'a str,
    amount: String,
}

#[derive(Serialize)]
struct QuotedExtra {
    timestamp: String,
}

impl<'a> Quoted<'a> {
    fn of(message: &'a Message) -> Self {
        let deposit = &message.deposit;
        Self {
            data: QuotedData {
                chain_id: message.chain.as_str(),
                transaction_id: &message.transaction,
            },
            result: QuotedResult {
                onchain_id: message.onchain_id.to_string(),
                depository: deposit.depository.text(),
                deposit_id: &deposit.id,
                depositor: deposit.depositor.text(),
                currency: deposit.currency.text(),
                amount: deposit.amount.to_string(),
            },
            extra_data: QuotedExtra {
                timestamp: message.timestamp.to_string(),
            },
        }
    }
}

/// The content of a deposit attestation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub messages: Vec<Message>,
    /// Fast only if a weaker finality than the chain's own was enough.
    pub mode: Mode,
    /// What the transaction's block met.
    pub finality: Finality,
}

/// Judges the deposits of a transaction that is final enough for `asked`.
pub fn judge(seen: &Seen<'_>, asked: Mode) -> Result<Judged, Refusal> {
    judged(seen, asked, attestable(seen)?)
}

/// Judges the deposits of a transaction that is final by the chain's own rule, for a claim about one of them; there
/// may be more than one attestation carries.
pub fn each(seen: &Seen<'_>) -> Result<Listed, Refusal> {
    limits::readable(seen.receipt()?)?;
    let judged = judged(seen, Mode::Slow, listed(seen)?)?;
    Ok(Listed::of(judged.messages))
}

fn judged(seen: &Seen<'_>, asked: Mode, messages: Vec<Message>) -> Result<Judged, Refusal> {
    let deposits: Vec<Deposit> = messages.iter().map(|m| m.deposit.clone()).collect();
    let required = finality::required(seen.spec, asked, &deposits);
    seen.final_by(&required.finality)?;
    Ok(Judged {
        messages,
        mode: required.mode,
        finality: required.finality,
    })
}

/// The deposits of a transaction that is final by the chain's own rule.
pub fn settled(seen: &Seen<'_>) -> Result<Vec<Message>, Refusal> {
    judge(seen, Mode::Slow).map(|judged| judged.messages)
}

/// The deposits as one JSON text for a refusal; stops at [`QUOTED`] bytes, where a refusal cuts it off.
pub fn quote(messages: &[Message]) -> String {
    let mut text = String::from("[");
    for (at, message) in messages.iter().enumerate() {
        if text.len() > QUOTED {
            break;
        }
        if at > 0 {
            text.push(',');
        }
        text += &serde_json::to_string(&Quoted::of(message)).unwrap_or_default();
    }
    text.push(']');
    text
}

/// The deposits of a transaction of any finality; refuses what the oracle refuses for ever.
pub fn attestable(seen: &Seen<'_>) -> Result<Vec<Message>, Refusal> {
    limits::attestable(seen.receipt()?)?;
    listed(seen)
}

/// As [`attestable`], for any number of deposits.
pub fn listed(seen: &Seen<'_>) -> Result<Vec<Message>, Refusal> {
    let receipt = seen.receipt()?;
    let deposits = receipt
        .deposits
        .as_ref()
        .map_err(|why| Refusal::UnreadableDeposit((&why.0).into()))?;
    let mut indexes = HashSet::with_capacity(deposits.len());
    let mut messages = Vec::with_capacity(deposits.len());
    for deposit in deposits {
        // Any token can emit an event for a deposit of nothing.
        if deposit.amount.is_zero() {
            continue;
        }
        if !indexes.insert(deposit.index) {
            return Err(Refusal::AmbiguousDeposit(seen.text().into()));
        }
        let index = deposit.index.to_string();
        messages.push(Message {
            chain: seen.spec.id.clone(),
            transaction: seen.transaction.text.clone(),
            onchain_id: id::deterministic(&[seen.spec.id.as_str(), seen.text(), &index]),
            deposit: deposit.clone(),
            timestamp: receipt.block.time,
        });
    }
    Ok(messages)
}
