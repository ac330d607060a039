//! All providers of a Bitcoin chain together: what payments take, and what it costs. Nothing is simulated by nodes: a
//! transaction's work is its virtual bytes, which follow from the outputs that its sender has.

use std::sync::Arc;

use async_trait::async_trait;
use bitcoin::{CompressedPublicKey, OutPoint, ScriptBuf, TxOut, WPubkeyHash, hashes::Hash};
use serde_json::{Map, Value};

use super::{
    body::Content,
    choice, coin, psbt_step,
    purse::Purse,
    select::Unselected,
    submit::Payer,
    version::{self, Plan, Rates},
};
use crate::{
    Chain, Codec, CodecError, FamilyKeys, ReadError, SpecError,
    bitcoin::network::{LOCAL, MAIN, Network, TEST},
    trade::{
        self, Account, Draft, Failover, Fees, Limits, OpenAccount, Providers, ProvidersContext,
        Revert, Scheme, Signer, TradingProvider, Trial, Unfit, Work,
    },
    types::{Address, Amount},
};

/// Virtual bytes that a transaction may have: some 140 inputs.
const MOST_WORK: u64 = version::LARGEST;
/// Satoshis that a virtual byte may cost by default.
const MOST_RATE: u128 = 500;

/// See [`crate::Family::limits`]. Keys: `maxRate` in satoshis per virtual byte, `vbytes` of one transaction.
pub fn limits(listed: &Map<String, Value>) -> Result<Limits, SpecError> {
    let mut limits = Limits {
        work: MOST_WORK,
        calls_work: 0,
        rate: MOST_RATE,
        besides: false,
    };
    for (key, value) in listed {
        let wrong = || SpecError(format!("limits.{key}: not a whole number"));
        let number = value.as_u64().ok_or_else(wrong)?;
        match key.as_str() {
            "maxRate" => limits.rate = number.into(),
            "vbytes" => limits.work = number,
            _ => return Err(SpecError(format!("limits.{key}: unknown"))),
        }
    }
    match limits.work > MOST_WORK {
        true => Err(SpecError(format!("limits.vbytes: above {MOST_WORK}"))),
        false => Ok(limits),
    }
}

/// See [`crate::Family::providers`].
pub fn providers(
    context: ProvidersContext,
    providers: Vec<TradingProvider>,
) -> Result<Option<Providers>, SpecError> {
    let ProvidersContext {
        spec,
        required,
        limits: listed,
        ..
    } = context;
    let limits = limits(&listed.unwrap_or_default())?;
    let network = Network::of(&spec.additional)?;
    let failover = Failover::new(spec.id.as_str(), required, providers);
    Ok(failover.map(|failover| {
        let wallet = Arc::new(Wallet {
            failover: failover.clone(),
            network,
            limits,
        });
        Providers {
            failover: failover.clone(),
            limits,
            usual,
            wallet: wallet.clone(),
            fees: wallet.clone(),
            accounts: wallet,
            approvals: None,
            contracts: None,
            declinable: false,
            pays_as_signed: true,
            funding: Some(Arc::new(Purse {
                failover,
                network,
                most: most_rate(&limits),
            })),
        }
    }))
}

/// Satoshis that a virtual byte may cost.
fn most_rate(limits: &Limits) -> u64 {
    u64::try_from(limits.rate).unwrap_or(u64::MAX)
}

/// Virtual bytes of a transaction with one or two inputs, the order's id and change.
fn usual(work: Work) -> u64 {
    match work {
        Work::Deposit | Work::Send | Work::Payment { .. } | Work::Kept => 300,
        Work::Approve | Work::Swap | Work::Routed | Work::Call => 0,
        // Ten more inputs: other coins may be there when it is paid.
        Work::Room => 700,
    }
}

/// The keys of accounts on a network: an account is the P2WPKH address of its key.
pub const fn keys(network: &'static Network) -> FamilyKeys {
    let account: fn(&[u8]) -> Result<Address, CodecError> = match network.kind {
        bitcoin::Network::Bitcoin => |key: &[u8]| account(&MAIN, key),
        bitcoin::Network::Regtest => |key: &[u8]| account(&LOCAL, key),
        _ => |key: &[u8]| account(&TEST, key),
    };
    FamilyKeys {
        scheme: Scheme::Secp256k1,
        account,
    }
}

fn account(network: &Network, key: &[u8]) -> Result<Address, CodecError> {
    let script = script(&public(key)?);
    let address = network.address(&script);
    address.ok_or_else(|| CodecError("a key without an address".into()))
}

