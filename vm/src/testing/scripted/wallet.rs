//! All providers of a world together: balances and fees. The work of a transaction is the number of its bytes, so
//! nothing is simulated.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::{
    Chain, CodecError, Family, ReadError, SpecError,
    trade::{
        self, Account, Draft, Failover, Fees, Limits, OpenAccount, Providers, ProvidersContext,
        Revert, Signer, TradingProvider, Trial, Unfit, Work,
    },
    types::{Address, Amount},
};

use super::{
    submit::Payer,
    transaction::{MOST_BYTES, Transaction},
};

/// The most that a byte may cost by default, in the native currency's smallest unit.
const MOST_RATE: u128 = 1_000_000;

/// The `limits` of a network in the market file. Keys: `maxRate`, and `rent`, which is what every transaction costs
/// besides its bytes. Both in the native currency's smallest unit.
#[derive(Clone, Copy, Debug)]
struct Listed {
    limits: Limits,
    rent: Amount,
}

impl Listed {
    fn read(listed: &Map<String, Value>) -> Result<Self, SpecError> {
        let mut read = Self {
            limits: Limits {
                work: MOST_BYTES as u64,
                calls_work: 0,
                rate: MOST_RATE,
                besides: false,
            },
            rent: Amount::ZERO,
        };
        for (key, value) in listed {
            let wrong = || SpecError(format!("limits.{key}: not a whole number"));
            let number = value.as_u64().ok_or_else(wrong)?;
            match key.as_str() {
                "maxRate" => read.limits.rate = number.into(),
                "rent" => read.rent = Amount::from(number),
                _ => return Err(SpecError(format!("limits.{key}: unknown"))),
            }
        }
        read.limits.besides = !read.rent.is_zero();
        Ok(read)
    }
}

/// See [`Family::limits`].
pub fn limits(listed: &Map<String, Value>) -> Result<Limits, SpecError> {
    Listed::read(listed).map(|listed| listed.limits)
}

/// See [`Family::providers`].
pub fn providers(
    context: ProvidersContext,
    providers: Vec<TradingProvider>,
) -> Result<Option<Providers>, SpecError> {
    let ProvidersContext {
        spec,
        number,
        required,
        limits,
    } = context;
    let listed = Listed::read(&limits.unwrap_or_default())?;
    let failover = Failover::new(spec.id.as_str(), required, providers);
    Ok(failover.map(|failover| {
        let wallet = Arc::new(Wallet {
            failover: failover.clone(),
            family: spec.family,
            number,
            rent: listed.rent,
        });
        Providers {
            failover,
            limits: listed.limits,
            usual,
            wallet: wallet.clone(),
            fees: wallet.clone(),
            accounts: wallet,
            approvals: None,
            contracts: None,
            declinable: false,
            pays_as_signed: false,
            funding: None,
        }
    }))
}

/// The most bytes that such transactions usually have.
fn usual(work: Work) -> u64 {
    match work {
        Work::Deposit | Work::Send | Work::Payment { .. } | Work::Kept => 800,
        Work::Approve | Work::Swap | Work::Routed | Work::Call => 0,
        Work::Room => 100,
    }
}

struct Wallet {
    failover: Failover,
    family: &'static Family,
    number: u64,
    rent: Amount,
}

#[async_trait]
impl trade::Wallet for Wallet {
    async fn admit(&self, draft: &Draft) -> Result<Result<(), Unfit>, ReadError> {
        let work = match Transaction::work(draft) {
            Ok(work) => work,
            Err(error) => return Ok(Err(error.into())),
        };
        let bytes = usize::try_from(work).unwrap_or(usize::MAX);
        let most = MOST_BYTES;
        Ok(match bytes > most {
            true => Err(Unfit::Large { bytes, most }),
            false => Ok(()),
        })
    }

    async fn simulate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let work = Transaction::work(trial.draft);
        let work = work.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let fits = trial.most.is_none_or(|most| work <= most);
        Ok(fits.then_some(work).ok_or_else(|| Revert {
            reason: "larger than it may be".into(),
            data: Default::default(),
        }))
    }

    async fn is_modest(&self, _: &Address, _: u64) -> Result<bool, ReadError> {
        Ok(true)
    }
}

#[async_trait]
impl Fees for Wallet {
    async fn besides(&self, _: &Trial<'_>) -> Result<Amount, ReadError> {
        Ok(self.rent)
    }

    async fn work(&self, draft: &Draft) -> Option<u64> {
        Transaction::work(draft).ok()
    }
}

impl OpenAccount for Wallet {
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        let address = super::codec::account(&key.public_key())?;
        let payer = Arc::new(Payer {
            chain: chain.clone(),
            failover: self.failover.clone(),
            key,
            account: address.clone(),
            native: self.family.native()?,
            number: self.number,
            most,
            rent: self.rent,
        });
        Ok(Account {
            address,
            submitter: payer.clone(),
            costs: payer,
        })
    }
}
