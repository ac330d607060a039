//! The transaction by which a depository pays a withdrawal: what the allocator records, what it signs, and what it is told
//! (guide: protocol 8.2 and 8.4). Pure.

use alloy::{
    hex,
    primitives::{B256, Bytes},
    sol_types::SolValue,
};
use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bitcoin::{
    Amount, EcdsaSighashType, Psbt, PublicKey, ScriptBuf, Transaction, TxIn,
    bip32::{DerivationPath, Fingerprint},
    ecdsa,
    hashes::Hash as _,
    sighash::SighashCache,
    taproot,
    transaction::Version,
};
use secp256k1::{Message, SECP256K1, SecretKey};
use serde_json::{Value, json};

use super::{Coin, FEE, Spend, pay};
use crate::world::{Identity, WithdrawalForm};

/// Satoshis per virtual byte that the allocator is told.
const FEE_RATE: u64 = 5;

mod abi {
    alloy::sol! {
        struct Input { bytes txid; bytes index; bytes script; bytes value; }
        struct Output { bytes value; bytes script; }
        struct Payload { Input[] inputs; Output[] outputs; }

        struct Utxo { bytes32 txid; uint32 index; uint64 value; bytes scriptPubKey; }
        struct PayloadData { Utxo[] utxos; uint64 feeRate; }
    }
}

/// A withdrawal's transaction: its first output pays the recipient.
#[derive(Clone, Debug)]
pub struct AllocatorTx(pub Spend);

impl AllocatorTx {
    /// Takes `amount` out of the depository's `coins`: the network has [`FEE`] of it, `recipient` the rest.
    pub fn pays(coins: Vec<Coin>, recipient: ScriptBuf, amount: Amount) -> Result<Self> {
        let held: Amount = coins.iter().map(|coin| coin.output.value).sum();
        let paid = amount.checked_sub(FEE).context("less than the fee")?;
        let mut spend = Spend::of(coins, vec![pay(recipient, paid)]);
        spend.version = Version::ONE;
        if held == amount {
            spend.change = None;
        }
        Ok(Self(spend))
    }

    /// What leaves the hub balance: what the recipient gets, and the fee.
    pub fn amount(&self) -> Result<Amount> {
        let paid = self.0.outputs.first().context("it pays nobody")?.value;
        Ok(paid + self.0.fee)
    }

    /// What goes into a block.
    pub fn transaction(&self) -> Result<Transaction> {
        self.0.sign()
    }

    /// What the allocator has signed, of a depository of P2WPKH or P2PKH: for each input the hash, and the signature as
    /// the service gives it (guide: protocol 8.4).
    pub fn signatures(&self) -> Result<Vec<(B256, Bytes)>> {
        let unsigned = self.0.unsigned()?;
        let mut hashes = SighashCache::new(&unsigned);
        let mut all = Vec::new();
        for (at, coin) in self.0.coins.iter().enumerate() {
            let (script, value) = (&coin.output.script_pubkey, coin.output.value);
            let all_of_it = EcdsaSighashType::All;
            let hash = if script.is_p2pkh() {
                let hash = hashes.legacy_signature_hash(at, script, all_of_it.to_u32())?;
                hash.to_byte_array()
            } else {
                let hash = hashes.p2wpkh_signature_hash(at, script, value, all_of_it)?;
                hash.to_byte_array()
            };
            let secret = SecretKey::from_slice(coin.key.secret().as_slice())?;
            let signature = SECP256K1.sign_ecdsa_recoverable(&Message::from_digest(hash), &secret);
            let (parity, bytes) = signature.serialize_compact();
            let served = json!({
                "big_r": { "affine_point": format!("02{}", hex::encode(&bytes[..32])) },
                "s": { "scalar": hex::encode(&bytes[32..]) },
                "recovery_id": parity.to_i32(),
            });
            all.push((B256::from(hash), served.to_string().into_bytes().into()));
        }
        Ok(all)
    }

