//! What a node answers (Solana's JSON-RPC API, as agave has it), from the ledger.

mod accounts;
mod trial;

use serde_json::{Value, json};
use solana_rpc_client_api::custom_error as code;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_status_client_types::{
    EncodedConfirmedTransactionWithStatusMeta, EncodedTransactionWithStatusMeta,
    TransactionConfirmationStatus, TransactionStatus, UiConfirmedBlock,
};

use super::{
    executed::Executed,
    ledger::{Block, Ledger, VALID_BLOCKS},
};

const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
const VERSION: &str = "4.2.2";
/// What `getSignaturesForAddress` answers at most.
const MOST_SIGNATURES: u64 = 1_000;

/// An error of JSON-RPC.
#[derive(Debug)]
pub struct Refused {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl Refused {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Value::Null,
        }
    }

    fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

/// Answers a call as a node that is `behind` by so many blocks.
pub fn answer(
    ledger: &mut Ledger,
    behind: usize,
    (method, params): (&str, &Value),
) -> Result<Value, Refused> {
    if method == "sendTransaction" {
        return send(ledger, params);
    }
    let view = View {
        ledger,
        behind,
        params,
    };
    match method {
        "getVersion" => Ok(json!({ "solana-core": VERSION, "feature-set": 1 })),
        "getHealth" => Ok(json!("ok")),
        "getGenesisHash" => Ok(json!(ledger.blocks()[0].hash.to_string())),
        "getFirstAvailableBlock" => Ok(json!(ledger.blocks()[0].slot)),
        "getSlot" => Ok(json!(view.context()?.slot)),
        "getBlockHeight" => Ok(json!(view.context()?.height)),
        "getLatestBlockhash" => view.latest_blockhash(),
        "getBlock" => view.block(),
        "getBlockTime" => view.block_time(),
        "getBlocks" => view.blocks_between(),
        "getTransaction" => view.transaction(),
        "getSignatureStatuses" => view.statuses(),
        "getSignaturesForAddress" => view.signatures(),
        "getAccountInfo" => view.account(),
        "getMultipleAccounts" => view.accounts(),
        "getBalance" => view.balance(),
        "getMinimumBalanceForRentExemption" => view.rent(),
        "getEpochInfo" => view.epoch(),
        // Nobody has to bid.
        "getRecentPrioritizationFees" => Ok(json!([])),
        "simulateTransaction" => view.simulate(),
        _ => Err(Refused::new(METHOD_NOT_FOUND, "Method not found")),
    }
}

/// The chain as one node shows it to one call.
struct View<'a> {
    ledger: &'a Ledger,
    behind: usize,
    params: &'a Value,
}

