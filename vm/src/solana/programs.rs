//! The programs that decoding knows, and the addresses that are derived from them (guide: protocol 4.4). Pure.

use solana_pubkey::{Pubkey, pubkey};

pub const SYSTEM: Pubkey = pubkey!("11111111111111111111111111111111");
pub const TOKEN: Pubkey = pubkey!("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
pub const TOKEN_2022: Pubkey = pubkey!("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
pub const ASSOCIATED: Pubkey = pubkey!("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
pub const COMPUTE_BUDGET: Pubkey = pubkey!("ComputeBudget111111111111111111111111111111");
/// Asserts what accounts hold: wallets guard what their users sign by it.
pub const LIGHTHOUSE: Pubkey = pubkey!("L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95");
pub const MEMO: Pubkey = pubkey!("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");

/// Both token programs.
pub const TOKENS: [Pubkey; 2] = [TOKEN, TOKEN_2022];

/// The tokens of each that stand for lamports.
pub const WRAPPED: [Pubkey; 2] = [
    pubkey!("So11111111111111111111111111111111111111112"),
    pubkey!("9pan9bMn5HatX4EJdBwg9VgCa7Uz5HL8N1m5D3NdXejP"),
];

/// The account of `program` that has the depository's native currency, and owns its token accounts.
pub fn vault(program: &Pubkey) -> Option<Pubkey> {
    derived(&[b"vault"], program)
}

/// The account of `program` that says who may have money out of it.
pub fn state(program: &Pubkey) -> Option<Pubkey> {
    derived(&[b"relay_depository"], program)
}

/// The account of `program` that exists once the withdrawal `id` is executed.
pub fn used_request(program: &Pubkey, id: &[u8; 32]) -> Option<Pubkey> {
    derived(&[b"used_request", id], program)
}

/// The associated account of `owner` for the tokens of `mint`, which belong to the token program `program`.
pub fn associated(owner: &Pubkey, mint: &Pubkey, program: &Pubkey) -> Option<Pubkey> {
    derived(
        &[owner.as_ref(), program.as_ref(), mint.as_ref()],
        &ASSOCIATED,
    )
}

fn derived(seeds: &[&[u8]], program: &Pubkey) -> Option<Pubkey> {
    Pubkey::try_find_program_address(seeds, program).map(|(address, _)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_addresses_are_the_recorded_ones() {
        let program = pubkey!("99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2");
        let mint = pubkey!("Gj7Fu2s76Z7EJQLUHRUXKKJcso4e2wemZBPgE7Df5Vq6");
        let state = state(&program).unwrap();
        assert_eq!(
            state.to_string(),
            "Dodg2HifwU8rmaVVyMyUZDGTRbqAJTyVYxXPwcbNpBKc"
        );
        let vault = vault(&program).unwrap();
        assert_eq!(
            vault.to_string(),
            "7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ"
        );
        for (tokens, account) in [
            (TOKEN, "ENAR3qjrSuj1k1355ZEhPFTA3S7D34oVtoWApBcqYBsj"),
            (TOKEN_2022, "CEHcvajrYdzix6Ym8WHP8X9SuXgs6eR45wRRMtC3qQJS"),
        ] {
            let derived = associated(&vault, &mint, &tokens).unwrap();
            assert_eq!(derived.to_string(), account);
        }
    }
}
