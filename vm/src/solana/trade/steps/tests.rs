use super::{
    super::{
        body::address,
        fixtures::{Fee, costly, hooked, key as place, old, remember},
        swap,
    },
    *,
};
use crate::{
    solana::programs::{COMPUTE_BUDGET, MEMO, TOKEN, TOKEN_2022, associated},
    trade::{Choices, FeeRate},
    types::U256,
};

const ORDER: B256 = B256::repeat_byte(0xb6);
const PROGRAM: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";
const STATE: &str = "Dodg2HifwU8rmaVVyMyUZDGTRbqAJTyVYxXPwcbNpBKc";
const VAULT: &str = "7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ";

fn program() -> Pubkey {
    PROGRAM.parse().unwrap()
}

fn user() -> Pubkey {
    place(0x11)
}

/// A deposit of so much behind `before`.
fn deposit(
    currency: &Pubkey,
    amount: u64,
    (before, choices): (&[Step], &Choices),
) -> Result<Draft, CodecError> {
    let steps = Steps.deposit(&DepositTerms {
        user: &address(&user()),
        depository: &address(&program()),
        currency: &address(currency),
        amount: U256::from(amount),
        order: ORDER,
        explicit: true,
        approved: U256::MAX,
        reset: false,
        funds: &[],
        before,
        choices,
    })?;
    let [step] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(step.kind, StepKind::Deposit);
    assert_eq!(step.draft.from, address(&user()));
    Ok(step.draft.clone())
}

fn plain(currency: &Pubkey, amount: u64) -> Result<Draft, CodecError> {
    deposit(currency, amount, (&[], &Choices::default()))
}

fn shown(draft: &Draft, limit: Option<u64>) -> Value {
    let shown = StepFee {
        number: 792_703_809,
        work: 1,
        limit,
        rate: FeeRate::default(),
    };
    Steps.render(draft, shown).unwrap()
}

fn account(key: &Pubkey, signs: bool, writable: bool) -> Value {
    json!({"pubkey": key.to_string(), "isSigner": signs, "isWritable": writable})
}

fn parsed(text: &str) -> Pubkey {
    text.parse().unwrap()
}

#[test]
fn lamports_are_deposited_through_the_depositorys_program() {
    let draft = plain(&SYSTEM, 5).unwrap();
    assert_eq!(draft.value, U256::from(5));
    let data = format!("0d9e0ddf5fd51c060500000000000000{}", "b6".repeat(32));
    let keys = [
        account(&parsed(STATE), false, false),
        account(&user(), true, true),
        account(&user(), false, false),
        account(&parsed(VAULT), false, true),
        account(&SYSTEM, false, false),
    ];
    let one = json!({"programId": PROGRAM, "data": data, "keys": keys});
    let wanted = json!({"instructions": [one], "addressLookupTableAddresses": []});
    assert_eq!(shown(&draft, Some(7)), wanted);
}

#[test]
fn tokens_of_both_programs_are_deposited() {
    let fees: [Fee; 2] = [(0, 1_000, 100), (5, 1_000, 200)];
    for (at, read, token_program, sent) in [
        (0x21, old(6), TOKEN, 100_u64),
        // What arrives must be enough at either fee: of 103 two per cent are taken, rounded up.
        (0x22, costly(6, fees), TOKEN_2022, 103),
    ] {
        let mint = place(at);
        remember(&mint, &read);
        let draft = plain(&mint, 100).unwrap();
        assert_eq!(draft.value, U256::ZERO);
        let tokens = |owner: &Pubkey| associated(owner, &mint, &token_program).unwrap();
        let keys = [
            account(&parsed(STATE), false, false),
            account(&user(), true, true),
            account(&user(), false, false),
            account(&parsed(VAULT), false, false),
            account(&mint, false, false),
            account(&tokens(&user()), false, true),
            account(&tokens(&parsed(VAULT)), false, true),
            account(&token_program, false, false),
            account(&ASSOCIATED, false, false),
            account(&SYSTEM, false, false),
        ];
        let amount = hex::encode(sent.to_le_bytes());
        let data = format!("0b9c60da27a3b413{amount}{}", "b6".repeat(32));
        let one = json!({"programId": PROGRAM, "data": data, "keys": keys});
        assert_eq!(shown(&draft, Some(7))["instructions"], json!([one]));
    }
}

/// What it takes above the quote, when it is given back and when it is withdrawn is in no price.
#[test]
fn deposits_tell_the_mints_that_must_cost_nothing() {
    let (plain_mint, costly_mint) = (place(0x23), place(0x24));
    remember(&plain_mint, &old(6));
    remember(&costly_mint, &costly(6, [(0, 1_000, 0), (9, 1_000, 1)]));
    let told = |currency: &Pubkey| {
        let draft = plain(currency, 100).unwrap();
        let Content::Instructions(own) = Content::of(&draft).unwrap() else {
            panic!("{draft:?}");
        };
        let mints = deposited(&own);
        let known = mints.iter().map(|key| memory::known(key).unwrap());
        let facts = Facts {
            mints: known.collect(),
            ..Facts::default()
        };
        (mints, facts.unpaid())
    };
    assert_eq!(told(&SYSTEM), (Vec::new(), None));
    assert_eq!(told(&plain_mint), (vec![plain_mint], None));
    let (mints, why) = told(&costly_mint);
    assert_eq!(mints, [costly_mint]);
    assert!(why.unwrap().contains("cost a fee"));
}

