//! Keys, coins and signed transactions of Bitcoin, for every kind of script that a single key spends from. Pure.

use alloy::primitives::{B256, keccak256};
use anyhow::{Context, Result, ensure};
use bitcoin::{
    Amount, EcdsaSighashType, OutPoint, Psbt, PublicKey, ScriptBuf, Sequence, TapSighashType,
    Transaction, TxIn, TxOut, Witness,
    absolute::LockTime,
    ecdsa,
    key::TapTweak,
    script::PushBytesBuf,
    sighash::{Prevouts, SighashCache},
    taproot,
    transaction::Version,
};
use secp256k1::{Keypair, Message, SECP256K1, SecretKey};

use crate::account::Account;

/// What is paid for a transaction that says nothing else: more than any node here asks.
pub const FEE: Amount = Amount::from_sat(10_000);

/// How an output is locked to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    P2pkh,
    /// The script `<key> OP_CHECKSIG`, by its hash.
    P2sh,
    /// A P2WPKH program inside P2SH.
    P2shP2wpkh,
    P2wpkh,
    /// The script `<key> OP_CHECKSIG`, by its hash.
    P2wsh,
    /// Spent by the key alone.
    P2tr,
}

impl Kind {
    pub const ALL: [Self; 6] = [
        Self::P2pkh,
        Self::P2sh,
        Self::P2shP2wpkh,
        Self::P2wpkh,
        Self::P2wsh,
        Self::P2tr,
    ];
}

/// A named key. Never give one of these anything of value: the name is the secret.
#[derive(Clone, Copy, Debug)]
pub struct Key(Keypair);

impl Key {
    pub fn named(name: &str) -> Result<Self> {
        Self::from_secret(keccak256(format!("intentd devnet key {name}")))
    }

    /// The key that `account` has elsewhere.
    pub fn of(account: &Account) -> Result<Self> {
        Self::from_secret(account.key().parse()?)
    }

    fn from_secret(secret: B256) -> Result<Self> {
        let secret = SecretKey::from_slice(secret.as_slice())?;
        Ok(Self(secret.keypair(SECP256K1)))
    }

    /// The private key.
    pub fn secret(&self) -> B256 {
        self.0.secret_bytes().into()
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.0.public_key().into()
    }

    /// The output script that locks to this key.
    pub fn script(&self, kind: Kind) -> ScriptBuf {
        match kind {
            Kind::P2pkh => ScriptBuf::new_p2pkh(&self.public().pubkey_hash()),
            Kind::P2sh => ScriptBuf::new_p2sh(&self.inner(kind).script_hash()),
            Kind::P2shP2wpkh => ScriptBuf::new_p2sh(&self.inner(kind).script_hash()),
            Kind::P2wpkh => self.inner(Kind::P2shP2wpkh),
            Kind::P2wsh => ScriptBuf::new_p2wsh(&self.inner(kind).wscript_hash()),
            Kind::P2tr => {
                let (key, _) = self.0.x_only_public_key();
                ScriptBuf::new_p2tr(SECP256K1, key, None)
            }
        }
    }

    /// The script behind the hash of `kind`.
    fn inner(&self, kind: Kind) -> ScriptBuf {
        let public = self.public();
        match kind {
            Kind::P2shP2wpkh => {
                let hash = bitcoin::CompressedPublicKey(public.inner).wpubkey_hash();
                ScriptBuf::new_p2wpkh(&hash)
            }
            _ => ScriptBuf::new_p2pk(&public),
        }
    }

    /// An output of `amount` that locks to this key.
    pub fn output(&self, kind: Kind, amount: Amount) -> TxOut {
        pay(self.script(kind), amount)
    }
}

/// An output that can be spent.
#[derive(Clone, Debug)]
pub struct Coin {
    pub point: OutPoint,
    pub output: TxOut,
    pub key: Key,
    pub kind: Kind,
}

impl Coin {
    /// The output `index` of `transaction`, which locks to `key`.
    pub fn of(transaction: &Transaction, index: u32, (key, kind): (Key, Kind)) -> Result<Self> {
        let output = transaction.tx_out(index as usize)?.clone();
        let point = OutPoint::new(transaction.compute_txid(), index);
        Ok(Self {
            point,
            output,
            key,
            kind,
        })
    }
}

/// A transaction to be signed. It can be replaced while it waits: it says so, and its node does not ask.
#[derive(Clone, Debug)]
pub struct Spend {
    pub coins: Vec<Coin>,
    pub outputs: Vec<TxOut>,
    /// Where the rest goes; without it, the rest is the fee.
    pub change: Option<ScriptBuf>,
    pub fee: Amount,
    pub version: Version,
}

impl Spend {
    /// Of `coins`, for [`FEE`], with the change to the first coin's own script.
    pub fn of(coins: Vec<Coin>, outputs: Vec<TxOut>) -> Self {
        Self {
            change: coins.first().map(|coin| coin.output.script_pubkey.clone()),
            coins,
            outputs,
            fee: FEE,
            version: Version::TWO,
        }
    }

    /// What a PSBT wants signed, all of it by `key`.
    pub fn wanted(psbt: &Psbt, (key, kind): (Key, Kind)) -> Result<Self> {
        let script = key.script(kind);
        let coins = psbt.iter_funding_utxos().zip(&psbt.unsigned_tx.input);
        let coins = coins.map(|(output, input)| {
            let output = output?.clone();
            ensure!(output.script_pubkey == script, "an output of somebody else");
            let point = input.previous_output;
            Ok(Coin {
                point,
                output,
                key,
                kind,
            })
        });
        let spend = Self {
            coins: coins.collect::<Result<_>>()?,
            outputs: psbt.unsigned_tx.output.clone(),
            change: None,
            fee: psbt.fee()?,
            version: psbt.unsigned_tx.version,
        };
        ensure!(spend.unsigned()? == psbt.unsigned_tx, "another transaction");
        Ok(spend)
    }

