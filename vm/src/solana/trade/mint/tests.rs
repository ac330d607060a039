use spl_token_2022_interface::state::AccountState;

use super::{
    super::{
        super::programs::{SYSTEM, TOKEN, TOKEN_2022},
        fixtures::{costly, hooked, key, old, raw, tokens, tokens_in},
    },
    *,
};

#[test]
fn mints_of_both_programs_are_read_and_remembered() {
    let read = Mint::read(&key(1), &old(9)).unwrap();
    assert_eq!((read.program, read.decimals), (TOKEN, 9));
    assert_eq!((read.account_bytes, read.fees, read.bar), (165, None, None));
    assert_eq!(Mint::known(&key(1)), Some(read));
    let read = Mint::read(&key(2), &costly(6, [(0, 10, 100), (5, 20, 200)])).unwrap();
    assert_eq!(
        (read.program, read.decimals, read.bar),
        (TOKEN_2022, 6, None)
    );
    // 165 bytes, the kind, an immutable owner, and what is withheld of transfers.
    assert_eq!(read.account_bytes, 165 + 1 + 4 + (4 + 8));
    assert_eq!(Mint::known(&key(3)), None);
}

#[test]
fn what_is_no_mint_is_none() {
    let mint = Mint::read(&key(4), &old(9)).unwrap();
    for account in [
        tokens(&mint, &key(5), 7),
        raw(&SYSTEM, &old(9).bytes().unwrap()),
        raw(&TOKEN, &[]),
        raw(&TOKEN, &[0; 82]),
        raw(&TOKEN, &[1; 355]),
        raw(&TOKEN_2022, &[1; 90]),
    ] {
        assert_eq!(Mint::read(&key(6), &account), None);
    }
    assert_eq!(Mint::known(&key(6)), None);
}

#[test]
fn tokens_that_run_a_program_are_barred() {
    let free = Mint::read(&key(7), &hooked(None)).unwrap();
    assert_eq!(free.bar, None);
    let barred = Mint::read(&key(7), &hooked(Some(key(9)))).unwrap();
    assert!(barred.bar.is_some());
    // An extension of a kind that nobody knows.
    let mut data = hooked(None).bytes().unwrap();
    let kind = 82 + (165 - 82) + 1;
    data[kind..kind + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    let unknown = Mint::read(&key(8), &raw(&TOKEN_2022, &data)).unwrap();
    assert!(unknown.bar.is_some());
}

#[test]
fn enough_arrives_whatever_fee_of_now_or_soon_applies() {
    let free = Mint::read(&key(10), &old(0)).unwrap();
    assert_eq!(free.gross(77, Some(1)), Some(77));
    // One per cent, at most 1,000; from epoch 10 on two per cent, at most 5,000.
    let mint = Mint::read(&key(11), &costly(0, [(0, 1_000, 100), (10, 5_000, 200)])).unwrap();
    assert_eq!(mint.gross(9_900, Some(8)), Some(10_000));
    assert_eq!(mint.gross(9_800, Some(10)), Some(10_000));
    // The next epoch may come before the transaction lands.
    assert_eq!(mint.gross(9_800, Some(9)), Some(10_000));
    assert_eq!(mint.gross(9_800, None), Some(10_000));
    assert_eq!(mint.gross(1_000_000, Some(8)), Some(1_001_000));
    assert_eq!(mint.gross(u64::MAX, Some(8)), None);
    let [older, newer] = mint.fees.unwrap();
    for amount in [1, 2, 49, 50, 51, 99, 100, 101, 9_999, 123_457] {
        let [old, soon, new] = [8, 9, 10].map(|epoch| mint.gross(amount, Some(epoch)).unwrap());
        let arrives = |fee: &TransferFee, gross| fee.calculate_post_fee_amount(gross).unwrap();
        assert!(arrives(&older, old) >= amount && arrives(&newer, new) >= amount);
        assert!(arrives(&older, soon) >= amount && arrives(&newer, soon) >= amount);
        assert!(arrives(&older, old - 1) < amount, "{amount}");
    }
    // A fee that falls: the higher one until it is over.
    let falls = Mint::read(&key(12), &costly(0, [(0, 9_000, 200), (10, 9_000, 100)])).unwrap();
    let of = |epoch| falls.gross(9_900, epoch).unwrap();
    assert_eq!((of(Some(10)), of(None)), (10_000, of(Some(9))));
    assert!(of(Some(9)) > 10_000);
}

#[test]
fn only_its_own_tokens_that_can_move_are_held() {
    let (mint, other) = (key(20), key(21));
    let mint = Mint::read(&mint, &old(0)).unwrap();
    let other = Mint::read(&other, &old(0)).unwrap();
    let owner = key(22);
    assert_eq!(held(&mint, &owner, &tokens(&mint, &owner, 5)), 5);
    for account in [
        tokens(&mint, &key(23), 5),
        tokens(&other, &owner, 5),
        tokens_in(&mint, &owner, (5, AccountState::Frozen)),
        raw(&TOKEN_2022, &tokens(&mint, &owner, 5).bytes().unwrap()),
        raw(&TOKEN, &[]),
    ] {
        assert_eq!(held(&mint, &owner, &account), 0);
    }
}