fn public(key: &[u8]) -> Result<CompressedPublicKey, CodecError> {
    let wrong = |_| CodecError("not a secp256k1 public key of 33 bytes".into());
    CompressedPublicKey::from_slice(key).map_err(wrong)
}

fn script(key: &CompressedPublicKey) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&key.wpubkey_hash())
}

struct Wallet {
    failover: Failover,
    network: &'static Network,
    limits: Limits,
}

#[async_trait]
impl trade::Wallet for Wallet {
    async fn admit(&self, draft: &Draft) -> Result<Result<(), Unfit>, ReadError> {
        let work = match Content::of(draft) {
            Ok(Content::Outputs(outputs)) => least(&outputs),
            Ok(Content::Psbt(psbt)) => psbt_step::work(&psbt),
            Err(error) => return Ok(Err(error.into())),
        };
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(match work > self.limits.work {
            true => Err(Unfit::Large {
                bytes: whole(work),
                most: whole(self.limits.work),
            }),
            false => Ok(()),
        })
    }

    async fn simulate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let content = Content::of(trial.draft);
        let content = content.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let work = match content {
            Content::Psbt(psbt) => psbt_step::work(&psbt),
            Content::Outputs(outputs) => {
                if let Some(reason) = choice::refusal(&outputs) {
                    return Ok(Err(reverted(reason)));
                }
                self.payment_work(&outputs, trial).await?
            }
        };
        Ok(match trial.most.is_none_or(|most| work <= most) {
            true => Ok(work),
            false => Err(reverted("larger than it may be".into())),
        })
    }

    /// Who is paid has no say in what is spent for it.
    async fn is_modest(&self, _: &Address, _: u64) -> Result<bool, ReadError> {
        Ok(true)
    }
}

#[async_trait]
impl Fees for Wallet {
    async fn besides(&self, _: &Trial<'_>) -> Result<Amount, ReadError> {
        Ok(Amount::ZERO)
    }

    async fn work(&self, draft: &Draft) -> Option<u64> {
        match Content::of(draft).ok()? {
            Content::Psbt(psbt) => Some(psbt_step::work(&psbt)),
            Content::Outputs(_) => None,
        }
    }
}

impl OpenAccount for Wallet {
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        if key.scheme() != Scheme::Secp256k1 {
            return Err(CodecError("not a key of bitcoin-vm".into()));
        }
        let public = public(&key.public_key())?;
        let address = account(self.network, &key.public_key())?;
        self.failover.watch(&address);
        let payer = Arc::new(Payer {
            chain: chain.clone(),
            failover: self.failover.clone(),
            key,
            public: public.0,
            account: address.clone(),
            script: script(&public),
            native: chain.spec.family.native()?,
            most: u64::try_from(most).unwrap_or(u64::MAX),
        });
        Ok(Account {
            address,
            submitter: payer.clone(),
            costs: payer,
        })
    }
}

impl Wallet {
    /// What a payment of these outputs takes. What its sender lacks is no reason to fail: what open attempts hold comes
    /// back, and whoever pays looks at what there is first.
    async fn payment_work(&self, outputs: &[TxOut], trial: &Trial<'_>) -> Result<u64, ReadError> {
        let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
        let from = &trial.draft.from;
        let text = self.network.decode_address(from.bytes());
        let script = text.and_then(|text| self.network.script(&text));
        let script = script.map_err(doubtful)?;
        let Some(rate) = trial.rate else {
            return Ok(least(outputs));
        };
        let coins = coin::agreed(&self.failover, from).await?;
        let plan = Plan {
            coins: &[],
            outputs,
            change: &script,
        };
        let limit = most_rate(&self.limits);
        let rates = Rates {
            now: u64::try_from(rate.between()).unwrap_or(limit).min(limit),
            most: limit,
        };
        choice::work(&coins, &plan, rates).map_err(|why| {
            let why = match why {
                Unselected::Short { missing } => format!("{missing} satoshis are missing"),
                Unselected::Many => "more outputs than a transaction can spend".to_owned(),
            };
            ReadError::Unavailable(why)
        })
    }
}

/// Virtual bytes of a transaction with these outputs, one input and change.
fn least(outputs: &[TxOut]) -> u64 {
    let coin = coin::Coin {
        outpoint: OutPoint::default(),
        value: u64::MAX,
        height: 0,
    };
    let plan = Plan {
        coins: &[coin],
        outputs,
        change: &ScriptBuf::new_p2wpkh(&WPubkeyHash::all_zeros()),
    };
    plan.first(0).map_or(0, |made| version::size(&made))
}

fn reverted(reason: String) -> Revert {
    Revert {
        reason,
        data: Default::default(),
    }
}

#[cfg(test)]
mod tests;
