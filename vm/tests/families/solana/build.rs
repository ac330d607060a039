//! Transactions as a node shows them, built from what they do.

use serde_json::{Value, json};
use solana_pubkey::Pubkey;
use vm::{
    B256, Block, Receipt, Transaction,
    solana::{
        decode::{Rules, decode, unnamed},
        executed::{Doubt, Executed},
        programs::{SYSTEM, TOKEN, associated},
        raw::RawTransaction,
    },
};

use super::node::{PROGRAM, spec};

/// The signature of all built transactions that name no other.
pub const SIGNATURE: [u8; 64] = [7; 64];

/// An account that is nobody else's.
pub fn key(name: u8) -> Pubkey {
    Pubkey::new_from_array([name; 32])
}

pub fn program() -> Pubkey {
    PROGRAM.parse().unwrap()
}

pub fn vault() -> Pubkey {
    vm::solana::programs::vault(&program()).unwrap()
}

/// The vault's account for the tokens of `mint`.
pub fn vault_tokens(mint: &Pubkey, tokens: &Pubkey) -> Pubkey {
    associated(&vault(), mint, tokens).unwrap()
}

/// The data of a deposit of the native currency.
pub fn deposit_native(amount: u64, id: u8) -> Vec<u8> {
    let kind = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
    [&kind[..], &amount.to_le_bytes(), &[id; 32]].concat()
}

/// The data of a deposit of tokens.
pub fn deposit_token(amount: u64, id: u8) -> Vec<u8> {
    let kind = [0x0b, 0x9c, 0x60, 0xda, 0x27, 0xa3, 0xb4, 0x13];
    [&kind[..], &amount.to_le_bytes(), &[id; 32]].concat()
}

/// The data of a transfer of lamports.
pub fn system_transfer(amount: u64) -> Vec<u8> {
    [&2_u32.to_le_bytes()[..], &amount.to_le_bytes()].concat()
}

/// The data of a transfer of tokens.
pub fn token_transfer(amount: u64) -> Vec<u8> {
    [&[3][..], &amount.to_le_bytes()].concat()
}

/// The data of a transfer of tokens that names them, with 6 decimals.
pub fn checked_transfer(amount: u64) -> Vec<u8> {
    [&[12][..], &amount.to_le_bytes(), &[6]].concat()
}

#[derive(Clone)]
struct Instruction {
    program: Pubkey,
    accounts: Vec<Pubkey>,
    data: Vec<u8>,
}

#[derive(Clone)]
struct Tokens {
    account: Pubkey,
    owner: Pubkey,
    mint: Pubkey,
    before: Option<u64>,
    after: Option<u64>,
}

/// A transaction that is being built. Whatever is named is an account of it.
#[derive(Clone)]
pub struct Tx {
    signers: usize,
    keys: Vec<Pubkey>,
    /// Accounts from lookup tables: they stand behind all others.
    loaded: Vec<Pubkey>,
    signed: Vec<Instruction>,
    inner: Vec<(usize, Instruction)>,
    lamports: Vec<(Pubkey, u64, u64)>,
    tokens: Vec<Tokens>,
    failed: bool,
}

impl Tx {
    /// Signed by `signers`, of whom the first pays the fee.
    pub fn by(signers: &[Pubkey]) -> Self {
        Self {
            signers: signers.len(),
            keys: signers.to_vec(),
            loaded: Vec::new(),
            signed: Vec::new(),
            inner: Vec::new(),
            lamports: vec![(signers[0], 1_000_000, 995_000)],
            tokens: Vec::new(),
            failed: false,
        }
    }

    /// With an instruction in the message.
    pub fn with(mut self, program: Pubkey, accounts: &[Pubkey], data: Vec<u8>) -> Self {
        let instruction = self.instruction(program, accounts, data);
        self.signed.push(instruction);
        self
    }

    /// With an instruction that the last one in the message caused.
    pub fn inner(mut self, program: Pubkey, accounts: &[Pubkey], data: Vec<u8>) -> Self {
        let instruction = self.instruction(program, accounts, data);
        self.inner.push((self.signed.len() - 1, instruction));
        self
    }

    /// With a memo that lists `signers`.
    pub fn memo(self, text: &str, signers: &[Pubkey]) -> Self {
        let program = vm::solana::programs::MEMO;
        self.with(program, signers, text.as_bytes().to_vec())
    }

    /// With an account from a lookup table; named before it is used.
    pub fn loaded(mut self, account: Pubkey) -> Self {
        self.loaded.push(account);
        self
    }

    /// With what an account has in lamports before and after.
    pub fn lamports(mut self, account: Pubkey, before: u64, after: u64) -> Self {
        self.know(account);
        self.lamports.retain(|(known, ..)| *known != account);
        self.lamports.push((account, before, after));
        self
    }

    /// With what a token account of `owner` holds of `mint`; `None` where there is no account.
    pub fn tokens(
        mut self,
        (account, owner): (Pubkey, Pubkey),
        mint: Pubkey,
        before: Option<u64>,
        after: Option<u64>,
    ) -> Self {
        self.know(account);
        self.tokens.push(Tokens {
            account,
            owner,
            mint,
            before,
            after,
        });
        self
    }

    pub fn failed(mut self) -> Self {
        self.failed = true;
        self
    }

    /// A deposit of the native currency by `depositor`, which the vault gains.
    pub fn depositing(self, depositor: Pubkey, amount: u64, id: u8) -> Self {
        let accounts = [key(0xdd), depositor, depositor, vault(), SYSTEM];
        self.with(program(), &accounts, deposit_native(amount, id))
    }

