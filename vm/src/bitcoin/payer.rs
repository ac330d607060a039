//! Finds the payers of a transaction from the outputs that it spends and their signatures (guide: protocol 12.3).
//! Pure.
//!
//! A Bitcoin transaction has no sender. The owners of the spent outputs take its place if they signed the whole
//! transaction: others can take an input whose signature leaves outputs or inputs open into their own transaction,
//! with their own order id.

use bitcoin::{Script, ScriptBuf, blockdata::script::Instruction};

use super::raw::RawInput;

/// SIGHASH_ALL: every input and every output is signed.
const ALL: u8 = 0x01;

/// The scripts that paid, each once; `None` where the payers are unclear or there are none. `spent` has the script of
/// each input's previous output.
pub fn payers<'a>(inputs: &[RawInput], spent: &'a [Option<ScriptBuf>]) -> Option<Vec<&'a Script>> {
    if inputs.len() != spent.len() {
        return None;
    }
    let (mut payers, mut signed_all) = (Vec::new(), true);
    for (input, script) in inputs.iter().zip(spent) {
        // A coinbase spends nothing.
        let script = script.as_deref()?;
        match is_whole(input, script) {
            Some(false) => return None,
            Some(true) => {}
            None => signed_all = false,
        }
        payers.push(script);
    }
    payers.sort_unstable();
    payers.dedup();
    // A single owner is the payer in any case; several owners only if each signed the whole transaction.
    (payers.len() == 1 || (signed_all && !payers.is_empty())).then_some(payers)
}

/// Whether an input shows a signature that leaves inputs or outputs to others.
pub fn is_open(inputs: &[RawInput], spent: &[Option<ScriptBuf>]) -> bool {
    let mut each = inputs.iter().zip(spent);
    each.any(|(input, script)| {
        let script = script.as_deref();
        script.is_some_and(|script| is_whole(input, script) == Some(false))
    })
}

/// Whether all signatures of an input cover the whole transaction; `None` if it shows none.
fn is_whole(input: &RawInput, spent: &Script) -> Option<bool> {
    let mut kinds = match spent.is_p2tr() {
        true => schnorr(&input.witness),
        false => ecdsa(input),
    }
    .into_iter()
    .peekable();
    kinds.peek()?;
    Some(kinds.all(|kind| kind == ALL))
}

/// The hash types of an input's ECDSA signatures, which are pushes in DER form.
fn ecdsa(input: &RawInput) -> Vec<u8> {
    let pushed = input.script_sig.as_ref().map(|script| {
        let pushes = script.hex.instructions().filter_map(|step| match step {
            Ok(Instruction::PushBytes(bytes)) => Some(bytes.as_bytes().to_vec()),
            _ => None,
        });
        pushes.collect::<Vec<_>>()
    });
    let items = pushed.unwrap_or_default();
    let items = items.iter().map(Vec::as_slice);
    items
        .chain(input.witness.iter().map(|item| item.0.as_ref()))
        .filter(|item| (9..=73).contains(&item.len()))
        .filter(|item| item[0] == 0x30 && usize::from(item[1]) == item.len() - 3)
        .filter_map(|item| item.last().copied())
        .collect()
}

