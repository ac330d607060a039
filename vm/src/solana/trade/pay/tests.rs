use super::{
    super::{
        body::address,
        fixtures::{costly, hooked, key as place, old},
        message,
    },
    *,
};
use crate::{
    solana::programs::{COMPUTE_BUDGET, TOKEN, associated},
    trade::{Call, Payout},
};

const ORDER: B256 = B256::repeat_byte(0xab);

fn facts(mint: u8, account: &super::super::super::raw::RawAccount) -> Facts {
    Facts {
        mints: vec![Mint::read(&place(mint), account).unwrap()],
        there: Vec::new(),
    }
}

fn payments(paid: &[(u8, u8, u64)]) -> Payments {
    let transfers = paid.iter().map(|(to, currency, amount)| Transfer {
        to: [*to; 32],
        currency: [*currency; 32],
        amount: *amount,
    });
    Payments {
        order: Some(ORDER.0),
        transfers: transfers.collect(),
    }
}

/// The account that a fixture's mint has for an owner.
fn account(owner: u8, mint: u8, program: &Pubkey) -> Pubkey {
    associated(&place(owner), &place(mint), program).unwrap()
}

#[test]
fn lamports_are_paid_behind_the_memo() {
    let list = payments(&[(2, 0, 5)]).instructions(&place(1), &Facts::default());
    let list = list.unwrap();
    let [memo, transfer] = &list[..] else {
        panic!("{list:?}");
    };
    assert_eq!(memo.program_id, MEMO);
    assert_eq!(memo.data, format!("0x{}", "ab".repeat(32)).into_bytes());
    assert_eq!(transfer.program_id, SYSTEM);
    assert_eq!(
        transfer.data,
        [&[2, 0, 0, 0][..], &5_u64.to_le_bytes()].concat()
    );
    let [from, to] = [0, 1].map(|at| transfer.accounts[at].pubkey);
    assert_eq!((from, to), (place(1), place(2)));
}

#[test]
fn tokens_are_paid_to_accounts_that_are_made_before() {
    let facts = facts(9, &old(6));
    let paid = payments(&[(2, 9, 5), (3, 9, 7), (2, 9, 11)]);
    let list = paid.instructions(&place(1), &facts).unwrap();
    let programs: Vec<_> = list.iter().map(|one| one.program_id).collect();
    assert_eq!(
        programs,
        [ASSOCIATED, ASSOCIATED, MEMO, TOKEN, TOKEN, TOKEN]
    );
    let made = paid.made(&facts).unwrap();
    let accounts = [account(2, 9, &TOKEN), account(3, 9, &TOKEN)];
    assert_eq!(
        made.iter().map(|made| made.key).collect::<Vec<_>>(),
        accounts
    );
    assert!(made.iter().all(|made| made.bytes == 165));
    let create = &list[0];
    assert_eq!(create.data, [CREATE_IDEMPOTENT]);
    let keys: Vec<_> = create.accounts.iter().map(|one| one.pubkey).collect();
    assert_eq!(
        keys,
        [place(1), accounts[0], place(2), place(9), SYSTEM, TOKEN]
    );
    // TransferChecked: the amount and the decimals.
    let transfer = &list[4];
    assert_eq!(
        transfer.data,
        [&[12][..], &7_u64.to_le_bytes(), &[6]].concat()
    );
    let keys: Vec<_> = transfer.accounts.iter().map(|one| one.pubkey).collect();
    let from = account(1, 9, &TOKEN);
    assert_eq!(keys, [from, place(9), accounts[1], place(1)]);
    assert_eq!(paid.tokens(&facts), Ok(vec![(place(9), Amount::from(23))]));
    assert_eq!(paid.native(), Ok(0));
}

#[test]
fn accounts_that_are_there_are_held_against_their_owners_and_paid_for_by_nobody() {
    let mut facts = facts(9, &old(6));
    let paid = payments(&[(2, 9, 5), (3, 9, 7), (2, 9, 11)]);
    // Account, owner, who pays for it, and whether that one signs.
    let made = |facts: &Facts| {
        let list = paid.instructions(&place(1), facts).unwrap();
        assert!(list[..2].iter().all(|one| one.data == [CREATE_IDEMPOTENT]));
        let made = list.iter().filter(|one| one.program_id == ASSOCIATED);
        let made = made.map(|one| {
            let [payer, account, owner, ..] = &one.accounts[..] else {
                panic!("{one:?}");
            };
            let signs = (payer.is_signer, payer.is_writable);
            (account.pubkey, owner.pubkey, payer.pubkey, signs)
        });
        made.collect::<Vec<_>>()
    };
    let accounts = [2, 3].map(|owner| account(owner, 9, &TOKEN));
    let new = |owner: u8| {
        (
            accounts[usize::from(owner) - 2],
            place(owner),
            place(1),
            (true, true),
        )
    };
    let there = |owner: u8| {
        let account = accounts[usize::from(owner) - 2];
        (account, place(owner), place(owner), (false, false))
    };
    assert_eq!(made(&facts), [new(2), new(3)]);
    facts.there.push(accounts[0]);
    assert_eq!(made(&facts), [there(2), new(3)]);
    // They have to be there all the same.
    assert_eq!(paid.made(&facts).unwrap().len(), 2);
    facts.there.push(accounts[1]);
    assert_eq!(made(&facts), [there(2), there(3)]);
    let list = paid.instructions(&place(1), &facts).unwrap();
    let message = message::compile(&place(1), &list, &[], [7; 32]).unwrap();
    assert_eq!(message.header().num_required_signatures, 1);
}