    /// The withdrawal in the form of its family, on `chain`.
    pub fn form(&self, chain: &Identity) -> Result<WithdrawalForm> {
        let first = self.0.outputs.first().context("it pays nobody")?;
        Ok(WithdrawalForm {
            encoded: self.encoded()?,
            payload: self.payload()?,
            currency: chain.native.clone(),
            receiver: STANDARD.encode(first.script_pubkey.as_bytes()),
            data: self.data(),
            additional: Some(self.additional()),
        })
    }

    /// The signed PSBT.
    fn encoded(&self) -> Result<Bytes> {
        let signed = self.transaction()?;
        let mut psbt = Psbt::from_unsigned_tx(self.0.unsigned()?)?;
        let signed = signed.input.iter().zip(&self.0.coins);
        for (input, (shown, coin)) in psbt.inputs.iter_mut().zip(signed) {
            input.witness_utxo = Some(coin.output.clone());
            let shown = pushed(shown)?;
            let mut shown = shown.iter();
            let signature = shown.next().context("no signature")?;
            let Some(key) = shown.next() else {
                input.tap_key_sig = Some(taproot::Signature::from_slice(signature)?);
                continue;
            };
            let key = PublicKey::from_slice(key)?;
            let source = (Fingerprint::default(), DerivationPath::master());
            input.sighash_type = Some(EcdsaSighashType::All.into());
            input.bip32_derivation.insert(key.inner, source);
            let signature = ecdsa::Signature::from_slice(signature)?;
            input.partial_sigs.insert(key, signature);
        }
        Ok(psbt.serialize().into())
    }

    /// What is to be signed, in byte strings that begin with their least byte.
    fn payload(&self) -> Result<Bytes> {
        let inputs = self.0.coins.iter().map(|coin| abi::Input {
            txid: coin.point.txid.to_byte_array().into(),
            index: coin.point.vout.to_le_bytes().into(),
            script: coin.output.script_pubkey.to_bytes().into(),
            value: coin.output.value.to_sat().to_le_bytes().into(),
        });
        let unsigned = self.0.unsigned()?;
        let outputs = unsigned.output.iter().map(|output| abi::Output {
            value: output.value.to_sat().to_le_bytes().into(),
            script: output.script_pubkey.to_bytes().into(),
        });
        let payload = abi::Payload {
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        };
        Ok(payload.abi_encode().into())
    }

    /// The outputs to be spent, as the id of the allocator's record has them.
    fn data(&self) -> Bytes {
        let utxos = self.0.coins.iter().map(|coin| abi::Utxo {
            txid: coin.point.txid.to_byte_array().into(),
            index: coin.point.vout,
            value: coin.output.value.to_sat(),
            scriptPubKey: coin.output.script_pubkey.to_bytes().into(),
        });
        let data = abi::PayloadData {
            utxos: utxos.collect(),
            feeRate: FEE_RATE,
        };
        data.abi_encode().into()
    }

    /// The same as claims have it.
    fn additional(&self) -> Value {
        let utxos = self.0.coins.iter().map(|coin| {
            json!({
                "txid": coin.point.txid.to_string(),
                "vout": coin.point.vout,
                "value": coin.output.value.to_sat().to_string(),
            })
        });
        let utxos: Vec<Value> = utxos.collect();
        json!({ "bitcoin-vm": { "allocatorUtxos": utxos, "feeRate": FEE_RATE } })
    }
}

/// What an input shows to spend its coin.
fn pushed(input: &TxIn) -> Result<Vec<Vec<u8>>> {
    if !input.witness.is_empty() {
        return Ok(input.witness.to_vec());
    }
    let each = input.script_sig.instructions().map(|shown| {
        let shown = shown?;
        let bytes = shown.push_bytes().context("no push")?;
        Ok(bytes.as_bytes().to_vec())
    });
    each.collect()
}