/// The hash types of a Taproot input's signatures (BIP 341); 64 bytes cover the whole transaction.
fn schnorr(witness: &[super::raw::Hex]) -> Vec<u8> {
    let mut items: Vec<&[u8]> = witness.iter().map(|item| item.0.as_ref()).collect();
    // The annex.
    if items.len() > 1 && items.last().is_some_and(|item| item.first() == Some(&0x50)) {
        items.pop();
    }
    // A script path ends with the script and its control block.
    if items.len() > 1 {
        items.truncate(items.len() - 2);
    }
    let kinds = items.iter().filter_map(|item| match item.len() {
        64 => Some(ALL),
        65 => item.last().copied(),
        _ => None,
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use alloy::primitives::hex;

    use super::*;
    use crate::bitcoin::raw::{Hex, RawScript};

    fn script(byte: u8, taproot: bool) -> ScriptBuf {
        let program = if taproot { "5120" } else { "0014" };
        let length = if taproot { 32 } else { 20 };
        let text = format!("{program}{}", hex::encode(vec![byte; length]));
        ScriptBuf::from_hex(&text).unwrap()
    }

    fn der(kind: u8) -> Vec<u8> {
        let mut signature = vec![0x30, 6, 2, 1, 1, 2, 1, 1];
        signature.push(kind);
        signature
    }

    fn input(witness: Vec<Vec<u8>>) -> RawInput {
        RawInput {
            txid: None,
            vout: 0,
            prevout: None,
            script_sig: None,
            witness: witness.into_iter().map(|item| Hex(item.into())).collect(),
        }
    }

    fn count(inputs: &[(RawInput, ScriptBuf)]) -> Option<usize> {
        let (inputs, spent): (Vec<_>, Vec<_>) = inputs.iter().cloned().unzip();
        let spent: Vec<_> = spent.into_iter().map(Some).collect();
        payers(&inputs, &spent).map(|payers| payers.len())
    }

    #[test]
    fn one_owner_pays_whatever_shows_but_not_with_open_signatures() {
        let (one, key) = (script(1, false), vec![2; 33]);
        let by = |kind: u8| input(vec![der(kind), key.clone()]);
        assert_eq!(count(&[(input(vec![]), one.clone())]), Some(1));
        assert_eq!(count(&[(by(ALL), one.clone())]), Some(1));
        // NONE, SINGLE, and each with ANYONECANPAY.
        for open in [2, 3, 0x81, 0x82, 0x83] {
            assert_eq!(count(&[(by(open), one.clone())]), None, "{open:#x}");
        }
        assert_eq!(count(&[(by(ALL), one.clone()), (by(0x83), one)]), None);
        assert_eq!(count(&[]), None);
        assert!(payers(&[input(vec![])], &[None]).is_none());
        assert!(payers(&[input(vec![])], &[]).is_none());
    }

    #[test]
    fn several_owners_pay_only_what_each_signed_as_a_whole() {
        let (one, two) = (script(1, false), script(2, true));
        let first = || input(vec![der(ALL), vec![2; 33]]);
        let second = |length, last| {
            let mut signature = vec![7; length];
            signature[length - 1] = last;
            input(vec![signature])
        };
        let pair = |second| count(&[(first(), one.clone()), (second, two.clone())]);
        assert_eq!(pair(second(64, 9)), Some(2));
        assert_eq!(pair(second(65, ALL)), Some(2));
        assert_eq!(pair(second(65, 0x83)), None);
        assert_eq!(pair(input(vec![])), None);
    }

    #[test]
    fn annex_and_script_path_hide_no_open_signature() {
        let ending = |length: usize, last: u8| {
            let mut item = vec![7; length];
            item[length - 1] = last;
            item
        };
        let (open, sound) = (ending(65, 0x83), ending(64, 0x83));
        let (leaf, annex) = (vec![0xac], vec![0x50, 1]);
        // Of two control blocks the long one looks like an open signature.
        let (short, long) = (ending(33, 1), ending(65, 0x83));
        let mut alone = open.clone();
        alone[0] = 0x50;
        let cases = [
            (vec![open.clone(), annex.clone()], true),
            (vec![open.clone(), leaf.clone(), short.clone()], true),
            (vec![open, leaf.clone(), short, annex.clone()], true),
            // The only item is no annex.
            (vec![alone], true),
            (vec![sound.clone(), annex.clone()], false),
            (vec![sound.clone(), leaf.clone(), long.clone()], false),
            (vec![sound, leaf, long, annex], false),
        ];
        let (one, two) = (script(1, false), script(2, true));
        let first = (input(vec![der(ALL), vec![2; 33]]), one);
        for (at, (items, is_left_open)) in cases.into_iter().enumerate() {
            let second = (input(items), two.clone());
            let (inputs, spent) = ([second.0.clone()], [Some(two.clone())]);
            assert_eq!(is_open(&inputs, &spent), is_left_open, "{at}");
            let alone = count(std::slice::from_ref(&second));
            assert_eq!(alone, (!is_left_open).then_some(1), "{at}");
            // Both owners signed the whole.
            let both = count(&[first.clone(), second]);
            assert_eq!(both, (!is_left_open).then_some(2), "{at}");
        }
    }

    #[test]
    fn legacy_signatures_stand_in_the_script() {
        let one = script(1, false);
        let by = |kind| {
            let mut pushed = vec![9];
            pushed.extend(der(kind));
            RawInput {
                script_sig: Some(RawScript {
                    hex: ScriptBuf::from_bytes(pushed),
                }),
                ..input(vec![])
            }
        };
        assert_eq!(count(&[(by(ALL), one.clone())]), Some(1));
        assert_eq!(count(&[(by(0x83), one)]), None);
    }
}