impl View<'_> {
    /// The call's options: the one object among its parameters.
    fn option(&self, name: &str) -> &Value {
        let mut all = self.params.as_array().into_iter().flatten();
        all.find(|one| one.is_object())
            .map_or(&Value::Null, |options| &options[name])
    }

    fn text(&self, at: usize) -> Result<&str, Refused> {
        let text = self.params[at].as_str();
        text.ok_or_else(|| Refused::params(format!("parameter {at}: expected a text")))
    }

    fn number(&self, at: usize) -> Result<u64, Refused> {
        let number = self.params[at].as_u64();
        number.ok_or_else(|| Refused::params(format!("parameter {at}: expected a number")))
    }

    /// The position of the newest block of the call's commitment, or of `lowest` where that is stronger.
    fn top(&self, lowest: &str) -> usize {
        let asked = self.option("commitment").as_str().unwrap_or("finalized");
        let lag = match (asked, lowest) {
            ("processed", "processed") => 0,
            ("processed" | "confirmed", _) => self.ledger.lag.confirmed,
            _ => self.ledger.lag.finalized,
        };
        self.top_at(lag)
    }

    fn top_at(&self, lag: usize) -> usize {
        let newest = self.ledger.blocks().len() - 1;
        newest.saturating_sub(self.behind).saturating_sub(lag)
    }

    /// The block that an answer about the present is of.
    fn context(&self) -> Result<&Block, Refused> {
        let block = &self.ledger.blocks()[self.top("processed")];
        let least = self.option("minContextSlot").as_u64().unwrap_or(0);
        if block.slot >= least {
            return Ok(block);
        }
        let message = "Minimum context slot has not been reached";
        Err(Refused {
            data: json!({ "contextSlot": block.slot }),
            ..Refused::new(
                code::JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
                message,
            )
        })
    }

    fn in_context(&self, value: Value) -> Result<Value, Refused> {
        Ok(self.as_of(self.context()?, value))
    }

    fn as_of(&self, block: &Block, value: Value) -> Value {
        let context = json!({ "slot": block.slot, "apiVersion": VERSION });
        json!({ "context": context, "value": value })
    }

    fn latest_blockhash(&self) -> Result<Value, Refused> {
        let block = self.context()?;
        self.in_context(json!({
            "blockhash": block.hash.to_string(),
            "lastValidBlockHeight": block.height + VALID_BLOCKS as u64,
        }))
    }

    /// The block at `slot` among those up to the position `top`.
    fn at_slot(&self, slot: u64, top: usize) -> Result<&Block, Refused> {
        let known = &self.ledger.blocks()[..=top];
        if slot > known[top].slot {
            let message = format!("Block not available for slot {slot}");
            return Err(Refused::new(
                code::JSON_RPC_SERVER_ERROR_BLOCK_NOT_AVAILABLE,
                message,
            ));
        }
        if slot < known[0].slot {
            let message = format!("Block {slot} cleaned up, does not exist on node");
            return Err(Refused::new(
                code::JSON_RPC_SERVER_ERROR_BLOCK_CLEANED_UP,
                message,
            ));
        }
        let found = known.binary_search_by_key(&slot, |block| block.slot);
        found.map(|at| &known[at]).map_err(|_| {
            let message = format!(
                "Slot {slot} was skipped, or missing due to ledger jump to recent snapshot"
            );
            Refused::new(code::JSON_RPC_SERVER_ERROR_SLOT_SKIPPED, message)
        })
    }

    fn block(&self) -> Result<Value, Refused> {
        let block = self.at_slot(self.number(0)?, self.top("confirmed"))?;
        let details = self.option("transactionDetails").as_str().unwrap_or("full");
        let (mut transactions, mut signatures) = (None, None);
        match details {
            "none" => {}
            "signatures" => {
                let all = block.transactions.iter();
                signatures = Some(all.map(|one| one.signature().to_string()).collect());
            }
            "full" => {
                let all = block.transactions.iter().map(|one| self.shown(one));
                transactions = Some(all.collect::<Result<_, _>>()?);
            }
            _ => {
                return Err(Refused::params(
                    "transactionDetails: none, signatures or full",
                ));
            }
        }
        as_value(UiConfirmedBlock {
            previous_blockhash: block.previous.to_string(),
            blockhash: block.hash.to_string(),
            parent_slot: block.parent,
            transactions,
            signatures,
            rewards: None,
            num_reward_partitions: None,
            block_time: block.time,
            block_height: Some(block.height),
        })
    }

    fn block_time(&self) -> Result<Value, Refused> {
        let top = self.top_at(self.ledger.lag.confirmed);
        Ok(json!(self.at_slot(self.number(0)?, top)?.time))
    }

    fn blocks_between(&self) -> Result<Value, Refused> {
        let first = self.number(0)?;
        let last = self.params[1].as_u64().unwrap_or(u64::MAX);
        let known = self.ledger.blocks()[..=self.top("confirmed")].iter();
        let slots = known.map(|block| block.slot);
        Ok(slots.filter(|slot| (first..=last).contains(slot)).collect())
    }

    fn shown(&self, executed: &Executed) -> Result<EncodedTransactionWithStatusMeta, Refused> {
        if !matches!(self.option("encoding").as_str(), None | Some("json")) {
            return Err(Refused::params("encoding: only json is shown here"));
        }
        let mut shown = executed.shown();
        if self.option("maxSupportedTransactionVersion").is_null() {
            if !executed.is_legacy() {
                let message = "Transaction version (0) is not supported by the requesting client. Please try the \
                               request again with the following configuration parameter: \
                               \"maxSupportedTransactionVersion\": 0";
                let code = code::JSON_RPC_SERVER_ERROR_UNSUPPORTED_TRANSACTION_VERSION;
                return Err(Refused::new(code, message));
            }
            shown.version = None;
        }
        Ok(shown)
    }

    fn transaction(&self) -> Result<Value, Refused> {
        let found = self.ledger.find(&signature(self.text(0)?)?);
        let Some((at, inside)) = found.filter(|(at, _)| *at <= self.top("confirmed")) else {
            return Ok(Value::Null);
        };
        let block = &self.ledger.blocks()[at];
        as_value(EncodedConfirmedTransactionWithStatusMeta {
            slot: block.slot,
            transaction: self.shown(&block.transactions[inside])?,
            block_time: block.time,
            transaction_index: u32::try_from(inside).ok(),
        })
    }

    /// How sure a node is of the block at a position; `None` where it has not seen it.
    fn sureness(&self, at: usize) -> Option<TransactionConfirmationStatus> {
        use TransactionConfirmationStatus::{Confirmed, Finalized, Processed};
        let lag = self.ledger.lag;
        let levels = [
            (lag.finalized, Finalized),
            (lag.confirmed, Confirmed),
            (0, Processed),
        ];
        let mut levels = levels.into_iter();
        levels
            .find(|(lag, _)| at <= self.top_at(*lag))
            .map(|(_, level)| level)
    }

    fn statuses(&self) -> Result<Value, Refused> {
        let asked = self.params[0].as_array();
        let asked = asked.ok_or_else(|| Refused::params("expected signatures"))?;
        let statuses = asked.iter().map(|one| {
            let found = self
                .ledger
                .find(&signature(one.as_str().unwrap_or_default())?);
            let seen = found.and_then(|(at, inside)| Some((at, inside, self.sureness(at)?)));
            let status = seen.map(|(at, inside, sureness)| {
                let block = &self.ledger.blocks()[at];
                let status = block.transactions[inside].meta.status.clone();
                let final_already = sureness == TransactionConfirmationStatus::Finalized;
                TransactionStatus {
                    slot: block.slot,
                    confirmations: (!final_already).then(|| self.top_at(0) - at),
                    err: status.clone().err(),
                    status,
                    confirmation_status: Some(sureness),
                }
            });
            as_value(status)
        });
        // Nobody names a commitment here: the answer is of the newest block.
        let newest = &self.ledger.blocks()[self.top_at(0)];
        Ok(self.as_of(newest, statuses.collect::<Result<_, _>>()?))
    }

    /// Newest first.
    fn signatures(&self) -> Result<Value, Refused> {
        let account = accounts::key(self.text(0)?)?;
        let limit = self.option("limit").as_u64().unwrap_or(MOST_SIGNATURES);
        let position = |name: &str| {
            let named = self.option(name).as_str().map(signature).transpose()?;
            Ok(named.and_then(|signature| self.ledger.find(&signature)))
        };
        let (before, until) = (position("before")?, position("until")?);
        let blocks = self.ledger.blocks()[..=self.top("confirmed")]
            .iter()
            .enumerate();
        let found = blocks.rev().flat_map(|(at, block)| {
            let inside = block.transactions.iter().enumerate().rev();
            inside.map(move |(inside, one)| ((at, inside), block, one))
        });
        let found = found
            .filter(|(place, ..)| before.is_none_or(|before| *place < before))
            .filter(|(place, ..)| until.is_none_or(|until| *place > until))
            .filter(|(.., one)| one.accounts.contains(&account))
            .take(usize::try_from(limit.min(MOST_SIGNATURES)).unwrap_or(0));
        let shown = found.map(|((at, _), block, one)| {
            Ok(json!({
                "signature": one.signature().to_string(),
                "slot": block.slot,
                "err": as_value(one.meta.status.clone().err())?,
                "memo": null,
                "blockTime": block.time,
                "confirmationStatus": as_value(self.sureness(at))?,
            }))
        });
        shown.collect()
    }
}

