//! What is kept of an attempt: the call of its nonce, and every transaction that was signed for it. Pure.

use alloy::sol_types::SolValue;

use super::{queue, wallet::parts};
use crate::{
    CodecError,
    ethereum::address::evm,
    trade::{Attempt, Authorization, Body, Draft, FeeRate, Intent, SignedTx},
    types::{Address, Amount, Bytes, EvmAddress, U256},
};

/// Nodes replace a waiting transaction from a tenth more on; an eighth is safe from rounding.
const DEARER: u128 = 8;
/// Bytes that the transactions of one nonce may have together: what is kept has its limit.
const MOST_BYTES: usize = 600 << 10;
const MOST_VERSIONS: usize = 64;
/// How versions are written.
const FORMAT: u8 = 1;

alloy::sol! {
    #![sol(all_derives)]
    /// An EIP-7702 authorization.
    struct Delegate {
        uint64 chainId;
        address account;
        uint64 nonce;
        uint8 yParity;
        bytes32 r;
        bytes32 s;
    }

    /// One signed transaction.
    struct Version {
        bytes32 hash;
        bytes raw;
        uint64 gas;
        /// Wei per gas unit.
        uint128 maxFee;
        uint128 maxPriorityFee;
        /// It pays nobody: it only uses the nonce up.
        bool cancels;
    }

    /// What is kept of an attempt.
    struct Versions {
        address to;
        bytes data;
        uint256 value;
        Delegate[] authorizations;
        uint64 gas;
        /// Most that the chain takes for the bytes besides gas.
        uint256 dataFee;
        Version[] signed;
    }
}

/// Wei per gas unit: at most, and the tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub most: u128,
    pub tip: u128,
}

impl Price {
    /// Of a first transaction: with room for base fees that rise, and for as many rises below the operator's limit as what
    /// is needed now leaves. Pools take no tip of 0 where gas costs anything.
    pub fn first(rate: FeeRate, limit: u128) -> Self {
        let most = rate.most().min(lowest(needed(rate), limit));
        let least = u128::from(rate.base > 0);
        Self {
            most,
            tip: rate.priority.max(least).min(most),
        }
    }
}

/// What lands soon at the greater base of two that are near each other: either may be the true one.
const fn needed(rate: FeeRate) -> u128 {
    rate.high().saturating_add(rate.priority)
}

/// The lowest cap that lets `price` be paid: two rises below the limit, one rise, or the limit itself.
fn lowest(price: u128, limit: u128) -> u128 {
    let once = below(limit);
    let mut caps = [below(once), once].into_iter();
    caps.find(|cap| price <= *cap).unwrap_or(limit)
}

/// The greatest price that can still be raised up to the limit.
const fn below(limit: u128) -> u128 {
    limit.saturating_sub(limit.div_ceil(DEARER + 1))
}

/// What nodes take instead of a price: a transaction replaces another one where both of its prices are so much higher.
fn raised(price: u128) -> u128 {
    price.saturating_add(price.div_ceil(DEARER).max(1))
}

impl Versions {
    /// Of an intent, with nothing signed yet.
    pub fn of(intent: &Intent, data_fee: Amount) -> Result<Self, CodecError> {
        let (call, authorizations) = parts(&intent.draft)?;
        let authorizations = authorizations.iter().map(|one| {
            Ok(Delegate {
                chainId: one.chain_id,
                account: evm(&one.address)?,
                nonce: one.nonce,
                yParity: one.y_parity,
                r: one.r,
                s: one.s,
            })
        });
        Ok(Self {
            to: evm(&call.to)?,
            data: call.data,
            value: call.value,
            authorizations: authorizations.collect::<Result<_, CodecError>>()?,
            gas: intent.work,
            dataFee: data_fee,
            signed: Vec::new(),
        })
    }

