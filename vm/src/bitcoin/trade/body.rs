//! Drafts of Bitcoin transactions as bytes. Pure.
//!
//! The first byte is the format. What the solver sends is a list of outputs: the transaction's inputs and its change are
//! chosen when it is made. What a user signs is a PSBT (BIP 174).

use bitcoin::{Amount as Satoshis, Psbt, ScriptBuf, TxOut, consensus, script::PushBytesBuf};

use crate::{
    CodecError,
    trade::{Body, Draft},
    types::{Address, Amount, B256},
};

const OUTPUTS: u8 = 1;
const PSBT: u8 = 2;

/// What a transaction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All outputs but change, with the one that names the order.
    Outputs(Vec<TxOut>),
    Psbt(Box<Psbt>),
}

impl Content {
    pub fn of(draft: &Draft) -> Result<Self, CodecError> {
        let foreign = || CodecError("not a transaction of bitcoin-vm".into());
        let Body::Own(bytes) = &draft.body else {
            return Err(foreign());
        };
        match bytes.split_first() {
            Some((&OUTPUTS, rest)) => {
                let outputs = consensus::deserialize(rest).map_err(|_| foreign())?;
                Ok(Self::Outputs(outputs))
            }
            Some((&PSBT, rest)) => {
                let psbt = Psbt::deserialize(rest).map_err(|_| foreign())?;
                Ok(Self::Psbt(Box::new(psbt)))
            }
            _ => Err(foreign()),
        }
    }

    /// The draft of `from`, which takes `value` satoshis besides its fee.
    pub fn draft(&self, from: &Address, value: u64) -> Draft {
        let (format, bytes) = match self {
            Self::Outputs(outputs) => (OUTPUTS, consensus::serialize(outputs)),
            Self::Psbt(psbt) => (PSBT, psbt.serialize()),
        };
        Draft {
            from: from.clone(),
            value: Amount::from(value),
            body: Body::Own([&[format], &bytes[..]].concat().into()),
        }
    }
}

/// The output that names an order: an OP_RETURN with one push, `0x` and 64 hex digits (guide: protocol 3.4).
pub fn note(order: B256) -> TxOut {
    let mut text = PushBytesBuf::new();
    // 66 bytes are far from the most that a push has.
    let _ = text.extend_from_slice(format!("{order:#x}").as_bytes());
    TxOut {
        value: Satoshis::ZERO,
        script_pubkey: ScriptBuf::new_op_return(text),
    }
}

/// The outputs without what they name, and with an order.
pub fn naming(outputs: Vec<TxOut>, order: B256) -> Vec<TxOut> {
    let paid = outputs.into_iter();
    let paid = paid.filter(|output| !output.script_pubkey.is_op_return());
    paid.chain([note(order)]).collect()
}

/// What outputs pay together, in satoshis.
pub fn sum(outputs: &[TxOut]) -> u64 {
    let values = outputs.iter().map(|output| output.value.to_sat());
    values.fold(0, u64::saturating_add)
}

/// The first output that is too small for nodes to pass its transaction on, and the least that it may pay.
pub fn dust(outputs: &[TxOut]) -> Option<(&TxOut, Satoshis)> {
    let mut each = outputs.iter();
    let small = each.find(|output| output.value < output.script_pubkey.minimal_non_dust())?;
    Some((small, small.script_pubkey.minimal_non_dust()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trade::Call;

    fn paid(satoshis: u64) -> TxOut {
        let mut script = vec![0, 20];
        script.extend([7; 20]);
        TxOut {
            value: Satoshis::from_sat(satoshis),
            script_pubkey: script.into(),
        }
    }

    #[test]
    fn outputs_and_psbts_come_back_and_nothing_else_is_read() {
        let from = Address::from_parts("account", vec![1; 20]);
        let outputs = vec![paid(9), note(B256::repeat_byte(0xee))];
        let transaction = bitcoin::Transaction {
            version: bitcoin::transaction::Version::TWO,
            lock_time: bitcoin::absolute::LockTime::ZERO,
            input: Vec::new(),
            output: outputs.clone(),
        };
        let psbt = Psbt::from_unsigned_tx(transaction).unwrap();
        let contents = [Content::Outputs(outputs), Content::Psbt(Box::new(psbt))];
        for content in contents {
            let draft = content.draft(&from, 9);
            assert_eq!(draft.value, Amount::from(9));
            assert_eq!(Content::of(&draft), Ok(content));
            let Body::Own(bytes) = &draft.body else {
                panic!("no call");
            };
            for wrong in [&bytes[..bytes.len() - 1], &bytes[1..], &[9, 1], &[]] {
                let wrong = Draft {
                    body: Body::Own(wrong.to_vec().into()),
                    ..draft.clone()
                };
                assert!(Content::of(&wrong).is_err());
            }
        }
        assert!(Content::of(&Draft::call(Call::nothing(&from))).is_err());
    }

    #[test]
    fn an_order_is_named_once_by_66_characters() {
        let order = B256::repeat_byte(0xab);
        let script = note(order).script_pubkey;
        assert_eq!(&script.as_bytes()[..2], &[0x6a, 66]);
        assert_eq!(&script.as_bytes()[2..], format!("{order:#x}").as_bytes());
        let named = naming(vec![paid(9), note(B256::ZERO)], order);
        assert_eq!(named, [paid(9), note(order)]);
        assert_eq!(sum(&named), 9);
    }

    #[test]
    fn dust_begins_where_nodes_have_it() {
        assert_eq!(dust(&[paid(294), note(B256::ZERO)]), None);
        let outputs = [paid(1_000), paid(293)];
        let (small, least) = dust(&outputs).unwrap();
        assert_eq!((small.value.to_sat(), least.to_sat()), (293, 294));
    }
}
