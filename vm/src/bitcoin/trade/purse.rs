//! Makes the PSBT of a user's deposit, but for the order's id: reads what the account can spend and chooses of it.
//!
//! One provider's word is enough: the user's signature commits to what is spent, so that a transaction over outputs
//! that are not there, or hold something else, is in no block.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use bitcoin::{
    PublicKey, Script, ScriptBuf, Transaction, TxOut, Txid, Witness, XOnlyPublicKey, consensus,
    key::Parity,
};
use futures::stream::{self, StreamExt};

use super::{
    body,
    coin::Coin,
    psbt_step::{self, Parts},
    select::{self, Selection, Unselected, Wanted},
    spend_kind::SpendKind,
};
use crate::{
    ReadError,
    bitcoin::{network::Network, source::shown_txid},
    trade::{Failover, Funding, Need, Outputs, TradingProvider, Unfunded, Unspent},
    types::{Address, Amount, B256, Bytes},
};

/// Outputs that one deposit spends at most: wallets show them to their users, and deposits of more previous
/// transactions are not attributed.
const MOST: usize = 256;
/// The same where the PSBT shows each previous transaction, which is read for the quote.
const MOST_SHOWN: usize = 64;
/// Bytes of the previous transactions that a PSBT shows, in all. Whoever pays an account chooses how large they are.
const SHOWN: usize = 1_000_000;
/// Questions at once.
const AT_ONCE: usize = 16;
/// What whoever has too many outputs does about it.
const COMBINE: &str =
    "expected its owner to combine them before, by payments to the account itself";

/// Reads what users can spend.
pub struct Purse {
    pub failover: Failover,
    pub network: &'static Network,
    /// Satoshis for a virtual byte above which nothing is made: one provider may say any rate where no other has to agree,
    /// and what a user signs pays it.
    pub most: u64,
}

#[async_trait]
impl Funding for Purse {
    async fn unspent(&self, user: &Address) -> Result<Result<Vec<Unspent>, Unfunded>, ReadError> {
        let ask =
            |provider: TradingProvider| async move { outputs(&provider)?.unspent(user).await };
        match self.failover.first(ask).await {
            Err(ReadError::TooLarge) => Ok(Err(crowded())),
            unspent => Ok(Ok(unspent?)),
        }
    }

    async fn fund(&self, need: &Need<'_>) -> Result<Result<Bytes, Unfunded>, ReadError> {
        let plan = match Plan::of(self.network, need, self.most) {
            Ok(plan) => plan,
            Err(unfunded) => return Ok(Err(unfunded)),
        };
        let (asked, most) = (satoshis(need.rate.expected()), self.most);
        if asked > most {
            return Ok(Err(Unfunded::Unable(format!(
                "{asked} satoshis are asked for a virtual byte now: no more than {most} are paid"
            ))));
        }
        let coins: Result<Vec<_>, _> = need.unspent.iter().map(Coin::of).collect();
        let coins = coins.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let selection = match plan.select(&coins) {
            Ok(selection) => selection,
            Err(unfunded) => return Ok(Err(unfunded)),
        };
        let previous = match plan.kind.is_witness() {
            true => HashMap::new(),
            false => match self.previous(&selection).await {
                Err(ReadError::TooLarge) => return Ok(Err(bulky())),
                previous => previous?,
            },
        };
        let psbt = psbt_step::unsigned(Parts {
            script: &plan.script,
            kind: &plan.kind,
            selection: &selection,
            outputs: plan.outputs,
            previous: &previous,
        });
        let psbt = psbt.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        Ok(Ok(psbt.serialize().into()))
    }
}

impl Purse {
    /// The transactions whose outputs are spent. `TooLarge` where they would make the PSBT too large: it shows a transaction
    /// once for each of its outputs that is spent.
    async fn previous(
        &self,
        selection: &Selection,
    ) -> Result<HashMap<Txid, Transaction>, ReadError> {
        let mut inputs: BTreeMap<Txid, usize> = BTreeMap::new();
        for coin in &selection.coins {
            *inputs.entry(coin.outpoint.txid).or_default() += 1;
        }
        let each = inputs.into_iter().map(|(txid, count)| async move {
            let found = self.transaction(txid).await?;
            Ok::<_, ReadError>((txid, count, found))
        });
        let mut each = stream::iter(each).buffered(AT_ONCE);
        let (mut previous, mut bytes) = (HashMap::new(), 0_usize);
        while let Some(found) = each.next().await {
            let (txid, count, found) = found?;
            bytes = bytes.saturating_add(found.base_size().saturating_mul(count));
            if bytes > SHOWN {
                return Err(ReadError::TooLarge);
            }
            previous.insert(txid, found);
        }
        Ok(previous)
    }

