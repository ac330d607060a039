//! Deposits, decoded without a node.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use solana_pubkey::{Pubkey, pubkey};
use vm::{
    Transaction,
    solana::programs::{COMPUTE_BUDGET, SYSTEM, TOKEN, TOKEN_2022},
};

use super::build::{
    SIGNATURE, Tx, attempted, checked_transfer, decoded, deposit_native, deposit_token, key,
    program, system_transfer, token_transfer, vault, vault_tokens, wallet,
};
use crate::odd;

const WRAPPED: Pubkey = pubkey!("So11111111111111111111111111111111111111112");

fn id(byte: u8) -> String {
    format!("0x{}", format!("{byte:02x}").repeat(32))
}

fn one(amount: u64, index: u32, byte: u8) -> Result<Vec<(u64, u32, String)>, String> {
    Ok(vec![(amount, index, id(byte))])
}

fn refused(gain: u64, sum: u64) -> Result<Vec<(u64, u32, String)>, String> {
    Err(format!("The vault gained {gain} of the {sum} deposited"))
}

#[test]
fn a_deposit_is_what_the_instruction_says_if_the_vault_gained_it() {
    let user = key(1);
    let with = |gain: u64| {
        Tx::by(&[user])
            .depositing(user, 100, 9)
            .lamports(vault(), 50, 50 + gain)
    };
    for gain in [100, 101] {
        assert_eq!(with(gain).deposits(), one(100, 0, 9));
    }
    for gain in [0, 99] {
        assert_eq!(with(gain).deposits(), refused(gain, 100));
    }
    let drained = Tx::by(&[user])
        .depositing(user, 100, 9)
        .lamports(vault(), 500, 400);
    assert_eq!(drained.deposits(), refused(0, 100));
}

#[test]
fn the_depositor_is_whom_the_instruction_names() {
    let (user, other) = (key(1), key(2));
    let accounts = [key(0xdd), user, other, vault(), SYSTEM];
    let receipt = Tx::by(&[user])
        .with(program(), &accounts, deposit_native(5, 9))
        .lamports(vault(), 0, 5)
        .receipt();
    let deposit = &receipt.deposits.unwrap()[0];
    assert_eq!(deposit.depositor.text(), other.to_string());
    assert_eq!(deposit.currency.text(), SYSTEM.to_string());
    assert_eq!(deposit.depository.text(), program().to_string());
    assert!(!deposit.named_by_other);
    assert_eq!(receipt.sender.unwrap().text(), user.to_string());
    assert_eq!(receipt.block.time, 1_760_000_005);
}

/// Anybody can pay the fee, and anybody can deposit in another's name.
#[test]
fn a_deposit_is_its_depositors_own_if_the_depositor_is_its_instructions_sender() {
    let (user, other, mint) = (key(1), key(2), key(0x70));
    let given = |signers: &[Pubkey], sender: Pubkey| {
        let accounts = [key(0xdd), sender, user, vault(), SYSTEM];
        let native = Tx::by(signers)
            .with(program(), &accounts, deposit_native(5, 9))
            .lamports(vault(), 0, 5);
        let into = (vault_tokens(&mint, &TOKEN), vault());
        let accounts = [key(0xdd), sender, user, vault(), mint];
        let token = Tx::by(signers)
            .with(program(), &accounts, deposit_token(5, 9))
            .tokens(into, mint, Some(0), Some(5));
        [native, token].map(|tx| {
            let deposit = tx.receipt().deposits.unwrap().remove(0);
            assert_eq!(deposit.depositor.text(), user.to_string());
            deposit.by_depositor
        })
    };
    assert_eq!(given(&[user], user), [true; 2]);
    // Another pays the fee.
    assert_eq!(given(&[other, user], user), [true; 2]);
    // Another deposits in the user's name, who may even pay the fee.
    assert_eq!(given(&[other], other), [false; 2]);
    assert_eq!(given(&[user, other], other), [false; 2]);
}