    /// Of an attempt's own bytes.
    pub fn read(own: &[u8]) -> Result<Self, CodecError> {
        let unreadable = || CodecError("not an attempt as this version writes them".into());
        let (format, rest) = own.split_first().ok_or_else(unreadable)?;
        match *format {
            FORMAT => Self::abi_decode(rest).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }

    pub fn bytes(&self) -> Bytes {
        [&[FORMAT], &self.abi_encode()[..]].concat().into()
    }

    /// What its transactions do that do not cancel.
    pub fn draft(&self, from: &Address) -> Draft {
        let authorizations = self.authorizations.iter().map(|one| Authorization {
            chain_id: one.chainId,
            address: spelled(one.account),
            nonce: one.nonce,
            y_parity: one.yParity,
            r: one.r,
            s: one.s,
        });
        Draft {
            from: from.clone(),
            value: self.value,
            body: Body::Call {
                to: spelled(self.to),
                data: self.data.clone(),
                authorizations: authorizations.collect(),
            },
        }
    }

    /// Whether one more transaction would cancel; `None` where none is made any more. Once cancelled, a nonce
    /// stays so.
    pub fn cancels(&self, cancel: bool) -> Option<bool> {
        let newest = self.signed.last()?;
        let cancels = cancel || newest.cancels;
        (!self.is_crowded(1) || cancels != newest.cancels).then_some(cancels)
    }

    /// The price of one more transaction, which `cancels` or not: an eighth above the newest and at least what is asked
    /// now; `None` where that would be above the operator's limit.
    ///
    /// The last two rises below the limit are left to what cancels, and to what the newest does not pay: where providers
    /// said for a while that no tip is needed, one that is asked later replaces what nodes keep, a cancellation, too. At
    /// the limit that replaces only what no node has kept. Half of what is kept of a nonce is left to them as well.
    pub fn dearer(&self, cancels: bool, rate: FeeRate, limit: u128) -> Option<Price> {
        let newest = self.signed.last()?;
        let (price, tip) = (raised(newest.maxFee), raised(newest.maxPriorityFee));
        let (outbid, needed) = (rate.priority > tip, needed(rate));
        let highest = if outbid || cancels && !newest.cancels || needed > newest.maxFee {
            lowest(price.max(needed), limit)
        } else if self.is_crowded(2) {
            return None;
        } else {
            below(below(limit))
        };
        if price > highest && !outbid {
            return None;
        }
        let most = price.max(rate.most()).min(highest);
        let tip = tip.max(rate.priority).min(most);
        Some(Price { most, tip })
    }

    /// Whether they are more than one part in so many of what is kept of a nonce.
    fn is_crowded(&self, part: usize) -> bool {
        let bytes: usize = self.signed.iter().map(|version| version.raw.len()).sum();
        bytes > MOST_BYTES / part || self.signed.len() >= MOST_VERSIONS / part
    }

    /// The most that it takes of the native currency: for gas, bytes and value.
    pub fn native(&self) -> Amount {
        let gas = self
            .signed
            .iter()
            .map(|version| version.gas_at(version.maxFee));
        let gas = gas.max().unwrap_or_default();
        gas.saturating_add(self.dataFee).saturating_add(self.value)
    }

    /// The attempt that they are, which takes `others` besides the native currency.
    pub fn attempt(&self, nonce: u64, native: Address, others: Vec<(Address, Amount)>) -> Attempt {
        let mut spends = vec![(native, self.native())];
        spends.extend(others);
        let signed = self.signed.iter().map(|version| SignedTx {
            id: version.hash.to_string(),
            cancels: version.cancels,
        });
        Attempt {
            id: queue::resource(nonce),
            resources: vec![queue::resource(nonce)],
            spends,
            signed: signed.collect(),
            own: self.bytes(),
        }
    }
}

impl Version {
    /// What its gas costs at a price that is not above its own limit.
    pub fn gas_at(&self, price: u128) -> Amount {
        U256::from(self.gas).saturating_mul(U256::from(self.maxFee.min(price)))
    }
}

/// What was signed for an attempt, by its own bytes, for tests.
#[cfg(any(test, feature = "testing"))]
pub fn priced(own: &[u8]) -> Result<Vec<Priced>, CodecError> {
    let versions = Versions::read(own)?;
    let priced = versions.signed.iter().map(|version| Priced {
        gas: version.gas,
        max_fee: version.maxFee,
    });
    Ok(priced.collect())
}

/// A signed transaction of an attempt, as [`priced`] reads it.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Copy, Debug)]
pub struct Priced {
    pub gas: u64,
    pub max_fee: u128,
}

fn spelled(address: EvmAddress) -> Address {
    Address::from_parts(&format!("{address:#x}"), address.0)
}

#[cfg(test)]
mod tests;
