//! Unspent outputs as transactions spend them.

use bitcoin::{OutPoint, consensus};
use serde::{Deserialize, Serialize};

use crate::{
    CodecError, ReadError,
    trade::{Failover, Unspent},
    types::{Address, Bytes},
};

/// An unspent output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Coin {
    pub outpoint: OutPoint,
    /// In satoshis.
    pub value: u64,
    /// The number of its block.
    pub height: u64,
}

impl Coin {
    /// An error where the output is not written as [`output`] does it, or is larger than any amount of satoshis.
    pub fn of(unspent: &Unspent) -> Result<Self, CodecError> {
        let large = |_| CodecError("an output of more bitcoin than there is".into());
        Ok(Self {
            outpoint: outpoint(&unspent.output)?,
            value: u64::try_from(unspent.amount).map_err(large)?,
            height: unspent.height,
        })
    }
}

/// The unspent outputs of an account that a quorum of providers shows alike, the largest first.
pub async fn agreed(failover: &Failover, owner: &Address) -> Result<Vec<Coin>, ReadError> {
    let unspent = failover.unspent(owner).await?;
    let coins: Result<Vec<_>, _> = unspent.iter().map(Coin::of).collect();
    coins.map_err(|error| ReadError::Doubtful(error.to_string()))
}

/// An output's bytes in stored attempts and between providers: the transaction's id and the place, as inputs have them.
pub fn output(outpoint: &OutPoint) -> Bytes {
    consensus::serialize(outpoint).into()
}

/// The output of such bytes.
pub fn outpoint(output: &[u8]) -> Result<OutPoint, CodecError> {
    let wrong = |_| CodecError("not an output of a transaction".into());
    consensus::deserialize(output).map_err(wrong)
}

/// The sum of coins in satoshis. There is less bitcoin than the type has room for.
pub fn sum<'a>(coins: impl IntoIterator<Item = &'a Coin>) -> u64 {
    let values = coins.into_iter().map(|coin| coin.value);
    values.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use bitcoin::{Txid, hashes::Hash};

    use super::*;
    use crate::types::Amount;

    #[test]
    fn an_output_has_36_bytes_and_comes_back() {
        let spent = OutPoint::new(Txid::from_byte_array([7; 32]), 3);
        let bytes = output(&spent);
        assert_eq!(bytes.len(), 36);
        assert_eq!(outpoint(&bytes), Ok(spent));
        assert!(outpoint(&bytes[1..]).is_err() && outpoint(&[]).is_err());
        let unspent = |amount| Unspent {
            output: bytes.clone(),
            amount,
            height: 5,
        };
        let coin = Coin::of(&unspent(Amount::from(9))).unwrap();
        assert_eq!((coin.outpoint, coin.value, coin.height), (spent, 9, 5));
        assert!(Coin::of(&unspent(Amount::MAX)).is_err());
    }
}
