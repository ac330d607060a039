//! Payments and the orders that a transaction names, decoded without a node.

use solana_pubkey::{Pubkey, pubkey};
use vm::{
    PaymentKind, Receipt,
    solana::programs::{ASSOCIATED, SYSTEM, TOKEN, TOKEN_2022},
};

use super::build::{
    Tx, checked_transfer, key, program, system_transfer, token_transfer, vault, wallet,
};

const SOLVER: u8 = 1;
const USER: u8 = 2;
const STRANGER: u8 = 3;
const WRAPPED: Pubkey = pubkey!("So11111111111111111111111111111111111111112");

fn mint() -> Pubkey {
    key(0x70)
}

fn id(byte: u8) -> String {
    format!("0x{}", format!("{byte:02x}").repeat(32))
}

fn by_solver() -> Tx {
    Tx::by(&[key(SOLVER)]).lamports(key(SOLVER), 10_000, 4_000)
}

/// What `recipient` is paid of `currency`.
fn paid(receipt: &Receipt, recipient: u8, currency: &Pubkey) -> u64 {
    let to = receipt.payments.iter().filter(|payment| {
        assert_eq!(payment.kind, PaymentKind::Transfer);
        payment.recipient.text() == key(recipient).to_string()
            && payment.currency.text() == currency.to_string()
    });
    to.map(|payment| u64::try_from(payment.amount).unwrap())
        .sum()
}

fn names(tx: &Tx) -> Vec<String> {
    let receipt = tx.receipt();
    receipt.references.iter().map(|id| id.to_string()).collect()
}

#[test]
fn a_fill_is_what_its_recipient_gained() {
    let tx = by_solver()
        .with(SYSTEM, &[key(SOLVER), key(USER)], system_transfer(1_000))
        .memo(&format!("relay {} ok", id(9)), &[])
        .lamports(key(USER), 5, 1_005);
    let receipt = tx.receipt();
    assert_eq!(paid(&receipt, USER, &SYSTEM), 1_000);
    assert_eq!(receipt.payments.len(), 1);
    assert_eq!(receipt.sender.unwrap().text(), key(SOLVER).to_string());
    assert_eq!(names(&tx), [id(9)]);
    // Less arrived than the instruction says.
    let less = tx.clone().lamports(key(USER), 5, 105);
    assert_eq!(paid(&less.receipt(), USER, &SYSTEM), 100);
    let none = tx.lamports(key(USER), 2_000, 1_005);
    assert!(none.receipt().payments.is_empty());
}

#[test]
fn tokens_of_all_accounts_of_a_recipient_count_together() {
    let tx = by_solver()
        .tokens(wallet(key(SOLVER), mint()), mint(), Some(900), Some(100))
        .tokens(wallet(key(USER), mint()), mint(), Some(10), Some(510))
        .tokens((key(8), key(USER)), mint(), None, Some(300));
    assert_eq!(paid(&tx.receipt(), USER, &mint()), 800);
    // From one own account to another.
    let own = by_solver()
        .tokens(wallet(key(USER), mint()), mint(), Some(500), Some(0))
        .tokens((key(8), key(USER)), mint(), None, Some(500));
    assert_eq!(paid(&own.receipt(), USER, &mint()), 0);
    // An account that is closed again keeps nothing.
    let closed = by_solver()
        .tokens(wallet(key(USER), mint()), mint(), Some(500), None)
        .tokens((key(8), key(USER)), mint(), None, Some(20));
    assert_eq!(paid(&closed.receipt(), USER, &mint()), 0);
    // A token at the address of the native currency is nobody's lamports.
    let fake = by_solver().tokens((key(8), key(USER)), SYSTEM, None, Some(300));
    assert_eq!(paid(&fake.receipt(), USER, &SYSTEM), 0);
}

#[test]
fn a_recipients_new_account_may_be_made_meanwhile() {
    let (from, to) = (wallet(key(SOLVER), mint()), wallet(key(USER), mint()));
    let tx = by_solver()
        .with(ASSOCIATED, &[key(SOLVER), to.0, key(USER)], vec![1])
        .inner(TOKEN, &[mint()], vec![21])
        .inner(SYSTEM, &[key(SOLVER), to.0], vec![0; 52])
        .inner(TOKEN, &[to.0], vec![22])
        .inner(TOKEN, &[to.0, mint()], [&[18][..], &[2; 32]].concat())
        .with(TOKEN, &[from.0, to.0, key(SOLVER)], token_transfer(500))
        .memo(&id(9), &[key(SOLVER)])
        .tokens(from, mint(), Some(900), Some(400))
        .tokens(to, mint(), None, Some(500));
    assert_eq!(paid(&tx.receipt(), USER, &mint()), 500);
    assert_eq!(names(&tx), [id(9)]);
}