#[test]
fn deposits_of_one_transaction_share_no_gain() {
    let user = key(1);
    let both = |gain: u64| {
        Tx::by(&[user])
            .depositing(user, 100, 8)
            .depositing(user, 100, 9)
            .lamports(vault(), 7, 7 + gain)
    };
    assert_eq!(both(100).deposits(), refused(100, 200));
    assert_eq!(both(199).deposits(), refused(199, 200));
    assert_eq!(
        both(200).deposits(),
        Ok(vec![(100, 0, id(8)), (100, 1, id(9))])
    );
}

#[test]
fn inner_instructions_stand_behind_all_of_the_message() {
    let (user, router) = (key(1), key(3));
    let accounts = [key(0xdd), user, user, vault(), SYSTEM];
    let tx = Tx::by(&[user])
        .with(router, &[user], vec![1])
        .inner(program(), &accounts, deposit_native(7, 9))
        .memo("hello", &[])
        .with(COMPUTE_BUDGET, &[], vec![3])
        .lamports(vault(), 0, 7);
    assert_eq!(tx.deposits(), one(7, 3, 9));
}

#[test]
fn look_alikes_deposit_nothing() {
    let user = key(1);
    let mut near = program().to_bytes();
    near[31] ^= 1;
    let accounts = [key(0xdd), user, user, vault(), SYSTEM];
    for other in [Pubkey::new_from_array(near), key(4), SYSTEM] {
        let top = Tx::by(&[user])
            .with(other, &accounts, deposit_native(7, 9))
            .lamports(vault(), 0, 7);
        let inner = Tx::by(&[user])
            .with(key(5), &[user], vec![1])
            .inner(other, &accounts, deposit_native(7, 9))
            .lamports(vault(), 0, 7);
        for tx in [top, inner] {
            assert_eq!(tx.deposits(), Ok(vec![]));
        }
    }
    // Other instructions of the depository, and rubbish.
    for data in [vec![], vec![1; 7], vec![1, 2, 3, 4, 5, 6, 7, 8, 9]] {
        let tx = Tx::by(&[user]).with(program(), &accounts, data);
        assert_eq!(tx.deposits(), Ok(vec![]));
    }
}

#[test]
fn deposits_that_are_none_are_refused() {
    let user = key(1);
    let into = |vault: Pubkey, data: Vec<u8>| {
        Tx::by(&[user])
            .with(program(), &[key(0xdd), user, user, vault, SYSTEM], data)
            .lamports(vault, 0, 1_000)
            .deposits()
            .unwrap_err()
    };
    let another = "Instruction 0 deposits into another vault";
    assert_eq!(into(key(6), deposit_native(7, 9)), another);
    let short = deposit_native(7, 9)[..47].to_vec();
    assert_eq!(into(vault(), short), "Instruction 0 is no whole deposit");
    // The native currency's address is no mint.
    let none = "Instruction 0 deposits no token";
    assert_eq!(into(vault(), deposit_token(7, 9)), none);
    let few = Tx::by(&[user]).with(program(), &[user, user], deposit_native(7, 9));
    assert_eq!(
        few.deposits().unwrap_err(),
        "Instruction 0 is no whole deposit"
    );
}

/// A deposit of `amount` of `mint`, of which `arrived` is in the vault's account at `tokens` afterwards.
fn of_token(tx: Tx, (mint, tokens): (Pubkey, Pubkey), amount: u64, arrived: Option<u64>) -> Tx {
    let (user, account) = (key(1), vault_tokens(&mint, &tokens));
    let (from, _) = wallet(user, mint);
    let accounts = [key(0xdd), user, user, vault(), mint, from, account, tokens];
    tx.with(program(), &accounts, deposit_token(amount, 9))
        .tokens((account, vault()), mint, Some(40), arrived)
}

