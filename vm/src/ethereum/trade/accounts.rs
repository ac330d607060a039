//! Balances, currencies, allowances, nonces and calls at one node's head.

use std::sync::Arc;

use alloy::sol_types::{SolCall, SolValue};
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    ReadError,
    ethereum::{
        abi::Token,
        address::account,
        raw::Quantity,
        revert::printable,
        rpc::{self, Answer, Rpc, doubt, expect},
        rpc_error,
    },
    trade::{self, Call, Called, CurrencyInfo, Revert},
    types::{Address, Amount, Bytes, EvmAddress, U256},
};

/// Characters of a symbol or a name.
const MAX_TEXT: usize = 64;
/// Calls in a round trip: what most providers take as a batch.
const BATCH: usize = 16;
/// Gas of each of several calls: nodes run a batch one after the other, and one that burns whatever it
/// is given must not take the others' time.
const CALL_GAS: u64 = 12_000_000;

/// Reads balances, currencies, allowances, nonces and calls at one node's head.
pub struct Accounts(pub Arc<Rpc>);

#[async_trait]
impl trade::Accounts for Accounts {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        let owner = account(owner)?;
        let token = account(currency)?;
        if token.is_zero() {
            let held = rpc::call("eth_getBalance", json!([owner, "latest"]));
            let held: Quantity = expect("eth_getBalance", self.0.one(held).await?)?;
            return Ok(held.0);
        }
        let call = view(token, &Token::balanceOfCall { owner });
        amount("balanceOf", self.0.one(call).await?)
    }

    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        let token = account(address)?;
        let calls = vec![
            code(token),
            view(token, &Token::decimalsCall {}),
            view(token, &Token::symbolCall {}),
            view(token, &Token::nameCall {}),
        ];
        let [code, decimals, symbol, name] = <[Answer; 4]>::try_from(self.0.round(calls).await?)
            .map_err(|_| doubt("an answer is missing"))?;
        let code: Bytes = expect("eth_getCode", code)?;
        // Without decimals its amounts mean nothing: whatever it is, it is no currency.
        let decimals = said(decimals)?
            .and_then(|answer| word(&answer))
            .and_then(|decimals| u8::try_from(decimals).ok());
        let Some(decimals) = decimals.filter(|_| !code.is_empty()) else {
            return Ok(None);
        };
        let symbol = said(symbol)?.and_then(|answer| text(&answer));
        let name = said(name)?.and_then(|answer| text(&answer));
        Ok(Some(CurrencyInfo {
            symbol: symbol.clone().or(name.clone()).unwrap_or_default(),
            name: name.or(symbol).unwrap_or_default(),
            decimals,
            scaled: false,
        }))
    }
}

#[async_trait]
impl trade::Contracts for Accounts {
    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        let (owner, spender) = (account(owner)?, account(spender)?);
        let token = account(currency)?;
        if token.is_zero() {
            return Ok(Amount::MAX);
        }
        let call = view(token, &Token::allowanceCall { owner, spender });
        amount("allowance", self.0.one(call).await?)
    }

    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError> {
        let answer = self.0.one(code(account(address)?)).await?;
        let found: Bytes = expect("eth_getCode", answer)?;
        Ok(!found.is_empty())
    }

    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        let capped = calls.len() > 1;
        if let Err(error) = self.0.admit(calls.len()) {
            return vec![Err(error); calls.len()];
        }
        let rounds = calls.chunks(BATCH).map(|calls| self.round(calls, capped));
        join_all(rounds).await.into_iter().flatten().collect()
    }
    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        let tag = if waiting { "pending" } else { "latest" };
        let params = json!([account(owner)?, tag]);
        let answer = self.0.one(rpc::call("eth_getTransactionCount", params));
        let count: Quantity = expect("eth_getTransactionCount", answer.await?)?;
        count.small().ok_or_else(|| doubt("nonce out of range"))
    }
}