/// A program of somebody's pays the user what is the user's, and the attacker puts an order's id beside it.
#[test]
fn strangers_payouts_pay_no_order() {
    let native = by_solver()
        .with(key(0x50), &[key(USER), key(STRANGER)], vec![1])
        .memo(&id(9), &[])
        .lamports(key(STRANGER), 9_000, 8_000)
        .lamports(key(USER), 0, 1_000);
    assert!(native.receipt().payments.is_empty());
    let (from, to) = (wallet(key(STRANGER), mint()), wallet(key(USER), mint()));
    let accounts = [from.0, to.0, key(STRANGER)];
    let tokens = by_solver()
        .with(key(0x50), &accounts, vec![1])
        .inner(TOKEN, &accounts, token_transfer(500))
        .memo(&id(9), &[])
        .tokens(from, mint(), Some(900), Some(400))
        .tokens(to, mint(), Some(0), Some(500));
    assert!(tokens.receipt().payments.is_empty());
    // Tokens that a program mints are nobody's gift.
    let minted = by_solver()
        .with(key(0x50), &[to.0], vec![1])
        .inner(
            TOKEN,
            &[mint(), to.0, key(0x51)],
            [&[7][..], &500_u64.to_le_bytes()].concat(),
        )
        .tokens(to, mint(), Some(0), Some(500));
    assert!(minted.receipt().payments.is_empty());
    // Nor those that a signer mints.
    for kind in [7, 14] {
        let data = [&[kind][..], &500_u64.to_le_bytes(), &[6]].concat();
        let minted = by_solver()
            .with(TOKEN, &[mint(), to.0, key(SOLVER)], data)
            .memo(&id(9), &[])
            .tokens(to, mint(), Some(0), Some(500));
        assert!(minted.receipt().payments.is_empty(), "{kind}");
    }
    // A withdrawal from the depository is its recipient's own money.
    let withdrawn = by_solver()
        .with(program(), &[vault(), key(USER)], vec![0xe9])
        .memo(&id(9), &[])
        .lamports(vault(), 9_000, 8_000)
        .lamports(key(USER), 0, 1_000);
    assert!(withdrawn.receipt().payments.is_empty());
}

#[test]
fn beside_other_programs_only_what_signers_gave_counts() {
    let (from, to) = (wallet(key(SOLVER), mint()), wallet(key(USER), mint()));
    let swap = |tx: Tx| tx.with(key(0x50), &[key(SOLVER)], vec![1]);
    let accounts = [from.0, mint(), to.0, key(SOLVER)];
    let tx = swap(by_solver())
        .with(TOKEN, &accounts, checked_transfer(300))
        .tokens(from, mint(), Some(0), Some(50))
        .tokens(to, mint(), Some(0), Some(500));
    assert_eq!(paid(&tx.receipt(), USER, &mint()), 300);
    // No more than what was gained.
    let less = tx
        .clone()
        .tokens((key(8), key(USER)), mint(), Some(400), None);
    assert_eq!(paid(&less.receipt(), USER, &mint()), 100);
    // A program may move what the signer gave it the word for.
    let inner = swap(by_solver())
        .inner(TOKEN_2022, &accounts, checked_transfer(300))
        .tokens(from, mint(), Some(300), None)
        .tokens(to, mint(), None, Some(290));
    assert_eq!(paid(&inner.receipt(), USER, &mint()), 290);
    // The signer is only the delegate of a stranger's account.
    let delegate = swap(by_solver())
        .with(TOKEN, &[key(8), to.0, key(SOLVER)], token_transfer(300))
        .tokens((key(8), key(STRANGER)), mint(), Some(300), Some(0))
        .tokens(to, mint(), Some(0), Some(300));
    assert!(delegate.receipt().payments.is_empty());
    let native = swap(by_solver())
        .with(SYSTEM, &[key(SOLVER), key(USER)], system_transfer(700))
        .lamports(key(USER), 0, 1_000);
    assert_eq!(paid(&native.receipt(), USER, &SYSTEM), 700);
}

/// Anybody may have lamports that a token account got earlier turned into tokens.
#[test]
fn synced_lamports_are_no_payment() {
    let to = wallet(key(USER), WRAPPED);
    let synced = by_solver()
        .with(TOKEN, &[to.0], vec![17])
        .memo(&id(9), &[])
        .tokens(to, WRAPPED, Some(0), Some(500));
    assert!(synced.receipt().payments.is_empty());
    let from = wallet(key(SOLVER), WRAPPED);
    let sent = by_solver()
        .with(TOKEN, &[from.0], vec![17])
        .with(TOKEN, &[from.0, to.0, key(SOLVER)], token_transfer(500))
        .tokens(from, WRAPPED, Some(100), Some(0))
        .tokens(to, WRAPPED, Some(0), Some(500));
    assert_eq!(paid(&sent.receipt(), USER, &WRAPPED), 500);
}

