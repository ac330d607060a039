//! Order ids that ride behind calldata (guide: protocol 3.4). Pure.
//!
//! The scan runs over hex digits, not over bytes, because the network's other oracles do so and
//! every oracle must find the same id.

use crate::types::{B256, EvmAddress, U256};

const TRANSFER: &[u8] = b"a9059cbb";
const TRANSFER_FROM: &[u8] = b"23b872dd";
const WORD: usize = 64;

/// The id behind the one `transfer` or `transferFrom` of `amount` to `depository` in `input`; zero
/// when there is none, when several differ, or when the word is padding.
pub fn deposit_id(input: &[u8], depository: EvmAddress, amount: U256) -> B256 {
    let digits = alloy::hex::encode(input).into_bytes();
    let wanted = [
        format!("{:0>64}", alloy::hex::encode(depository)).into_bytes(),
        format!("{amount:064x}").into_bytes(),
    ];
    let mut found: Option<Option<&[u8]>> = None;
    for call in Calls(&digits) {
        if call.recipient != wanted[0] || call.amount != wanted[1] {
            continue;
        }
        if found.is_some_and(|first| first != call.suffix) {
            return B256::ZERO;
        }
        found = Some(call.suffix);
    }
    found.flatten().and_then(id).unwrap_or(B256::ZERO)
}

/// Sixteen leading zero bytes are the padding of an outer call, not an id.
fn id(word: &[u8]) -> Option<B256> {
    let mut bytes = [0; 32];
    alloy::hex::decode_to_slice(word, &mut bytes).ok()?;
    (bytes[..16] != [0; 16]).then_some(B256::new(bytes))
}

struct Call<'a> {
    recipient: &'a [u8],
    amount: &'a [u8],
    suffix: Option<&'a [u8]>,
}

/// The token calls in a string of hex digits, left to right, none inside another.
struct Calls<'a>(&'a [u8]);

impl<'a> Iterator for Calls<'a> {
    type Item = Call<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let skipped = match self.0.get(..8)? {
                TRANSFER => 0,
                TRANSFER_FROM => 1,
                _ => {
                    self.0 = &self.0[1..];
                    continue;
                }
            };
            let words = &self.0[8..];
            let word = |n: usize| words.get((skipped + n) * WORD..(skipped + n + 1) * WORD);
            let (Some(recipient), Some(amount)) = (word(0), word(1)) else {
                self.0 = &self.0[1..];
                continue;
            };
            let suffix = word(2);
            let taken = skipped + 2 + usize::from(suffix.is_some());
            self.0 = &words[taken * WORD..];
            return Some(Call {
                recipient,
                amount,
                suffix,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPOSITORY: EvmAddress = EvmAddress::repeat_byte(0x5f);
    const ID: B256 = B256::repeat_byte(0xb6);

    fn transfer(amount: u64, tail: &[u8]) -> Vec<u8> {
        let mut input = vec![0xa9, 0x05, 0x9c, 0xbb];
        input.extend(DEPOSITORY.into_word());
        input.extend(U256::from(amount).to_be_bytes::<32>());
        input.extend(tail);
        input
    }

    fn transfer_from(amount: u64, tail: &[u8]) -> Vec<u8> {
        let mut input = vec![0x23, 0xb8, 0x72, 0xdd];
        input.extend(EvmAddress::repeat_byte(1).into_word());
        input.extend(&transfer(amount, tail)[4..]);
        input
    }

    fn read(input: &[u8]) -> B256 {
        deposit_id(input, DEPOSITORY, U256::from(5))
    }

    #[test]
    fn suffix_behind_the_call_is_the_id() {
        assert_eq!(read(&transfer(5, ID.as_slice())), ID);
        assert_eq!(read(&transfer_from(5, ID.as_slice())), ID);
        let inside = [
            b"multicall".as_slice(),
            &transfer(5, ID.as_slice()),
            b"tail",
        ]
        .concat();
        assert_eq!(read(&inside), ID);
    }

    #[test]
    fn missing_short_or_padded_suffix_is_no_id() {
        assert_eq!(read(&transfer(5, &[])), B256::ZERO);
        assert_eq!(read(&transfer(5, &ID[..31])), B256::ZERO);
        let mut padded = [0; 32];
        padded[16..].fill(0x11);
        assert_eq!(read(&transfer(5, &padded)), B256::ZERO);
        padded[15] = 1;
        assert_eq!(read(&transfer(5, &padded)), B256::new(padded));
        assert_eq!(read(&[]), B256::ZERO);
        assert_eq!(read(&[0xa9, 0x05]), B256::ZERO);
    }

    #[test]
    fn other_amount_or_recipient_is_no_id() {
        assert_eq!(read(&transfer(6, ID.as_slice())), B256::ZERO);
        let other = deposit_id(
            &transfer(5, ID.as_slice()),
            EvmAddress::repeat_byte(2),
            U256::from(5),
        );
        assert_eq!(other, B256::ZERO);
    }

    #[test]
    fn several_calls_count_only_when_identical() {
        let one = transfer(5, ID.as_slice());
        assert_eq!(read(&[one.clone(), one.clone()].concat()), ID);
        let two = transfer(5, B256::repeat_byte(0xc7).as_slice());
        assert_eq!(read(&[one.clone(), two].concat()), B256::ZERO);
        assert_eq!(read(&[one, transfer(5, &[])].concat()), B256::ZERO);
    }
}