#[test]
fn tokens_count_in_the_vaults_own_account() {
    let (user, mint) = (key(1), key(0x70));
    let by = || Tx::by(&[user]);
    let tx = of_token(by(), (mint, TOKEN), 100, Some(140));
    let receipt = tx.receipt();
    let deposit = &receipt.deposits.unwrap()[0];
    assert_eq!(deposit.currency.text(), mint.to_string());
    assert_eq!(tx.deposits(), one(100, 0, 9));
    for arrived in [None, Some(0_u64), Some(40), Some(139)] {
        let gain = arrived.unwrap_or(0).saturating_sub(40);
        let tx = of_token(by(), (mint, TOKEN), 100, arrived);
        assert_eq!(tx.deposits(), refused(gain, 100));
    }
    // What went to another account of the vault's, or to the attacker's own.
    for account in [wallet(key(2), mint), (key(8), vault())] {
        let tx = of_token(by(), (mint, TOKEN), 100, Some(40));
        let tx = tx.tokens(account, mint, None, Some(100));
        assert_eq!(tx.deposits(), refused(0, 100));
    }
    // Tokens of another mint.
    let tx = of_token(by(), (mint, TOKEN), 100, Some(40));
    let other = (vault_tokens(&key(0x71), &TOKEN), vault());
    let tx = tx.tokens(other, key(0x71), None, Some(100));
    assert_eq!(tx.deposits(), refused(0, 100));
}

#[test]
fn a_fee_of_token_2022_is_the_depositors() {
    let (user, mint) = (key(1), key(0x70));
    let by = || Tx::by(&[user]);
    let cases = [
        (140, one(100, 0, 9)),
        (200, one(100, 0, 9)),
        (139, one(99, 0, 9)),
        (41, one(1, 0, 9)),
        (40, refused(0, 100)),
    ];
    for (arrived, wanted) in cases {
        let tx = of_token(by(), (mint, TOKEN_2022), 100, Some(arrived));
        assert_eq!(tx.deposits(), wanted);
    }
    // Nobody can say whose the fee of two is.
    let accounts = [key(0xdd), user, user, vault(), mint];
    let two = of_token(by(), (mint, TOKEN_2022), 100, Some(239));
    let two = two.with(program(), &accounts, deposit_token(100, 8));
    assert_eq!(two.deposits(), refused(199, 200));
}

/// The data of a transfer of tokens that states its fee, which is one.
fn with_fee(amount: u64) -> Vec<u8> {
    let amount = amount.to_le_bytes();
    [&[26, 1][..], &amount, &[6], &1_u64.to_le_bytes()].concat()
}

/// With a withdrawal, for which the depository calls `tokens`, or the system program.
fn withdrawing(tx: Tx, tokens: Pubkey, accounts: &[Pubkey], data: Vec<u8>) -> Tx {
    let kind = vec![0xe9, 0x7e, 0xa0, 0xb8, 0xeb, 0xce, 0x1f, 0x77];
    tx.with(program(), &[key(0xdd), vault()], kind)
        .inner(tokens, accounts, data)
}

#[test]
fn a_deposit_beside_a_withdrawal_is_covered_by_what_came_in() {
    let user = key(1);
    let beside = |accounts: &[Pubkey], data: Vec<u8>, after: u64| {
        withdrawing(Tx::by(&[user]), SYSTEM, accounts, data)
            .depositing(user, 100, 9)
            .lamports(vault(), 500, after)
            .deposits()
    };
    let paid = |accounts: &[Pubkey], after| beside(accounts, system_transfer(100), after);
    assert_eq!(paid(&[vault(), user], 500), one(100, 1, 9));
    assert_eq!(paid(&[vault(), user], 499), refused(99, 100));
    assert_eq!(paid(&[vault(), user], 300), refused(0, 100));
    // What the vault pays to itself stays there, and what another pays does not leave it.
    assert_eq!(paid(&[vault(), vault()], 500), refused(0, 100));
    assert_eq!(paid(&[key(2), user], 500), refused(0, 100));
    // The vault signs no message.
    let signed = Tx::by(&[user])
        .with(SYSTEM, &[vault(), user], system_transfer(100))
        .depositing(user, 100, 9)
        .lamports(vault(), 500, 500);
    assert_eq!(signed.deposits(), refused(0, 100));
    // A transfer that cannot be read, and what is none.
    let unread = Err("What the vault paid out cannot be read".to_owned());
    let long = [system_transfer(100), vec![0; 300]].concat();
    for data in [long, system_transfer(100)[..9].to_vec()] {
        assert_eq!(beside(&[vault(), user], data, 600), unread);
    }
    let other = [&3_u32.to_le_bytes()[..], &[0; 9]].concat();
    assert_eq!(beside(&[vault(), user], other, 500), refused(0, 100));
}