/// Whoever makes an account of wrapped lamports makes tokens of those that stand at its address already.
#[test]
fn lamports_that_stood_at_a_new_account_are_no_payment() {
    let rent = 2_039_280;
    let (from, to) = (wallet(key(SOLVER), WRAPPED), wallet(key(USER), WRAPPED));
    let made = |earlier: u64, sent: u64, amount: u64| {
        let tx = by_solver()
            .with(ASSOCIATED, &[key(SOLVER), to.0, key(USER)], vec![1])
            .inner(TOKEN, &[to.0, WRAPPED], [&[18][..], &[USER; 32]].concat())
            .with(TOKEN, &[from.0, to.0, key(SOLVER)], token_transfer(sent))
            .memo(&id(9), &[])
            .lamports(to.0, earlier, rent + amount)
            .tokens(from, WRAPPED, Some(5_000), Some(5_000 - sent))
            .tokens(to, WRAPPED, None, Some(amount));
        paid(&tx.receipt(), USER, &WRAPPED)
    };
    assert_eq!(made(rent + 700, 0, 700), 0);
    assert_eq!(made(rent + 700, 500, 1_200), 500);
    // What the rent takes is missing from nobody's payment.
    for earlier in [0, 1, rent] {
        assert_eq!(made(earlier, 500, 500), 500);
    }
}

/// A stranger allows the solver to move what is the stranger's: that it does so is no payment of its own.
#[test]
fn what_a_stranger_lent_its_word_for_is_no_payment() {
    let (lent, to) = (wallet(key(STRANGER), mint()), wallet(key(USER), mint()));
    let delegate = by_solver()
        .with(TOKEN, &[lent.0, to.0, key(SOLVER)], token_transfer(300))
        .memo(&id(9), &[])
        .tokens(lent, mint(), Some(300), Some(0))
        .tokens(to, mint(), Some(0), Some(300));
    assert!(delegate.receipt().payments.is_empty());
    // Beside it the solver's own counts.
    let own = wallet(key(SOLVER), mint());
    let both = delegate
        .with(TOKEN, &[own.0, to.0, key(SOLVER)], token_transfer(200))
        .tokens(own, mint(), Some(200), Some(0))
        .tokens((key(8), key(USER)), mint(), Some(0), Some(200));
    assert_eq!(paid(&both.receipt(), USER, &mint()), 200);
    let lent = wallet(key(STRANGER), WRAPPED);
    let closed = |owner: u8, held: (Pubkey, Pubkey)| {
        let tx = by_solver()
            .with(TOKEN, &[held.0, key(USER), key(SOLVER)], vec![9])
            .memo(&id(9), &[])
            .lamports(key(USER), 0, 700)
            .tokens((held.0, key(owner)), WRAPPED, Some(700), None);
        paid(&tx.receipt(), USER, &SYSTEM)
    };
    assert_eq!(closed(STRANGER, lent), 0);
    assert_eq!(closed(SOLVER, wallet(key(SOLVER), WRAPPED)), 700);
}

#[test]
fn nobody_pays_a_signer() {
    let both = Tx::by(&[key(SOLVER), key(USER)])
        .with(SYSTEM, &[key(SOLVER), key(USER)], system_transfer(1_000))
        .lamports(key(USER), 0, 1_000);
    assert!(both.receipt().payments.is_empty());
}

#[test]
fn memos_are_of_whoever_paid_the_fee() {
    let note = |tx: Tx, signers: &[Pubkey]| tx.memo(&id(9), signers);
    let two = || Tx::by(&[key(SOLVER), key(STRANGER)]);
    assert_eq!(names(&note(by_solver(), &[])), [id(9)]);
    assert_eq!(names(&note(by_solver(), &[key(SOLVER)])), [id(9)]);
    assert_eq!(names(&note(two(), &[key(STRANGER), key(SOLVER)])), [id(9)]);
    // Of another signer.
    assert!(names(&note(two(), &[key(STRANGER)])).is_empty());
    // A program that the solver called may write any memo.
    let memo = vm::solana::programs::MEMO;
    let inner = by_solver().with(key(0x50), &[], vec![]);
    let inner = inner.inner(memo, &[key(SOLVER)], id(9).into_bytes());
    assert!(names(&inner).is_empty());
    // A look-alike of the memo program, and bytes that are no text.
    let other = by_solver().with(key(0x4d), &[], id(9).into_bytes());
    assert!(names(&other).is_empty());
    let bytes = by_solver().with(memo, &[], [id(9).as_bytes(), &[0xff]].concat());
    assert!(names(&bytes).is_empty());
}

#[test]
fn several_ids_are_all_named_once() {
    let tx = by_solver()
        .memo(&format!("{} {}", id(9), id(8)), &[])
        .memo(&id(9), &[]);
    assert_eq!(names(&tx), [id(8), id(9)]);
}

#[test]
fn payments_have_indexes_of_their_own() {
    let tx = by_solver()
        .lamports(key(USER), 0, 10)
        .lamports(key(4), 0, 10)
        .tokens(wallet(key(USER), mint()), mint(), None, Some(10))
        .tokens(wallet(key(4), mint()), mint(), None, Some(10))
        .tokens(wallet(key(USER), WRAPPED), WRAPPED, Some(0), Some(10));
    let mut indexes: Vec<u32> = tx.receipt().payments.iter().map(|it| it.index).collect();
    let count = indexes.len();
    indexes.sort_unstable();
    indexes.dedup();
    assert_eq!((count, indexes.len()), (5, 5));
}
