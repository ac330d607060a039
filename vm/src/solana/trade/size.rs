//! How long the user's transaction is, compiled as the published client compiles it: a message of version 0 with the
//! lookup tables of the step, and a signature for each signer (guide: protocol 11.5). Pure.

use solana_message::AddressLookupTableAccount;
use solana_pubkey::Pubkey;

use super::{
    body::Instructions,
    message::{self, MOST_BYTES},
    steps::listed,
    swap,
};
use crate::{CodecError, trade::Unfit};

/// Bytes that wallets add for the price of work (guide: protocol 11.5).
const ROOM: usize = 60;
/// The most bytes of a transaction with an exchange, where the operator says nothing else.
pub const MOST_OF_EXCHANGE: usize = MOST_BYTES - ROOM;

/// Whether nodes take the transaction, and leave a wallet room where it is made long by an aggregator's exchange.
pub fn fits(
    body: &Instructions,
    from: &Pubkey,
    tables: &[AddressLookupTableAccount],
    most_of_exchange: usize,
) -> Result<(), Unfit> {
    let bytes = bytes(body, from, tables)?;
    let is_exchange = |program: &[u8; 32]| *program == swap::PROGRAM.to_bytes();
    let most = match body.list.iter().any(|one| is_exchange(&one.program)) {
        true => most_of_exchange,
        false => MOST_BYTES,
    };
    match bytes > most {
        true => Err(Unfit::Large { bytes, most }),
        false => Ok(()),
    }
}

/// The bytes of the signed transaction.
fn bytes(
    body: &Instructions,
    from: &Pubkey,
    tables: &[AddressLookupTableAccount],
) -> Result<usize, CodecError> {
    let payer = body.fee_payer.map_or(*from, Pubkey::new_from_array);
    // Whatever the work is, its limit takes as many bytes.
    let message = message::compile(&payer, &listed(body, None), tables, [0; 32])?;
    Ok(message::bytes(&message))
}

#[cfg(test)]
mod tests {
    use alloy::hex;
    use serde_json::Value;

    use super::*;
    use crate::solana::{
        programs::COMPUTE_BUDGET,
        trade::body::{Account, Instruction},
    };

