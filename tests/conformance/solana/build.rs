//! Transactions of `solana-vm`, built from what they do.

use alloy::primitives::B256;
use serde_json::{Value, json};

use super::{MEMO, base58};

/// One instruction, which names accounts by their addresses.
#[derive(Clone)]
pub struct Instruction {
    program: String,
    pub accounts: Vec<String>,
    pub data: Vec<u8>,
}

pub fn instruction(program: &str, accounts: &[&str], data: Vec<u8>) -> Instruction {
    Instruction {
        program: program.into(),
        accounts: accounts.iter().map(|one| (*one).to_owned()).collect(),
        data,
    }
}

/// What a token account holds before and after.
#[derive(Clone)]
struct Held {
    account: String,
    owner: String,
    mint: String,
    before: u64,
    /// `None`: it is closed.
    after: Option<u64>,
}

/// A transaction that is being built; whatever is named is an account of it.
#[derive(Clone, Default)]
pub struct Builder {
    pub signers: Vec<String>,
    /// By a lookup table.
    pub loaded: Vec<String>,
    pub signed: Vec<Instruction>,
    /// Those that the first instruction causes.
    inner: Vec<Instruction>,
    lamports: Vec<(String, u64, u64)>,
    tokens: Vec<Held>,
}

impl Builder {
    /// Signed by these accounts, of which the first pays the fee.
    pub fn by(signers: &[&str]) -> Self {
        Self {
            signers: signers.iter().map(|one| (*one).to_owned()).collect(),
            lamports: vec![(signers[0].to_owned(), 9_000_000, 8_995_000)],
            ..Self::default()
        }
    }

    pub fn with(mut self, instruction: Instruction) -> Self {
        self.signed.push(instruction);
        self
    }

    pub fn inner(mut self, instruction: Instruction) -> Self {
        self.inner.push(instruction);
        self
    }

    pub fn memo(self, text: &str) -> Self {
        self.with(instruction(MEMO, &[], text.as_bytes().to_vec()))
    }

    /// The account gains lamports.
    pub fn gains(mut self, account: &str, amount: u64) -> Self {
        self.lamports.push((account.to_owned(), 0, amount));
        self
    }

    /// The token account of `owner` gains tokens.
    pub fn gains_tokens(mut self, (account, owner): (&str, &str), mint: &str, amount: u64) -> Self {
        self.tokens.push(Held {
            account: account.into(),
            owner: owner.into(),
            mint: mint.into(),
            before: 5,
            after: Some(5 + amount),
        });
        self
    }

    /// The token account of `owner` is closed.
    pub fn closes(mut self, (account, owner): (&str, &str), mint: &str) -> Self {
        self.tokens.push(Held {
            account: account.into(),
            owner: owner.into(),
            mint: mint.into(),
            before: 5,
            after: None,
        });
        self
    }

    /// The account loses all its lamports.
    pub fn empties(mut self, account: &str) -> Self {
        self.lamports.push((account.to_owned(), 5_000_000, 0));
        self
    }

    /// All accounts in their order: signers, those of the message, those by a table.
    fn keys(&self) -> Vec<String> {
        let mut keys = self.signers.clone();
        let steps = self.signed.iter().chain(&self.inner);
        let named = steps.flat_map(|step| step.accounts.iter().chain([&step.program]));
        let held = self.tokens.iter().map(|held| &held.account);
        let rich = self.lamports.iter().map(|(account, ..)| account);
        for key in named.chain(held).chain(rich) {
            if !keys.contains(key) && !self.loaded.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    /// What a node shows of it, but for its id, its slot and its time.
    pub fn body(&self, order: B256) -> Value {
        let own = self.keys();
        let keys: Vec<_> = own.iter().chain(&self.loaded).collect();
        let at = |key: &String| keys.iter().position(|known| *known == key).unwrap();
        let shown = |step: &Instruction| {
            let accounts: Vec<_> = step.accounts.iter().map(at).collect();
            json!({
                "programIdIndex": at(&step.program), "accounts": accounts, "data": base58(&step.data),
                "stackHeight": null,
            })
        };
        let lamports = |after: bool| -> Vec<u64> {
            let of = |key: &&String| {
                let known = self.lamports.iter().find(|(account, ..)| account == *key);
                known.map_or(2_039_280, |(_, was, is)| if after { *is } else { *was })
            };
            keys.iter().map(of).collect()
        };
        let held = |after: bool| -> Vec<Value> {
            let shown = |held: &Held| {
                let amount = if after { held.after? } else { held.before };
                Some(json!({
                    "accountIndex": at(&held.account), "mint": held.mint, "owner": held.owner,
                    "uiTokenAmount": {"amount": amount.to_string(), "decimals": 6},
                }))
            };
            self.tokens.iter().filter_map(shown).collect()
        };
        let signed: Vec<_> = self.signed.iter().map(shown).collect();
        let inner: Vec<_> = self.inner.iter().map(shown).collect();
        let inner = match inner.is_empty() {
            true => json!([]),
            false => json!([{"index": 0, "instructions": inner}]),
        };
        json!({
            "order": order, "version": 0,
            "meta": {
                "err": null, "fee": 5000, "preBalances": lamports(false), "postBalances": lamports(true),
                "innerInstructions": inner, "preTokenBalances": held(false),
                "postTokenBalances": held(true),
                "loadedAddresses": {"writable": self.loaded, "readonly": []},
            },
            "transaction": {"message": {
                "header": {"numRequiredSignatures": self.signers.len()}, "accountKeys": own,
                "instructions": signed,
            }},
        })
    }
}