    /// The node's answer about it in the block of `slot`.
    pub fn shown(&self, signature: &[u8], slot: u64) -> Value {
        let keys: Vec<Pubkey> = self.keys.iter().chain(&self.loaded).copied().collect();
        let at = |key: &Pubkey| keys.iter().position(|known| known == key).unwrap();
        let shown = |one: &Instruction| {
            let accounts: Vec<usize> = one.accounts.iter().map(at).collect();
            let data = bs58::encode(&one.data).into_string();
            json!({"programIdIndex": at(&one.program), "accounts": accounts, "data": data, "stackHeight": null})
        };
        let inner = (0..self.signed.len()).filter_map(|index| {
            let caused = self.inner.iter().filter(|(by, _)| *by == index);
            let caused: Vec<Value> = caused.map(|(_, one)| shown(one)).collect();
            (!caused.is_empty()).then(|| json!({"index": index, "instructions": caused}))
        });
        let lamports = |after: bool| -> Vec<u64> {
            let of = |key: &Pubkey| {
                let mut known = self.lamports.iter().filter(|(known, ..)| known == key);
                let known = known.next().map(|it| if after { it.2 } else { it.1 });
                known.unwrap_or(2_039_280)
            };
            keys.iter().map(of).collect()
        };
        let held = |after: bool| -> Vec<Value> {
            let shown = |held: &Tokens| {
                let amount = match after {
                    true => held.after,
                    false => held.before,
                }?;
                let amount = json!({"amount": amount.to_string(), "decimals": 6});
                let (mint, owner) = (held.mint.to_string(), held.owner.to_string());
                let account = at(&held.account);
                Some(
                    json!({"accountIndex": account, "mint": mint, "owner": owner, "uiTokenAmount": amount}),
                )
            };
            self.tokens.iter().filter_map(shown).collect()
        };
        let text = |keys: &[Pubkey]| keys.iter().map(Pubkey::to_string).collect::<Vec<_>>();
        let signatures = vec![bs58::encode(signature).into_string(); self.signers];
        let err = self
            .failed
            .then(|| json!({"InstructionError": [0, {"Custom": 1}]}));
        json!({
            "slot": slot, "blockTime": 1_760_000_000 + slot, "version": 0,
            "meta": {
                "err": err, "fee": 5000, "preBalances": lamports(false), "postBalances": lamports(true),
                "innerInstructions": inner.collect::<Vec<_>>(), "preTokenBalances": held(false),
                "postTokenBalances": held(true),
                "loadedAddresses": {"writable": text(&self.loaded), "readonly": []},
            },
            "transaction": {
                "signatures": signatures,
                "message": {
                    "header": {"numRequiredSignatures": self.signers}, "accountKeys": text(&self.keys),
                    "instructions": self.signed.iter().map(shown).collect::<Vec<_>>(),
                },
            },
        })
    }

    /// What is made of it.
    pub fn decoded(&self) -> Transaction {
        decoded(self.shown(&SIGNATURE, 5)).unwrap()
    }

    pub fn receipt(&self) -> Receipt {
        match self.decoded() {
            Transaction::Succeeded(receipt) => receipt,
            other => panic!("{other:?}"),
        }
    }

    /// Amount, index and id of each deposit, or why there is none.
    pub fn deposits(&self) -> Result<Vec<(u64, u32, String)>, String> {
        let deposits = self.receipt().deposits.map_err(|why| why.0)?;
        let said = deposits.iter().map(|deposit| {
            let amount = u64::try_from(deposit.amount).unwrap();
            (amount, deposit.index, deposit.id.to_string())
        });
        Ok(said.collect())
    }

    fn instruction(&mut self, program: Pubkey, accounts: &[Pubkey], data: Vec<u8>) -> Instruction {
        accounts.iter().for_each(|account| self.know(*account));
        self.know(program);
        Instruction {
            program,
            accounts: accounts.to_vec(),
            data,
        }
    }

    fn know(&mut self, account: Pubkey) {
        if !self.keys.contains(&account) && !self.loaded.contains(&account) {
            self.keys.push(account);
        }
    }
}

/// What is made of an answer about [`SIGNATURE`].
pub fn decoded(shown: Value) -> Result<Transaction, Doubt> {
    let raw: RawTransaction = serde_json::from_value(shown).unwrap();
    let executed = Executed::join(&SIGNATURE, raw)?;
    let rules = Rules::new(&spec(json!({}))).unwrap();
    assert_eq!(unnamed(&rules, &executed), None);
    Ok(decode(&rules, &executed, block(), None))
}

/// What is made of whatever a node answers about [`SIGNATURE`]; `None` where nothing is.
pub fn attempted(shown: &Value) -> Option<Transaction> {
    let raw: RawTransaction = serde_json::from_str(&shown.to_string()).ok()?;
    let executed = Executed::join(&SIGNATURE, raw).ok()?;
    let rules = Rules::new(&spec(json!({}))).unwrap();
    let mint = unnamed(&rules, &executed).map(|_| key(0x70));
    Some(decode(&rules, &executed, block(), mint))
}

fn block() -> Block {
    Block {
        number: 5,
        hash: B256::repeat_byte(5),
        parent: B256::repeat_byte(4),
        time: 1_760_000_005,
    }
}

/// A token account of `owner`.
pub fn wallet(owner: Pubkey, mint: Pubkey) -> (Pubkey, Pubkey) {
    (associated(&owner, &mint, &TOKEN).unwrap(), owner)
}