impl Accounts {
    /// Calls that leave together.
    async fn round(&self, calls: &[Call], capped: bool) -> Vec<Called> {
        let asked = calls.iter().map(|call| {
            let mut call = request(call)?;
            if capped {
                call["gas"] = json!(U256::from(CALL_GAS));
            }
            Ok(rpc::call("eth_call", json!([call, "latest"])))
        });
        let answers = match asked.collect::<Result<Vec<_>, ReadError>>() {
            Ok(asked) => self.0.admitted(asked).await,
            Err(error) => Err(error),
        };
        match answers {
            Ok(answers) => {
                let answers = answers.into_iter();
                answers.map(|answer| outcome("eth_call", answer)).collect()
            }
            Err(error) => vec![Err(error); calls.len()],
        }
    }
}

/// A call as `eth_call` and `eth_estimateGas` want it, at no price.
pub fn request(call: &Call) -> Result<Value, ReadError> {
    Ok(json!({
        "from": account(&call.from)?,
        "to": account(&call.to)?,
        "data": call.data,
        "value": call.value,
    }))
}

/// An answer, or the revert that it reports.
pub fn outcome<T: serde::de::DeserializeOwned>(
    what: &str,
    answer: Answer,
) -> Result<Result<T, Revert>, ReadError> {
    if let Err(refused) = &answer
        && let Some(revert) = rpc_error::reverted(refused)
    {
        return Ok(Err(revert));
    }
    expect(what, answer).map(Ok)
}

fn code(at: EvmAddress) -> rpc::Call {
    rpc::call("eth_getCode", json!([at, "latest"]))
}

fn view(to: EvmAddress, call: &impl SolCall) -> rpc::Call {
    let data = Bytes::from(call.abi_encode());
    rpc::call("eth_call", json!([{"to": to, "data": data}, "latest"]))
}

/// What a view answered; `None` when it reverted.
fn said(answer: Answer) -> Result<Option<Bytes>, ReadError> {
    outcome("eth_call", answer).map(Result::ok)
}

fn amount(what: &str, answer: Answer) -> Result<Amount, ReadError> {
    let answer = outcome::<Bytes>(what, answer)?
        .map_err(|revert| ReadError::Unavailable(format!("{what} reverted: {}", revert.reason)))?;
    word(&answer).ok_or_else(|| ReadError::Unavailable(format!("{what} answered no number")))
}

/// The first word: Solidity ignores what stands behind it.
fn word(answer: &[u8]) -> Option<U256> {
    answer
        .first_chunk::<32>()
        .map(|word| U256::from_be_bytes(*word))
}

/// A string, or the `bytes32` of tokens from before there was a standard. A stranger's text: control
/// characters are left out, and it is cut.
fn text(answer: &[u8]) -> Option<String> {
    let said = match <[u8; 32]>::try_from(answer) {
        Ok(word) => {
            let end = word.iter().position(|byte| *byte == 0).unwrap_or(32);
            String::from_utf8_lossy(&word[..end]).into_owned()
        }
        Err(_) => String::abi_decode(answer).ok()?,
    };
    let said: String = printable(&said).chars().take(MAX_TEXT).collect();
    (!said.is_empty()).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_old_and_new_tokens() {
        let mut old = [0; 32];
        old[..3].copy_from_slice(b"MKR");
        for (answer, said) in [
            ("USDC".abi_encode(), Some("USDC")),
            (old.to_vec(), Some("MKR")),
            (
                [b'x'; 32].to_vec(),
                Some("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            ),
            ("a\u{7}b".abi_encode(), Some("ab")),
            ("".abi_encode(), None),
            (vec![0; 32], None),
            (Vec::new(), None),
            (vec![0xff; 64], None),
            ("USDC".abi_encode()[..64].to_vec(), None),
        ] {
            assert_eq!(text(&answer).as_deref(), said);
        }
        let long = "é".repeat(5000).abi_encode();
        assert_eq!(text(&long).map(|text| text.chars().count()), Some(MAX_TEXT));
    }

    #[test]
    fn numbers_are_whole_words() {
        assert_eq!(
            word(&U256::from(7).to_be_bytes::<32>()),
            Some(U256::from(7))
        );
        assert_eq!(word(&[7; 31]), None);
        assert_eq!(word(&[]), None);
    }
}
