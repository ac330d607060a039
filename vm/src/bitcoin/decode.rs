//! Decodes a Bitcoin transaction and the outputs that it spends into a [`Receipt`] (guide: protocol 4.3). Pure.
//!
//! Bitcoin has no events. A deposit is an output to a depository; the spent outputs tell it from change, and an
//! OP_RETURN contains the order id. Addresses are derived from scripts, not taken from the node's rendering.

use std::{collections::BTreeSet, sync::Arc};

use bitcoin::{
    Script, ScriptBuf,
    blockdata::script::Instruction,
    opcodes::all::{OP_PUSHDATA1, OP_RETURN},
};

use super::{
    network::Network,
    payer,
    raw::RawTransaction,
    source::{self, Found, MAX_PREVIOUS},
};
use crate::{
    ChainSpec, Codec, SpecError,
    types::{Address, Amount, Block, Deposit, Execution, Payment, PaymentKind, Receipt, Refusal},
};

/// `0x` and 64 hex digits.
const ID_LENGTH: usize = 66;
/// The longest push with a length of one byte. Other oracles read no longer one.
const LONGEST_NOTE: usize = 255;
const NO_ID: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

/// The part of a chain's entry that decoding needs.
pub struct Rules {
    network: &'static Network,
    depositories: Vec<Address>,
    native: Address,
}

impl Rules {
    pub fn new(spec: &ChainSpec) -> Result<Self, SpecError> {
        let native = spec
            .family
            .native()
            .map_err(|error| SpecError(error.to_string()))?;
        Ok(Self {
            network: Network::of(&spec.additional)?,
            depositories: spec.depositories().cloned().collect(),
            native,
        })
    }

    /// The depository that a script pays.
    pub fn depository(&self, script: &Script) -> Option<&Address> {
        let address = self.network.address(script)?;
        self.depositories
            .iter()
            .find(|depository| **depository == address)
    }
}

/// Decodes the transaction in `block`. `spent` has the script of each input's previous output, in the order of the
/// inputs; `None` for a coinbase.
pub fn decode(
    rules: &Rules,
    transaction: &RawTransaction,
    spent: &[Option<ScriptBuf>],
    block: Block,
) -> Receipt {
    let notes = notes(transaction);
    Receipt {
        block,
        sender: sender(rules, transaction, spent),
        deposits: deposits(rules, transaction, spent, &notes),
        payments: payments(rules, transaction, spent),
        calls: Vec::new(),
        executions: executions(rules, transaction, spent),
        references: references(&notes),
        outer_call: None,
    }
}

/// Decodes a transaction as a provider shows it. Where what it spends was not read, nobody attests its deposits.
pub fn receipt(rules: &Rules, found: &Found) -> Receipt {
    let spent = found.spent.as_deref();
    let known = spent.unwrap_or_default();
    let mut receipt = decode(rules, &found.transaction, known, found.block.clone());
    if spent.is_none() {
        let what = format!("Transaction spends outputs of more than {MAX_PREVIOUS} others");
        receipt.deposits = Err(Refusal(what));
    }
    receipt
}

/// The text of one OP_RETURN and the index of its output.
struct Note {
    index: u32,
    text: String,
}

impl Note {
    /// The order id at its start.
    fn id(&self) -> Option<&str> {
        self.text.get(..ID_LENGTH).filter(|start| is_id(start))
    }