/// What the vault paid out is no proof of what came in where the answer has no balance of it.
#[test]
fn a_withdrawal_covers_no_deposit_into_an_account_without_a_balance() {
    let (user, mint) = (key(1), key(0x70));
    let tx = Tx::by(&[user]).loaded(vault());
    let native = withdrawing(tx, SYSTEM, &[vault(), user], system_transfer(100));
    let mut shown = native.depositing(user, 100, 9).shown(&SIGNATURE, 5);
    for balances in ["preBalances", "postBalances"] {
        shown["meta"][balances].as_array_mut().unwrap().pop();
    }
    let Transaction::Succeeded(receipt) = decoded(shown).unwrap() else {
        panic!("it succeeded")
    };
    let why = receipt.deposits.unwrap_err().0;
    assert_eq!(why, "The vault gained 0 of the 100 deposited");
    let accounts = [vault_tokens(&mint, &TOKEN), wallet(user, mint).0, vault()];
    let tokens = withdrawing(Tx::by(&[user]), TOKEN, &accounts, token_transfer(100));
    let accounts = [key(0xdd), user, user, vault(), mint];
    let tokens = tokens.with(program(), &accounts, deposit_token(100, 9));
    assert_eq!(tokens.deposits(), refused(0, 100));
}

#[test]
fn a_deposit_of_tokens_beside_a_withdrawal_is_covered_by_what_came_in() {
    let (user, mint) = (key(1), key(0x70));
    let (to, _) = wallet(user, mint);
    for tokens in [TOKEN, TOKEN_2022] {
        let from = vault_tokens(&mint, &tokens);
        let checked = vec![from, mint, to, vault()];
        let mut cases = vec![
            (vec![from, to, vault()], token_transfer(60)),
            (checked.clone(), checked_transfer(60)),
        ];
        if tokens == TOKEN_2022 {
            cases.push((checked, with_fee(60)));
        }
        for (accounts, data) in cases {
            let with = |arrived| {
                let tx = of_token(Tx::by(&[user]), (mint, tokens), 100, Some(arrived));
                withdrawing(tx, tokens, &accounts, data.clone()).deposits()
            };
            assert_eq!(with(80), one(100, 0, 9));
            // One less is a fee, which only Token-2022 takes.
            let short = match tokens == TOKEN {
                true => refused(99, 100),
                false => one(99, 0, 9),
            };
            assert_eq!(with(79), short);
        }
    }
}

#[test]
fn nothing_but_what_the_vault_pays_out_itself_is_added_to_what_it_gained() {
    let (user, mint) = (key(1), key(0x70));
    let (to, _) = wallet(user, mint);
    let from = vault_tokens(&mint, &TOKEN);
    let second = (key(8), vault());
    let tx = || {
        let tx = of_token(Tx::by(&[user]), (mint, TOKEN), 100, Some(80));
        tx.tokens(second, mint, Some(0), Some(60))
    };
    let with = |by: Pubkey, accounts: &[Pubkey], data: Vec<u8>| {
        withdrawing(tx(), by, accounts, data).deposits()
    };
    let accounts = [from, mint, to, vault()];
    assert_eq!(with(TOKEN, &accounts, checked_transfer(60)), one(100, 0, 9));
    for accounts in [
        // To the account itself, and to another one of the vault.
        [from, mint, from, vault()],
        [from, mint, second.0, vault()],
        // On the word of a delegate.
        [from, mint, to, key(5)],
        // Out of other accounts.
        [second.0, mint, to, vault()],
        [vault_tokens(&key(0x71), &TOKEN), key(0x71), to, vault()],
    ] {
        assert_eq!(
            with(TOKEN, &accounts, checked_transfer(60)),
            refused(40, 100)
        );
    }
    // By other programs, and in the message.
    for other in [TOKEN_2022, SYSTEM, key(4)] {
        assert_eq!(
            with(other, &accounts, checked_transfer(60)),
            refused(40, 100)
        );
    }
    let signed = tx().with(TOKEN, &accounts, checked_transfer(60));
    assert_eq!(signed.deposits(), refused(40, 100));
    // Transfers that cannot be read, and what is none; a delegate's does not count either way.
    let long = [checked_transfer(60), vec![0; 300]].concat();
    let unread = Err("What the vault paid out cannot be read".to_owned());
    for data in [long.clone(), checked_transfer(60)[..8].to_vec()] {
        assert_eq!(with(TOKEN, &accounts, data), unread);
    }
    let approved = [&[4][..], &60_u64.to_le_bytes()].concat();
    assert_eq!(with(TOKEN, &accounts, approved), refused(40, 100));
    assert_eq!(
        with(TOKEN, &[from, mint, to, key(5)], long),
        refused(40, 100)
    );
}