    /// A transaction without its witnesses: its id does not depend on them, and they are most of a large one.
    async fn transaction(&self, txid: Txid) -> Result<Transaction, ReadError> {
        let id = Bytes::from(shown_txid(&txid));
        let id = &id;
        let ask = |provider: TradingProvider| async move {
            let found = outputs(&provider)?.transaction(id).await?;
            let missing = || ReadError::Unavailable("no such transaction".into());
            let found = found.ok_or_else(missing)?;
            let read: Result<Transaction, _> = consensus::deserialize(&found);
            let read = read.ok().filter(|it| it.compute_txid() == txid);
            read.ok_or_else(|| ReadError::Doubtful("another transaction".into()))
        };
        let mut found = self.failover.first(ask).await?;
        for input in &mut found.input {
            input.witness = Witness::new();
        }
        Ok(found)
    }
}

fn satoshis(rate: u128) -> u64 {
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Anybody can bring an account there.
fn crowded() -> Unfunded {
    Unfunded::Unable(format!(
        "the account has more unspent outputs than providers list: {COMBINE}"
    ))
}

/// Whoever pays an account can bring it there, too.
fn bulky() -> Unfunded {
    Unfunded::Unable(format!(
        "the transactions that paid the account are too large to be shown to a wallet: {COMBINE}"
    ))
}

/// What the provider shows of outputs.
fn outputs(provider: &TradingProvider) -> Result<&Arc<dyn Outputs>, ReadError> {
    let none = || ReadError::Unavailable("the provider shows no outputs".into());
    provider.outputs.as_ref().ok_or_else(none)
}

/// A deposit whose coins are not chosen yet.
struct Plan {
    /// The user's.
    script: ScriptBuf,
    kind: SpendKind,
    outputs: Vec<TxOut>,
    /// Satoshis for a virtual byte.
    rate: u64,
}

impl Plan {
    /// At `most` satoshis for a virtual byte.
    fn of(network: &Network, need: &Need<'_>, most: u64) -> Result<Self, Unfunded> {
        let unable = Unfunded::Unable;
        let script = network.script(need.user.text());
        let script = script.map_err(|error| unable(error.to_string()))?;
        let depository = network.script(need.depository.text());
        let depository = depository.map_err(|error| unable(error.to_string()))?;
        if script == depository {
            return Err(unable("the account is the depository".into()));
        }
        let key = need.key.map(|text| public_key(&script, text)).transpose()?;
        let kind = kind(&script, key.as_ref())?;
        let least = depository.minimal_non_dust();
        let amount = u64::try_from(need.amount).ok();
        let amount = amount.filter(|it| *it <= bitcoin::Amount::MAX_MONEY.to_sat());
        let missing = need.amount;
        let amount = amount.ok_or(Unfunded::Short { missing })?;
        if amount < least.to_sat() {
            let least = Amount::from(least.to_sat());
            return Err(Unfunded::Small { least });
        }
        let paid = TxOut {
            value: bitcoin::Amount::from_sat(amount),
            script_pubkey: depository,
        };
        Ok(Self {
            script,
            kind,
            outputs: vec![paid, body::note(B256::ZERO)],
            // What is signed is what lands, or does not.
            rate: satoshis(need.rate.between()).min(most),
        })
    }

    fn select(&self, coins: &[Coin]) -> Result<Selection, Unfunded> {
        let most = match self.kind.is_witness() {
            true => MOST,
            false => MOST_SHOWN,
        };
        let wanted = Wanted {
            outputs: &self.outputs,
            change: &self.script,
            rate: self.rate,
            kind: &self.kind,
            required: 0,
            most,
        };
        select::select(coins, &wanted).map_err(|why| match why {
            Unselected::Short { missing } => Unfunded::Short {
                missing: Amount::from(missing),
            },
            Unselected::Many => Unfunded::Unable(format!(
                "the amount is in more than {most} outputs of the account: {COMBINE}"
            )),
        })
    }
}

/// Hex of 33 or 65 bytes; an internal key of Taproot may have 32 (BIP 340).
fn public_key(script: &Script, text: &str) -> Result<PublicKey, Unfunded> {
    if script.is_p2tr()
        && let Ok(internal) = text.parse::<XOnlyPublicKey>()
    {
        return Ok(PublicKey::new(internal.public_key(Parity::Even)));
    }
    let wrong = |_| Unfunded::Key("expected a public key of 33 or 65 bytes in hex".into());
    text.parse().map_err(wrong)
}

/// How the account's outputs are spent. A key that is given for nothing says nothing.
fn kind(script: &Script, key: Option<&PublicKey>) -> Result<SpendKind, Unfunded> {
    let known = key.and_then(|key| SpendKind::by(script, key));
    if let Some(kind) = known.or_else(|| SpendKind::of(script)) {
        return Ok(kind);
    }
    let hash = script.is_p2sh() || script.is_p2wsh();
    Err(match (hash, key) {
        (false, _) => Unfunded::Unable("accounts of this kind are not known".into()),
        (true, None) => {
            Unfunded::Key("expected the public key of an account that is a script's hash".into())
        }
        (true, Some(_)) => {
            Unfunded::Key("expected the key that alone spends what the account has".into())
        }
    })
}

#[cfg(test)]
mod tests;