    /// The first `|depositor=<address>|` that names an address of the network.
    fn depositor(&self, network: &Network) -> Option<Address> {
        self.text.split("|depositor=").skip(1).find_map(|rest| {
            let (text, _) = rest.split_once('|')?;
            // Hub accounts exist for more texts than there are addresses.
            network.script(text).ok()?;
            Some(Address::from_parts(
                text,
                network.encode_address(text).ok()?,
            ))
        })
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH
        && text
            .strip_prefix("0x")
            .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn notes(transaction: &RawTransaction) -> Vec<Note> {
    let outputs = transaction.vout.iter();
    let notes = outputs.filter_map(|output| {
        Some(Note {
            index: output.n,
            text: note(&output.script.hex)?,
        })
    });
    notes.collect()
}

/// The text of an OP_RETURN with exactly one push, of at most [`LONGEST_NOTE`] bytes, whose length has one byte.
fn note(script: &Script) -> Option<String> {
    let push = *script.as_bytes().get(1)?;
    if push > OP_PUSHDATA1.to_u8() {
        return None;
    }
    let mut instructions = script.instructions();
    let Some(Ok(Instruction::Op(OP_RETURN))) = instructions.next() else {
        return None;
    };
    let (Some(Ok(Instruction::PushBytes(bytes))), None) =
        (instructions.next(), instructions.next())
    else {
        return None;
    };
    let text = || String::from_utf8_lossy(bytes.as_bytes()).into_owned();
    (bytes.len() <= LONGEST_NOTE).then(text)
}

fn deposits(
    rules: &Rules,
    transaction: &RawTransaction,
    spent: &[Option<ScriptBuf>],
    notes: &[Note],
) -> Result<Vec<Deposit>, Refusal> {
    // A transaction that a depository sends returns change to it, which is no deposit.
    if spent
        .iter()
        .flatten()
        .any(|script| rules.depository(script).is_some())
    {
        return Ok(Vec::new());
    }
    let (index, id) = named_order(notes)?;
    let depositor = depositor(rules, spent, notes)?;
    // Others may have put the first input there, the id, or the depositor.
    let is_open = payer::is_open(&transaction.vin, spent);
    if is_open && !is_sole(rules, spent, &depositor) {
        return Err(Refusal("Could not determine depositor".into()));
    }
    let named_by_other = is_open && *id != *NO_ID;
    let by_depositor = sender(rules, transaction, spent).as_ref() == Some(&depositor);
    let (depository, amount) = received(rules, transaction)?;
    let currency = rules.native.clone();
    Ok(vec![Deposit {
        index,
        depository,
        depositor,
        currency,
        amount,
        id,
        named_by_other,
        by_depositor,
    }])
}

/// The order id of a deposit, and the output that names it. Two different ids name no order.
fn named_order(notes: &[Note]) -> Result<(u32, Arc<str>), Refusal> {
    let mut ids = notes
        .iter()
        .filter_map(|note| Some((note.index, note.id()?)));
    let Some((index, id)) = ids.next() else {
        return Ok((0, NO_ID.into()));
    };
    if ids.any(|(_, other)| !other.eq_ignore_ascii_case(id)) {
        return Err(Refusal("Transaction names several order ids".into()));
    }
    Ok((index, id.into()))
}

fn depositor(
    rules: &Rules,
    spent: &[Option<ScriptBuf>],
    notes: &[Note],
) -> Result<Address, Refusal> {
    let unknown = || Refusal("Could not determine depositor".into());
    // A reorg can undo a coinbase long after other transactions are final.
    if spent.iter().any(Option::is_none) {
        return Err(unknown());
    }
    let mut named = notes.iter().filter_map(|it| it.depositor(rules.network));
    if let Some(depositor) = named.next() {
        if named.any(|other| other != depositor) {
            return Err(Refusal("Transaction names several depositors".into()));
        }
        return Ok(depositor);
    }
    spent
        .first()
        .and_then(Option::as_ref)
        .and_then(|script| rules.network.address(script))
        .ok_or_else(unknown)
}

/// Whether `owner` owns everything that is spent.
fn is_sole(rules: &Rules, spent: &[Option<ScriptBuf>], owner: &Address) -> bool {
    let owners = spent.iter().flatten();
    let mut owners = owners.map(|script| rules.network.address(script));
    owners.all(|found| found.as_ref() == Some(owner))
}

/// The one depository that received value, and how much in satoshis.
fn received(rules: &Rules, transaction: &RawTransaction) -> Result<(Address, Amount), Refusal> {
    let mut total = None;
    for output in &transaction.vout {
        let Some(depository) = rules.depository(&output.script.hex) else {
            continue;
        };
        let amount = Amount::from(output.value.to_sat());
        total = match total {
            None => Some((depository, amount)),
            Some((known, sum)) if known == depository => Some((known, sum + amount)),
            Some(_) => return Err(Refusal("Multiple depositories received funds".into())),
        };
    }
    total
        .filter(|(_, amount)| !amount.is_zero())
        .map(|(depository, amount)| (depository.clone(), amount))
        .ok_or_else(|| Refusal("No value sent to the depository".into()))
}

/// The outputs to depositories as somebody would see them who takes each for a deposit: for an operator, where
/// [`decode`] refuses to attribute them.
pub fn outputs(
    rules: &Rules,
    transaction: &RawTransaction,
    spent: &[Option<ScriptBuf>],
) -> Vec<Deposit> {
    let notes = notes(transaction);
    let named = notes.iter().find_map(Note::id).unwrap_or(NO_ID);
    let mut payers = spent.iter().flatten();
    let payer = payers.find_map(|script| rules.network.address(script));
    let outputs = transaction.vout.iter();
    let outputs = outputs.filter_map(|output| {
        let depository = rules.depository(&output.script.hex)?;
        Some(Deposit {
            index: output.n,
            depository: depository.clone(),
            depositor: payer.clone().unwrap_or_else(|| depository.clone()),
            currency: rules.native.clone(),
            amount: Amount::from(output.value.to_sat()),
            id: named.into(),
            named_by_other: false,
            by_depositor: false,
        })
    });
    outputs.filter(|it| !it.amount.is_zero()).collect()
}

/// The one address that paid for the transaction.
fn sender(
    rules: &Rules,
    transaction: &RawTransaction,
    spent: &[Option<ScriptBuf>],
) -> Option<Address> {
    match payer::payers(&transaction.vin, spent)?.as_slice() {
        [one] => rules.network.address(one),
        _ => None,
    }
}

/// The payments of the transaction. None without payers, and none from a depository: that is a withdrawal, whose
/// money already belonged to the recipient. Outputs to a payer are change.
fn payments(
    rules: &Rules,
    transaction: &RawTransaction,
    spent: &[Option<ScriptBuf>],
) -> Vec<Payment> {
    let Some(payers) = payer::payers(&transaction.vin, spent) else {
        return Vec::new();
    };
    if payers.iter().any(|payer| rules.depository(payer).is_some()) {
        return Vec::new();
    }
    let is_change = |script: &Script| payers.binary_search(&script).is_ok();
    let outputs = transaction.vout.iter();
    let payments = outputs.filter(|output| !is_change(&output.script.hex));
    let payments = payments.filter_map(|output| {
        Some(Payment {
            index: output.n,
            kind: PaymentKind::Transfer,
            recipient: rules.network.address(&output.script.hex)?,
            currency: rules.native.clone(),
            amount: Amount::from(output.value.to_sat()),
        })
    });
    payments.collect()
}

/// What left a depository: the transaction itself is the execution, one for each depository that it spends from.
fn executions(
    rules: &Rules,
    transaction: &RawTransaction,
    spent: &[Option<ScriptBuf>],
) -> Vec<Execution> {
    let id = source::shown_txid(&transaction.txid);
    let mut executions: Vec<Execution> = Vec::new();
    for depository in spent.iter().flatten().filter_map(|it| rules.depository(it)) {
        if executions.iter().all(|it| it.depository != *depository) {
            let depository = depository.clone();
            executions.push(Execution { depository, id });
        }
    }
    executions
}

/// The orders that the transaction names: a fill has an OP_RETURN of the id and nothing else.
fn references(notes: &[Note]) -> Vec<Arc<str>> {
    let texts: BTreeSet<&str> = notes
        .iter()
        .map(|note| note.text.as_str())
        .filter(|text| is_id(text))
        .collect();
    texts.into_iter().map(Arc::from).collect()
}