/// Whoever may move the tokens of every account of a mint takes them from the vault: it is the depositor's loss.
#[test]
fn what_a_delegate_takes_from_the_vault_covers_no_deposit_of_token_2022() {
    let (user, mint) = (key(1), key(0x70));
    let from = vault_tokens(&mint, &TOKEN_2022);
    let accounts = [from, mint, wallet(user, mint).0, key(5)];
    let tx = of_token(Tx::by(&[user]), (mint, TOKEN_2022), 100, Some(80));
    let tx = withdrawing(tx, TOKEN_2022, &accounts, checked_transfer(60));
    assert_eq!(tx.deposits(), one(40, 0, 9));
}

#[test]
fn wrapped_lamports_are_tokens() {
    let user = key(1);
    let tx = of_token(Tx::by(&[user]), (WRAPPED, TOKEN), 100, Some(140));
    let receipt = tx.receipt();
    assert_eq!(
        receipt.deposits.unwrap()[0].currency.text(),
        WRAPPED.to_string()
    );
    // Lamports of the vault are not what a deposit of tokens brings.
    let none = of_token(Tx::by(&[user]), (WRAPPED, TOKEN), 100, Some(40));
    let none = none.lamports(vault(), 0, 1_000);
    assert_eq!(none.deposits(), refused(0, 100));
}

#[test]
fn failed_transactions_deposit_nothing_and_name_their_order() {
    let user = key(1);
    let tx = Tx::by(&[user])
        .depositing(user, 100, 9)
        .memo(&id(3), &[])
        .lamports(vault(), 0, 100)
        .failed();
    let Transaction::Failed(failure) = tx.decoded() else {
        panic!("it failed")
    };
    assert_eq!(failure.block.number, 5);
    assert_eq!(failure.references, vec![Arc::<str>::from(id(3))]);
}

#[test]
fn accounts_of_lookup_tables_are_the_transactions_own() {
    let user = key(1);
    let tx = Tx::by(&[user])
        .loaded(vault())
        .loaded(program())
        .depositing(user, 100, 9)
        .lamports(vault(), 50, 150);
    assert_eq!(tx.deposits(), one(100, 0, 9));
}

#[test]
fn a_transfer_to_the_vault_alone_is_a_deposit_without_an_order() {
    let user = key(1);
    let native = |to: Pubkey| Tx::by(&[user]).with(SYSTEM, &[user, to], system_transfer(100));
    let paid = native(vault())
        .with(COMPUTE_BUDGET, &[], vec![2])
        .lamports(vault(), 1, 101);
    assert_eq!(paid.deposits(), one(100, 0, 0));
    let deposit = paid.receipt().deposits.unwrap().remove(0);
    assert_eq!(deposit.depositor.text(), user.to_string());
    assert!(deposit.by_depositor);
    let short = native(vault()).lamports(vault(), 1, 100);
    assert_eq!(short.deposits(), refused(99, 100));
    let elsewhere = native(key(3)).lamports(vault(), 1, 101);
    let noted = paid.clone().memo("hi", &[]);
    let twice = paid
        .clone()
        .with(SYSTEM, &[user, vault()], system_transfer(1));
    let called = Tx::by(&[user])
        .with(key(4), &[], vec![])
        .inner(SYSTEM, &[user, vault()], system_transfer(100))
        .lamports(vault(), 1, 101);
    let broken = Tx::by(&[user]).with(SYSTEM, &[user, vault()], vec![2]);
    for tx in [elsewhere, noted, twice, called, broken] {
        assert_eq!(tx.deposits(), Ok(vec![]));
    }
}