    /// Steps as their users are shown them, and how long web3.js makes their transactions.
    const COMPILED: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/recorded/web3-sizes.json"
    ));

    fn key(byte: u8) -> Pubkey {
        Pubkey::new_from_array([byte; 32])
    }

    /// Of one instruction with so many bytes of data, and accounts from `first` on.
    fn body(program: &Pubkey, data: usize, accounts: std::ops::Range<u8>) -> Instructions {
        let accounts = accounts.map(|byte| Account {
            key: key(byte).to_bytes(),
            signs: false,
            writable: byte % 2 == 0,
        });
        Instructions {
            list: vec![Instruction {
                program: program.to_bytes(),
                accounts: accounts.collect(),
                data: vec![0; data],
            }],
            ..Instructions::default()
        }
    }

    /// A body that takes exactly so many bytes.
    fn of_bytes(program: &Pubkey, wanted: usize) -> Instructions {
        let of = |data| body(program, data, 10..14);
        let short = bytes(&of(200), &key(1), &[]).unwrap();
        let found = of(200 + wanted - short);
        assert_eq!(bytes(&found, &key(1), &[]).unwrap(), wanted);
        found
    }

    /// 1 signature, the version, the header, 6 keys, the blockhash, one instruction, no tables.
    #[test]
    fn transaction_is_as_long_as_its_parts() {
        let parts = (1 + 64) + 1 + 3 + (1 + 6 * 32) + 32 + (1 + 1 + (1 + 4) + (1 + 9)) + 1;
        let body = body(&key(9), 9, 10..14);
        assert_eq!(bytes(&body, &key(1), &[]).unwrap(), parts);
        // The limit of work: a program, and an instruction of five bytes without accounts.
        let limited = Instructions {
            work_limit: true,
            ..body.clone()
        };
        let more = 32 + (1 + 1 + (1 + 5));
        assert_eq!(bytes(&limited, &key(1), &[]).unwrap(), parts + more);
        // A fee payer besides who signs: here nobody else does, so it stands for the user.
        let paid = Instructions {
            fee_payer: Some(key(2).to_bytes()),
            ..body.clone()
        };
        assert_eq!(bytes(&paid, &key(1), &[]).unwrap(), parts);
        // A table takes its address, two counts and a byte for each account, which takes 32 no more.
        let table = AddressLookupTableAccount {
            key: key(50),
            addresses: (10..14).map(key).collect(),
        };
        let shorter = bytes(&body, &key(1), &[table]).unwrap();
        assert_eq!(shorter, parts - 4 * 32 + 32 + 2 + 4);
        // One that has none of them is left out.
        let other = AddressLookupTableAccount {
            key: key(50),
            addresses: vec![key(60)],
        };
        assert_eq!(bytes(&body, &key(1), &[other]).unwrap(), parts);
    }

    fn named(text: &Value) -> Pubkey {
        text.as_str().unwrap().parse().unwrap()
    }

    fn list(value: &Value) -> std::slice::Iter<'_, Value> {
        value.as_array().unwrap().iter()
    }

    fn instruction(shown: &Value) -> Instruction {
        let accounts = list(&shown["keys"]).map(|account| Account {
            key: named(&account["pubkey"]).to_bytes(),
            signs: account["isSigner"] == true,
            writable: account["isWritable"] == true,
        });
        Instruction {
            program: named(&shown["programId"]).to_bytes(),
            accounts: accounts.collect(),
            data: hex::decode(shown["data"].as_str().unwrap()).unwrap(),
        }
    }

    /// The driver of the published client has web3.js compile them again.
    #[test]
    fn transaction_is_as_long_as_the_published_client_makes_it() {
        let all: Value = serde_json::from_str(COMPILED).unwrap();
        let mut kinds = Vec::new();
        for one in list(&all) {
            let (user, payer) = (named(&one["user"]), named(&one["payer"]));
            let mut body = Instructions {
                list: list(&one["step"]["instructions"])
                    .map(instruction)
                    .collect(),
                fee_payer: (payer != user).then(|| payer.to_bytes()),
                ..Instructions::default()
            };
            body.work_limit = body.list[0].program == COMPUTE_BUDGET.to_bytes();
            body.list.drain(..usize::from(body.work_limit));
            let tables = list(&one["tables"]).map(|table| AddressLookupTableAccount {
                key: named(&table["key"]),
                addresses: list(&table["addresses"]).map(named).collect(),
            });
            let tables: Vec<_> = tables.collect();
            let bytes = bytes(&body, &user, &tables).unwrap();
            assert_eq!(one["bytes"], bytes, "{}", one["what"]);
            kinds.push((tables.len(), body.fee_payer.is_some(), body.work_limit));
        }
        let (plain, whole) = ((0, false, false), (3, true, true));
        assert!(kinds.contains(&plain) && kinds.contains(&whole));
    }

    #[test]
    fn exchange_leaves_wallets_their_room() {
        assert_eq!((MOST_BYTES, MOST_OF_EXCHANGE), (1_232, 1_172));
        let fits =
            |program: &Pubkey, bytes, most| fits(&of_bytes(program, bytes), &key(1), &[], most);
        let large = |bytes, most| Err(Unfit::Large { bytes, most });
        let usual = MOST_OF_EXCHANGE;
        assert_eq!(fits(&swap::PROGRAM, 1_172, usual), Ok(()));
        assert_eq!(fits(&swap::PROGRAM, 1_173, usual), large(1_173, 1_172));
        // As the operator has it.
        assert_eq!(fits(&swap::PROGRAM, 1_200, 1_200), Ok(()));
        assert_eq!(fits(&swap::PROGRAM, 1_201, 1_200), large(1_201, 1_200));
        // What no aggregator has made long.
        assert_eq!(fits(&key(9), 1_232, usual), Ok(()));
        assert_eq!(fits(&key(9), 1_233, usual), large(1_233, 1_232));
    }
}