#[test]
fn what_cannot_be_deposited_is_no_step() {
    let unread = plain(&place(0x31), 5).unwrap_err();
    assert!(unread.0.starts_with("no mint is known at"), "{unread}");
    let mint = place(0x32);
    remember(&mint, &hooked(Some(place(9))));
    let barred = plain(&mint, 5).unwrap_err();
    assert!(barred.0.contains("cannot be sent"), "{barred}");
    let terms = Choices::default();
    let huge = Steps.deposit(&DepositTerms {
        user: &address(&user()),
        depository: &address(&program()),
        currency: &address(&SYSTEM),
        amount: U256::from(u64::MAX) + U256::ONE,
        order: ORDER,
        explicit: true,
        approved: U256::MAX,
        reset: false,
        funds: &[],
        before: &[],
        choices: &terms,
    });
    assert!(huge.is_err());
}

#[test]
fn callers_choose_who_pays_and_whether_work_is_limited() {
    let choices = Choices {
        fee_payer: Some(address(&place(0x44))),
        work_limit: true,
        shared_accounts: None,
    };
    let draft = deposit(&SYSTEM, 5, (&[], &choices)).unwrap();
    let Content::Instructions(own) = Content::of(&draft).unwrap() else {
        panic!("{draft:?}");
    };
    assert_eq!(own.fee_payer, Some([0x44; 32]));
    let list = shown(&draft, Some(90))["instructions"].clone();
    // `SetComputeUnitLimit` of 90,000.
    assert_eq!(list[0]["programId"], COMPUTE_BUDGET.to_string());
    assert_eq!(list[0]["data"], "02905f0100");
    assert_eq!(list[0]["keys"], json!([]));
    assert_eq!(list[1]["programId"], PROGRAM);
    assert_eq!(list[2], Value::Null);
    // No transaction takes more than the chain lets it, and one that nobody could estimate may take all of that.
    for limit in [Some(u64::MAX), None] {
        let most = shown(&draft, limit)["instructions"][0]["data"].clone();
        assert_eq!(
            most,
            format!("02{}", hex::encode(1_400_000_u32.to_le_bytes()))
        );
    }
}

/// An exchange into `to`, with a lookup table.
fn exchange(value: u64) -> Step {
    let one = body::Instruction {
        program: swap::PROGRAM.to_bytes(),
        accounts: Vec::new(),
        data: vec![7],
    };
    let own = Instructions {
        list: vec![one],
        tables: vec![[0x55; 32]],
        ..Instructions::default()
    };
    let draft = Content::Instructions(own).draft(&address(&user()), U256::from(value));
    Step {
        kind: StepKind::Swap,
        draft: draft.unwrap(),
    }
}

#[test]
fn exchange_and_deposit_are_one_transaction() {
    for (currency, value) in [(place(0x61), 40_u64), (SYSTEM, 0)] {
        remember(&place(0x61), &old(6));
        let before = [exchange(value)];
        let draft = deposit(&currency, 5, (&before, &Choices::default())).unwrap();
        // Lamports that were bought are not the user's own.
        assert_eq!(draft.value, U256::from(value));
        let shown = shown(&draft, Some(1));
        let programs = [0, 1].map(|at| shown["instructions"][at]["programId"].clone());
        assert_eq!(programs, [swap::PROGRAM.to_string(), PROGRAM.to_owned()]);
        let tables = json!([place(0x55).to_string()]);
        assert_eq!(shown["addressLookupTableAddresses"], tables);
    }
    // A payment cannot stand in the list.
    let payment = Steps.send(&PaymentTerms {
        from: &address(&user()),
        to: &address(&place(3)),
        currency: &address(&SYSTEM),
        amount: U256::from(1),
        order: ORDER,
    });
    let payment = Step {
        kind: StepKind::Send,
        draft: payment.unwrap(),
    };
    assert!(deposit(&SYSTEM, 5, (&[payment], &Choices::default())).is_err());
}

#[test]
fn exchange_is_named_by_a_memo() {
    let named = Steps.name(exchange(3).draft, ORDER).unwrap();
    assert_eq!(named.value, U256::from(3));
    let list = shown(&named, Some(1))["instructions"].clone();
    assert_eq!(list[1]["programId"], MEMO.to_string());
    let text = format!("0x{}", "b6".repeat(32));
    assert_eq!(list[1]["data"], hex::encode(text));
}

#[test]
fn accounts_that_stay_are_told_with_their_size() {
    let (mint, wrapped) = (place(0x71), place(0x72));
    let known = remember(&mint, &costly(6, [(0, 1, 1), (0, 1, 1)]));
    let old = remember(&wrapped, &old(9));
    let draft = plain(&mint, 5).unwrap();
    let Content::Instructions(mut own) = Content::of(&draft).unwrap() else {
        panic!("{draft:?}");
    };
    let vault = Made {
        key: associated(&parsed(VAULT), &mint, &TOKEN_2022).unwrap(),
        bytes: known.account_bytes,
    };
    assert_eq!(made(&own), [vault]);
    // One more, twice; and one that is closed at the end.
    let user = user();
    let made_for = |mint: &Mint| {
        let account = associated(&user, &mint.key, &mint.program).unwrap();
        (
            account,
            body::Instruction::from(&pay::create(&user, &user, mint, &account)),
        )
    };
    let ((kept, makes), (purse, wraps)) = (made_for(&known), made_for(&old));
    let close = body::Instruction {
        program: TOKEN.to_bytes(),
        accounts: vec![body::Account {
            key: purse.to_bytes(),
            signs: false,
            writable: true,
        }],
        data: vec![CLOSE],
    };
    drop(own.list.splice(0..0, [wraps, makes.clone(), makes]));
    own.list.push(close);
    let kept = Made {
        key: kept,
        bytes: known.account_bytes,
    };
    assert_eq!(made(&own), [kept, vault]);
}