#[test]
fn a_transfer_of_tokens_to_the_vaults_account_alone_is_one_too() {
    let (user, mint) = (key(1), key(0x70));
    let (from, _) = wallet(user, mint);
    let moved = |tokens: Pubkey, to: Pubkey, after: u64| {
        let plain = Tx::by(&[user]).with(tokens, &[from, to, user], token_transfer(100));
        let accounts = [from, mint, to, user];
        let checked = Tx::by(&[user]).with(tokens, &accounts, checked_transfer(100));
        [plain, checked].map(|tx| tx.tokens((to, vault()), mint, Some(5), Some(after)))
    };
    for tx in moved(TOKEN, vault_tokens(&mint, &TOKEN), 105) {
        assert_eq!(tx.deposits(), one(100, 0, 0));
        let deposit = tx.receipt().deposits.unwrap().remove(0);
        assert_eq!(deposit.depositor.text(), user.to_string());
        assert_eq!(deposit.currency.text(), mint.to_string());
    }
    for tx in moved(TOKEN, vault_tokens(&mint, &TOKEN), 104) {
        assert_eq!(tx.deposits(), refused(99, 100));
    }
    for tx in moved(TOKEN_2022, vault_tokens(&mint, &TOKEN_2022), 104) {
        assert_eq!(tx.deposits(), one(99, 0, 0));
    }
    // To other accounts of the vault's, and with the other program.
    let others = [
        moved(TOKEN, key(8), 105),
        moved(TOKEN_2022, vault_tokens(&mint, &TOKEN), 105),
    ];
    for tx in others.into_iter().flatten() {
        assert_eq!(tx.deposits(), Ok(vec![]));
    }
    // With a stated fee it is none: other oracles would not read it.
    let to = vault_tokens(&mint, &TOKEN_2022);
    let stated = Tx::by(&[user])
        .with(TOKEN_2022, &[from, mint, to, user], with_fee(100))
        .tokens((to, vault()), mint, Some(5), Some(104));
    assert_eq!(stated.deposits(), Ok(vec![]));
}

/// A transaction that deposits, withdraws, pays and names an order, with all the fields that are read.
fn busy() -> Value {
    let (user, mint) = (key(1), key(0x70));
    let tx = Tx::by(&[user]).loaded(key(0x71));
    let tx = of_token(tx, (mint, TOKEN), 100, Some(140))
        .memo(&id(3), &[user])
        .with(SYSTEM, &[user, key(0x71)], system_transfer(5));
    withdrawing(tx, SYSTEM, &[vault(), user], system_transfer(7))
        .depositing(user, 100, 8)
        .lamports(vault(), 500, 600)
        .shown(&SIGNATURE, 5)
}

#[test]
fn the_answer_in_which_values_are_made_odd_is_sound() {
    let Some(Transaction::Succeeded(receipt)) = attempted(&busy()) else {
        panic!("it is read")
    };
    assert_eq!(receipt.deposits.unwrap().len(), 2);
    assert_eq!(receipt.references, vec![Arc::<str>::from(id(3))]);
}

proptest! {
    #[test]
    fn an_odd_value_in_an_answer_never_panics(shown in odd::changed(busy())) {
        let _ = attempted(&shown);
    }

    #[test]
    fn no_more_is_credited_than_the_vault_gained(
        amounts in prop::collection::vec(prop_oneof![0..5_u64, any::<u64>()], 1..5),
        before in any::<u32>(),
        gain in prop_oneof![0..20_u64, any::<u32>().prop_map(u64::from)],
    ) {
        let user = key(1);
        let before = u64::from(before);
        let mut tx = Tx::by(&[user]);
        for amount in &amounts {
            tx = tx.depositing(user, *amount, 9);
        }
        let tx = tx.lamports(vault(), before, before + gain);
        let sum: u128 = amounts.iter().map(|amount| u128::from(*amount)).sum();
        match tx.deposits() {
            Ok(deposits) => {
                let credited: u128 = deposits.iter().map(|it| u128::from(it.0)).sum();
                prop_assert!(credited == sum && credited <= u128::from(gain));
                let indexes: Vec<u32> = deposits.iter().map(|it| it.1).collect();
                prop_assert!(indexes.windows(2).all(|two| two[0] < two[1]));
            }
            Err(_) => prop_assert!(sum > u128::from(gain)),
        }
    }
}
