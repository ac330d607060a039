//! Whether an instruction is the exchange that was asked for: its kind, its arguments, and whose accounts it names. Pure.
//!
//! The places of the accounts are those of the aggregator's IDL (version 6). A kind whose places are not known here is
//! refused. An account that is left out is named by the program's own address.

use solana_pubkey::{Pubkey, pubkey};

use super::{
    super::{
        super::programs::{TOKEN_2022, TOKENS},
        body::{Account, Instruction},
    },
    PROGRAM,
    checked::Asked,
    plan::behind_steps,
};

/// The account by which the program signs its events.
const EVENTS: Pubkey = pubkey!("D8cy77BBepLMngZx6ZukaTff5hCt1HrWyKk3Hnd9oitf");

/// A kind of exchange with the places of its accounts. The token program comes first.
struct Kind {
    /// Anchor's discriminator: the first 8 bytes of sha256 of `global:` and the name.
    discriminator: [u8; 8],
    exact_input: bool,
    /// Bytes before the steps.
    head: usize,
    authority: usize,
    source: usize,
    output: usize,
    /// What comes out goes on to this account, where one is named.
    onward: Option<usize>,
    source_mint: Option<usize>,
    output_mint: usize,
    /// Who asked for the exchange may take a fee.
    fee: usize,
    token_2022: Option<usize>,
    /// Behind it comes the program itself.
    events: usize,
}

const KINDS: [Kind; 4] = [
    // route
    Kind {
        discriminator: [0xe5, 0x17, 0xcb, 0x97, 0x7a, 0xe3, 0xad, 0x2a],
        exact_input: true,
        head: 0,
        authority: 1,
        source: 2,
        output: 3,
        onward: Some(4),
        source_mint: None,
        output_mint: 5,
        fee: 6,
        token_2022: None,
        events: 7,
    },
    // shared_accounts_route
    Kind {
        discriminator: [0xc1, 0x20, 0x9b, 0x33, 0x41, 0xd6, 0x9c, 0x81],
        ..shared(true)
    },
    // exact_out_route
    Kind {
        discriminator: [0xd0, 0x33, 0xef, 0x97, 0x7b, 0x2b, 0xed, 0x5c],
        exact_input: false,
        head: 0,
        authority: 1,
        source: 2,
        output: 3,
        onward: Some(4),
        source_mint: Some(5),
        output_mint: 6,
        fee: 7,
        token_2022: Some(8),
        events: 9,
    },
    // shared_accounts_exact_out_route
    Kind {
        discriminator: [0xb0, 0xd1, 0x69, 0xa8, 0x9a, 0x7d, 0x45, 0x3e],
        ..shared(false)
    },
];

/// Through accounts of the program's.
const fn shared(exact_input: bool) -> Kind {
    Kind {
        discriminator: [0; 8],
        exact_input,
        head: 1,
        authority: 2,
        source: 3,
        output: 6,
        onward: None,
        source_mint: Some(7),
        output_mint: 8,
        fee: 9,
        token_2022: Some(10),
        events: 11,
    }
}

/// Whether it exchanges the user's tokens of the one mint for tokens of the other, for the user or the target, with the
/// amounts and the limit of the order, and nobody takes a fee.
pub fn is_asked(one: &Instruction, asked: &Asked) -> bool {
    let Some((discriminator, rest)) = one.data.split_first_chunk() else {
        return false;
    };
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|kind| kind.discriminator == *discriminator);
    let kind = kind.filter(|kind| kind.exact_input == asked.exact_input);
    let accounts: Vec<_> = one.accounts.iter().map(Account::key).collect();
    kind.is_some_and(|kind| {
        one.program == PROGRAM.to_bytes()
            && rest.get(kind.head..).and_then(behind_steps) == Some(&arguments(asked)[..])
            && signed(one, asked)
            && named(kind, &accounts, asked).unwrap_or_default()
    })
}

/// The last arguments: two amounts, the slippage, and the fee of whoever asked.
fn arguments(asked: &Asked) -> Vec<u8> {
    let [first, second] = match asked.exact_input {
        true => [asked.input, asked.output],
        false => [asked.output, asked.input],
    };
    let [first, second] = [first, second].map(u64::to_le_bytes);
    [&first[..], &second, &asked.slippage.to_le_bytes(), &[0]].concat()
}

/// Whether nobody but the user signs it. Whoever signs a transaction signs each instruction that names the account,
/// whatever the instruction says.
fn signed(one: &Instruction, asked: &Asked) -> bool {
    let foreign =
        |it: &Account| Some(it.key()) == asked.sponsor() || it.signs && it.key() != asked.user;
    !one.accounts.iter().any(foreign)
}

/// `None` where an account is missing.
fn named(kind: &Kind, accounts: &[Pubkey], asked: &Asked) -> Option<bool> {
    let at = |place: usize| accounts.get(place).copied();
    let optional = |place: Option<usize>| place.map_or(Some(PROGRAM), at);
    let (output, onward) = (at(kind.output)?, optional(kind.onward)?);
    let own = asked.owns(output, &asked.into);
    let comes_out = match asked.target {
        None => own && (onward == PROGRAM || asked.owns(onward, &asked.into)),
        Some(target) if onward == PROGRAM => output == target,
        Some(target) => onward == target && (own || output == target),
    };
    let mints = kind.source_mint.map_or(Some(asked.from), at)? == asked.from
        && at(kind.output_mint)? == asked.into;
    Some(
        TOKENS.contains(&at(0)?)
            && at(kind.authority)? == asked.user
            && asked.owns(at(kind.source)?, &asked.from)
            && comes_out
            && mints
            && at(kind.fee)? == PROGRAM
            && [PROGRAM, TOKEN_2022].contains(&optional(kind.token_2022)?)
            && at(kind.events)? == EVENTS
            && at(kind.events.checked_add(1)?)? == PROGRAM,
    )
}