    /// The transaction without signatures, its outputs in their order and the change behind them.
    pub fn unsigned(&self) -> Result<Transaction> {
        let mut unsigned = Transaction {
            version: self.version,
            lock_time: LockTime::ZERO,
            input: self.coins.iter().map(input).collect(),
            output: self.outputs.clone(),
        };
        if let Some(script) = &self.change {
            let rest = sum(&self.spent()).checked_sub(sum(&self.outputs) + self.fee);
            let rest = rest.context("the coins are worth too little")?;
            unsigned.output.push(pay(script.clone(), rest));
        }
        Ok(unsigned)
    }

    /// The same with every signature.
    pub fn sign(&self) -> Result<Transaction> {
        let (unsigned, spent) = (self.unsigned()?, self.spent());
        let mut signed = unsigned.clone();
        let mut hashes = SighashCache::new(&unsigned);
        for (at, coin) in self.coins.iter().enumerate() {
            let key = unlock(&mut hashes, (at, coin), &spent)?;
            signed.input[at].script_sig = key.script;
            signed.input[at].witness = key.witness;
        }
        Ok(signed)
    }

    fn spent(&self) -> Vec<TxOut> {
        self.coins.iter().map(|coin| coin.output.clone()).collect()
    }
}

/// An output of `amount` to `script`.
pub fn pay(script: ScriptBuf, amount: Amount) -> TxOut {
    TxOut {
        value: amount,
        script_pubkey: script,
    }
}

/// An OP_RETURN of `text` in one push.
pub fn note(text: &str) -> Result<TxOut> {
    let push = PushBytesBuf::try_from(text.as_bytes().to_vec())?;
    Ok(pay(ScriptBuf::new_op_return(push), Amount::ZERO))
}

fn input(coin: &Coin) -> TxIn {
    TxIn {
        previous_output: coin.point,
        script_sig: ScriptBuf::new(),
        sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
        witness: Witness::new(),
    }
}

fn sum(outputs: &[TxOut]) -> Amount {
    outputs.iter().map(|output| output.value).sum()
}

/// What an input shows to spend its coin.
struct Unlocked {
    script: ScriptBuf,
    witness: Witness,
}

fn unlock(
    hashes: &mut SighashCache<&Transaction>,
    (at, coin): (usize, &Coin),
    spent: &[TxOut],
) -> Result<Unlocked> {
    let (key, script, value) = (&coin.key, &coin.output.script_pubkey, coin.output.value);
    let all = EcdsaSighashType::All;
    let inner = key.inner(coin.kind);
    Ok(match coin.kind {
        Kind::P2pkh | Kind::P2sh => {
            let bare = if coin.kind == Kind::P2sh {
                &inner
            } else {
                script
            };
            let hash = hashes.legacy_signature_hash(at, bare, all.to_u32())?;
            let signature = ecdsa(key, hash.into()).serialize();
            let shown = ScriptBuf::builder().push_slice(signature);
            let shown = match coin.kind {
                Kind::P2sh => shown.push_slice(pushed(&inner)?),
                _ => shown.push_key(&key.public()),
            };
            Unlocked {
                script: shown.into_script(),
                witness: Witness::new(),
            }
        }
        Kind::P2wpkh | Kind::P2shP2wpkh => {
            let program = key.inner(Kind::P2shP2wpkh);
            let hash = hashes.p2wpkh_signature_hash(at, &program, value, all)?;
            let witness = Witness::p2wpkh(&ecdsa(key, hash.into()), &key.public().inner);
            let script = match coin.kind {
                Kind::P2wpkh => ScriptBuf::new(),
                _ => ScriptBuf::builder()
                    .push_slice(pushed(&program)?)
                    .into_script(),
            };
            Unlocked { script, witness }
        }
        Kind::P2wsh => {
            let hash = hashes.p2wsh_signature_hash(at, &inner, value, all)?;
            let signature = ecdsa(key, hash.into()).to_vec();
            Unlocked {
                script: ScriptBuf::new(),
                witness: Witness::from_slice(&[signature, inner.to_bytes()]),
            }
        }
        Kind::P2tr => unlock_taproot(hashes, at, key, spent)?,
    })
}

fn unlock_taproot(
    hashes: &mut SighashCache<&Transaction>,
    at: usize,
    key: &Key,
    spent: &[TxOut],
) -> Result<Unlocked> {
    let of = TapSighashType::Default;
    let hash = hashes.taproot_key_spend_signature_hash(at, &Prevouts::All(spent), of)?;
    let tweaked = key.0.tap_tweak(SECP256K1, None).to_keypair();
    let signature = taproot::Signature {
        signature: SECP256K1.sign_schnorr_no_aux_rand(&hash.into(), &tweaked),
        sighash_type: of,
    };
    Ok(Unlocked {
        script: ScriptBuf::new(),
        witness: Witness::p2tr_key_spend(&signature),
    })
}

fn ecdsa(key: &Key, message: Message) -> ecdsa::Signature {
    ecdsa::Signature::sighash_all(SECP256K1.sign_ecdsa(&message, &key.0.secret_key()))
}

fn pushed(script: &ScriptBuf) -> Result<PushBytesBuf> {
    Ok(PushBytesBuf::try_from(script.to_bytes())?)
}
