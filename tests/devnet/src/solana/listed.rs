//! The tokens that are traded on a local chain besides its native currency.

use anyhow::Result;
use serde_json::{Value, json};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer as _;

use super::{Cluster, DECIMALS, LocalChain, TOKEN, TOKEN_2022, Token, compiled, failed, token};

/// Basis points of a transfer that the mint of Token-2022 keeps back.
const TRANSFER_FEE: u16 = 10;
/// What somebody is given of each token: a million.
const GIVEN: u64 = 1_000_000_000_000;

/// A token that is traded, at a dollar.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub token: Token,
    symbol: &'static str,
    name: &'static str,
    class: &'static str,
}

impl Listed {
    /// Its entry in the market file.
    pub fn entry(&self) -> Value {
        json!({
            "address": self.token.0.to_string(), "symbol": self.symbol, "name": self.name,
            "decimals": DECIMALS, "group": self.symbol.to_lowercase(), "class": self.class,
            "solver": true, "prices": [{"kind": "peg", "usd": "1"}],
        })
    }
}

impl LocalChain {
    /// Makes three tokens and lists them: a dollar of the older token program, one of Token-2022 whose transfers cost
    /// [`TRANSFER_FEE`], and one of Token-2022 whose transfers cost nothing. Each is in a block of its own.
    pub fn list(&mut self) -> Result<()> {
        let mint = |program, fee| self.cluster.mint(&self.allocator, program, fee);
        let tokens = vec![
            Listed {
                token: mint(TOKEN, 0)?,
                symbol: "USD",
                name: "Dollar",
                class: "stable",
            },
            Listed {
                token: mint(TOKEN_2022, TRANSFER_FEE)?,
                symbol: "TAX",
                name: "Taxed",
                class: "other",
            },
            Listed {
                token: mint(TOKEN_2022, 0)?,
                symbol: "NUSD",
                name: "Newer dollar",
                class: "stable",
            },
        ];
        self.tokens = tokens;
        Ok(())
    }

    /// A million of each listed token, out of nothing.
    pub fn give_tokens(&self, to: &Pubkey) -> Result<()> {
        let issuer = self.allocator.pubkey();
        for listed in &self.tokens {
            let gift = token::gift(&issuer, listed.token, to, GIVEN)?;
            self.cluster.change(&gift, &self.allocator)?;
        }
        Ok(())
    }
}

impl Cluster {
    /// Does what a transaction of `signer`'s would, in no block.
    fn change(&self, instructions: &[Instruction], signer: &Keypair) -> Result<()> {
        let mut done = Ok(());
        self.ledger.lock().change(|state| {
            // Else the second time would be the same transaction as the first.
            state.expire_blockhash();
            let recent = state.latest_blockhash();
            done = compiled(instructions, &[signer], &[], recent)
                .and_then(|one| state.send_transaction(one).map(drop).map_err(failed));
        });
        done
    }
}