#[test]
fn tokens_whose_transfers_cost_are_not_paid() {
    let (none, some) = ((0, 1_000_000, 0), (7, u64::MAX, 9_999));
    let paid = payments(&[(2, 9, 9_900)]);
    for fees in [[some, some], [none, some], [some, none]] {
        let facts = facts(9, &costly(2, fees));
        let refused = paid.instructions(&place(1), &facts).unwrap_err();
        assert!(refused.0.contains("cost a fee"), "{refused}");
        assert!(paid.made(&facts).is_err() && paid.tokens(&facts).is_err());
        assert!(facts.unpaid().unwrap().contains("cost a fee"));
    }
    // A mint that may ask for a fee, and asks for none.
    let facts = facts(9, &costly(2, [none, none]));
    assert_eq!(facts.unpaid(), None);
    let sums = paid.tokens(&facts);
    assert_eq!(sums, Ok(vec![(place(9), Amount::from(9_900))]));
    let list = paid.instructions(&place(1), &facts).unwrap();
    assert_eq!(list[2].data[1..9], 9_900_u64.to_le_bytes());
    assert!(paid.made(&facts).unwrap()[0].bytes > 165);
}

#[test]
fn currencies_that_are_not_known_or_barred_are_not_paid() {
    let paid = payments(&[(2, 9, 5)]);
    let unknown = paid.instructions(&place(1), &Facts::default());
    assert!(unknown.unwrap_err().0.contains("no mint"));
    let barred = facts(9, &hooked(Some(place(7))));
    let refused = paid.instructions(&place(1), &barred).unwrap_err();
    assert!(refused.0.contains("are not sent"), "{refused}");
    assert!(paid.made(&barred).is_err() && paid.tokens(&barred).is_err());
}

fn fill(payouts: &[Payout], calls: &[crate::OrderCall]) -> Result<Fill, CodecError> {
    super::fill(&FillTerms {
        solver: &address(&place(1)),
        router: None,
        proxy: None,
        payments: payouts,
        calls,
        authorizations: &[],
        order: ORDER,
    })
}

fn payout(to: u8, currency: u8, amount: u64) -> Payout {
    Payout {
        to: address(&place(to)),
        currency: address(&place(currency)),
        amount: Amount::from(amount),
    }
}

#[test]
fn fills_pay_and_call_nobody() {
    let payouts = [payout(2, 0, 5), payout(3, 9, 7)];
    let made = fill(&payouts, &[]).unwrap();
    assert_eq!((made.routed, made.spender), (false, None));
    assert_eq!(made.draft.value, Amount::from(5));
    let Content::Payments(read) = Content::of(&made.draft).unwrap() else {
        panic!("instructions");
    };
    assert_eq!(read, payments(&[(2, 0, 5), (3, 9, 7)]));
    let call = crate::OrderCall {
        to: address(&place(5)),
        data: Vec::new().into(),
        value: Amount::ZERO,
    };
    assert!(fill(&payouts, &[call]).unwrap_err().0.contains("no calls"));
    assert!(fill(&[], &[]).is_err());
    // Itself, a program, more than a program counts, and an address that is none.
    for wrong in [payout(1, 0, 5), payout(0, 0, 5)] {
        assert!(fill(&[wrong], &[]).is_err());
    }
    let much = Payout {
        amount: Amount::from(1_u128 << 64),
        ..payout(2, 0, 5)
    };
    assert!(fill(&[much], &[]).is_err());
    let short = Payout {
        to: Address::from_parts("0x01", vec![1; 20]),
        ..payout(2, 0, 5)
    };
    assert!(fill(&[short], &[]).is_err());
}

#[test]
fn drafts_are_named_once_more_and_calls_are_foreign() {
    let draft = fill(&[payout(2, 0, 5)], &[]).unwrap().draft;
    let other = B256::repeat_byte(1);
    let named = name(&draft, other).unwrap();
    let Content::Payments(read) = Content::of(&named).unwrap() else {
        panic!("instructions");
    };
    assert_eq!(read.order, Some(other.0));
    assert_ne!(named.digest(), draft.digest());
    let call = Draft::call(Call::nothing(&address(&place(1))));
    assert!(Content::of(&call).is_err() && name(&call, other).is_err());
    let mut foreign = draft.clone();
    foreign.body = crate::trade::Body::Own(vec![2, 0].into());
    assert!(Content::of(&foreign).is_err());
}

#[test]
fn payments_are_signed_by_one_and_fit_a_packet_up_to_a_number() {
    let bytes = |count: u8| {
        let paid: Vec<_> = (2..2 + count).map(|to| (to, 0, 5)).collect();
        let list = payments(&paid).instructions(&place(1), &Facts::default());
        let list = [&message::budget(1, 1)[..], &list.unwrap()].concat();
        let message = message::compile(&place(1), &list, &[], [7; 32]).unwrap();
        assert_eq!(message.header().num_required_signatures, 1);
        assert!(message.static_account_keys().contains(&COMPUTE_BUDGET));
        let bytes = message::bytes(&message);
        assert_eq!(message::unsigned(&message).len(), bytes);
        let signed = message::signed(&message.serialize(), &[9; 64]);
        assert_eq!(signed.len(), bytes);
        bytes
    };
    assert!(bytes(1) < 400);
    assert!(bytes(18) <= message::MOST_BYTES && bytes(19) > message::MOST_BYTES);
}
