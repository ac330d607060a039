use spl_token_2022_interface::state::AccountState;

use super::{
    super::{
        super::programs::{SYSTEM, TOKEN, TOKEN_2022},
        fixtures::{costly, hooked, key, old, raw, scaled, tokens, tokens_in},
    },
    *,
};

#[test]
fn mints_of_both_programs_are_read() {
    let read = Mint::read(&key(1), &old(9)).unwrap();
    assert_eq!((read.program, read.decimals), (TOKEN, 9));
    assert_eq!((read.account_bytes, read.fees, read.bar), (165, None, None));
    assert_eq!((read.key, read.unpaid()), (key(1), None));
    let read = Mint::read(&key(2), &costly(6, [(0, 10, 100), (5, 20, 200)])).unwrap();
    assert_eq!(
        (read.program, read.decimals, read.bar),
        (TOKEN_2022, 6, None)
    );
    // 165 bytes, the kind, an immutable owner, and what is withheld of transfers.
    assert_eq!(read.account_bytes, 165 + 1 + 4 + (4 + 8));
    assert!(read.unpaid().unwrap().contains("fee"));
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
fn mints_whose_amounts_wallets_multiply_are_told_and_payments_of_them_go_on() {
    for account in scaled() {
        let mint = Mint::read(&key(9), &account).unwrap();
        assert_eq!((mint.scaled, mint.decimals), (true, 6));
        assert_eq!(mint.unpaid(), None);
    }
    for account in [old(6), hooked(None), costly(6, [(0, 10, 100); 2])] {
        assert!(!Mint::read(&key(9), &account).unwrap().scaled);
    }
}

#[test]
fn enough_arrives_whatever_fee_of_now_or_later_applies() {
    let free = Mint::read(&key(10), &old(0)).unwrap();
    assert_eq!(free.gross(77), Some(77));
    // One per cent, at most 1,000; from epoch 10 on two per cent, at most 5,000; and the other way round.
    let (low, high) = ((0, 1_000, 100), (10, 5_000, 200));
    for fees in [[low, high], [high, low]] {
        let mint = Mint::read(&key(11), &costly(0, fees)).unwrap();
        assert_eq!(mint.gross(9_800), Some(10_000));
        assert_eq!(mint.gross(1_000_000), Some(1_005_000));
        assert_eq!(mint.gross(u64::MAX), None);
        for amount in [1, 2, 49, 50, 51, 99, 100, 101, 9_999, 123_457] {
            let gross = mint.gross(amount).unwrap();
            let arrives = |gross| {
                let fees = mint.fees.unwrap();
                fees.map(|fee| fee.calculate_post_fee_amount(gross).unwrap())
            };
            assert!(arrives(gross).iter().all(|arrives| *arrives >= amount));
            assert!(arrives(gross - 1).iter().any(|arrives| *arrives < amount));
        }
    }
}

#[test]
fn nobody_is_paid_in_tokens_whose_transfers_cost_now_or_later() {
    let (none, some, most) = ((0, 1_000, 0), (0, 1_000, 1), (9, u64::MAX, 9_999));
    for (fees, is_paid) in [
        ([none, none], true),
        ([some, none], false),
        ([none, some], false),
        ([none, most], false),
    ] {
        let mint = Mint::read(&key(13), &costly(0, fees)).unwrap();
        assert_eq!(mint.unpaid().is_none(), is_paid, "{fees:?}");
        assert_eq!(mint.bar, None);
    }
    let barred = Mint::read(&key(14), &hooked(Some(key(9)))).unwrap();
    assert_eq!(barred.unpaid(), barred.bar);
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
