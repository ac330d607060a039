//! Addresses, currencies and transaction ids of `ethereum-vm` (guide: protocol 2.2).

use crate::{Address, CodecError, EvmAddress, ReadError, protocol::address::HexAddresses};

/// Converts addresses, currencies and transaction ids of `ethereum-vm` between text and bytes.
pub static ADDRESSES: HexAddresses = HexAddresses {
    native: "0x0000000000000000000000000000000000000000",
};

/// The 20 bytes of an account or contract.
pub fn evm(address: &Address) -> Result<EvmAddress, CodecError> {
    EvmAddress::try_from(address.bytes())
        .map_err(|_| CodecError(format!("Not a contract address: {address}")))
}

/// As [`evm`], for who reads a chain.
pub fn account(address: &Address) -> Result<EvmAddress, ReadError> {
    evm(address).map_err(|error| ReadError::Unavailable(error.to_string()))
}

/// The account of a compressed secp256k1 key (SEC 1): the last 20 bytes of its point's keccak256.
pub fn account_of_key(public: &[u8]) -> Result<Address, CodecError> {
    let key = k256::ecdsa::VerifyingKey::from_sec1_bytes(public)
        .map_err(|_| CodecError("Not a public key of secp256k1".into()))?;
    let account = EvmAddress::from_public_key(&key);
    Ok(Address::from_parts(&format!("{account:#x}"), account.0))
}

#[cfg(test)]
mod tests {
    use alloy::hex;

    use super::*;

    /// The generator point: the key 1, whose account is well known.
    const ONE: [u8; 33] =
        hex!("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");

    #[test]
    fn an_account_is_what_its_public_key_hashes_to() {
        let account = account_of_key(&ONE).unwrap();
        assert_eq!(account.text(), "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf");
        assert_eq!(account.bytes().len(), 20);
        for foreign in [&ONE[1..], &[2; 32], &[]] {
            assert!(account_of_key(foreign).is_err());
        }
    }
}