/// Takes a transaction: into a block of its own, or into what waits for the next one.
fn send(ledger: &mut Ledger, params: &Value) -> Result<Value, Refused> {
    let transaction = accounts::decode(params)?;
    let refused = |error: &dyn std::fmt::Display| {
        let message = format!("Transaction simulation failed: {error}");
        Refused::new(
            code::JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
            message,
        )
    };
    if params[1]["skipPreflight"] != true {
        let admitted = ledger.admits(&transaction);
        admitted.map_err(|error| refused(&error))?;
        // On a copy: a simulation must not change anything.
        let mut copy = ledger.tip().state.clone();
        let run = Executed::run(&mut copy, transaction.clone());
        let run = run.and_then(|executed| executed.meta.status);
        run.map_err(|error| refused(&error))?;
    }
    submit(ledger, transaction).map_err(|error| refused(&error))
}

fn submit(
    ledger: &mut Ledger,
    transaction: VersionedTransaction,
) -> Result<Value, solana_transaction_error::TransactionError> {
    let signature = transaction.signatures.first().copied().unwrap_or_default();
    ledger.waiting.push(transaction);
    if ledger.automatic
        && let Some(outcome) = ledger.make().pop()
    {
        outcome?;
    }
    Ok(json!(signature.to_string()))
}

fn signature(text: &str) -> Result<Signature, Refused> {
    text.parse()
        .map_err(|_| Refused::params(format!("Invalid param: {text}")))
}

fn as_value(of: impl serde::Serialize) -> Result<Value, Refused> {
    serde_json::to_value(of).map_err(|error| Refused::params(error.to_string()))
}
