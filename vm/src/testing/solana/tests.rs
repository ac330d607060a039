//! The chain by itself, with transactions that this crate makes.

use serde_json::json;

use super::{bank::RENT, *};
use crate::{
    solana::{
        FAMILY,
        programs::{SYSTEM, TOKEN, associated},
    },
    testing::scripted::Key,
    trade::{PaymentTerms, StepFee},
    types::{Address, Amount, B256},
};

const DEPOSITORY: Pubkey = Pubkey::new_from_array([0xd0; 32]);
const COIN: Pubkey = Pubkey::new_from_array([0xa1; 32]);
const SHOP: Pubkey = Pubkey::new_from_array([0x50; 32]);
const ORDER: B256 = B256::repeat_byte(0xee);

fn world(name: &str) -> std::sync::Arc<World> {
    let rules = Rules {
        number: 7,
        pace: 2,
        since: 1_000,
        depository: DEPOSITORY,
        token: COIN,
    };
    let world = World::new(name, rules);
    for currency in [SYSTEM, COIN] {
        world.fund(&payer(), &currency, 1_000_000_000);
    }
    world.mine_until(1_000 + 2 * 40);
    world
}

fn payer() -> Pubkey {
    Pubkey::new_from_array(Key::of(1).bytes().0)
}

fn address(key: &Pubkey) -> Address {
    Address::from_parts(&key.to_string(), key.to_bytes())
}

/// A signed payment of lamports to the shop.
fn payment(world: &World, amount: u64) -> Vec<u8> {
    let steps = FAMILY.steps.unwrap();
    let draft = steps.send(&PaymentTerms {
        from: &address(&payer()),
        to: &address(&SHOP),
        currency: &address(&SYSTEM),
        amount: Amount::from(amount),
        order: ORDER,
    });
    let shown = StepFee {
        number: 7,
        work: 40,
        limit: None,
        rate: crate::trade::FeeRate::default(),
    };
    let data = steps.render(&draft.unwrap(), shown).unwrap();
    signed(&Key::of(1), &data, world.blockhash()).unwrap()
}

fn pass(world: &World, slots: u64) {
    world.mine_until(world.rules.since + (world.slot() + slots) * world.rules.pace);
}

#[test]
fn payment_lands_once_and_names_its_order() {
    let world = world("solana-lands");
    let raw = payment(&world, 700);
    let id = world.send(&raw).unwrap();
    assert_eq!(world.send(&raw), Ok(id.clone()));
    pass(&world, 3);
    let [(_, _, done)] = &world.history()[..] else {
        panic!("one transaction");
    };
    assert_eq!((done.sent.id(), done.success), (id, true));
    assert_eq!(done.memo(), Some(ORDER.to_string()));
    let paid = Paid {
        to: SHOP,
        currency: SYSTEM,
        amount: 700,
    };
    assert_eq!(done.paid(), [paid]);
    assert_eq!(
        world.send(&raw),
        Err("This transaction has already been processed")
    );
}

#[test]
fn blockhash_ends_and_a_reorg_drops_what_it_had() {
    let world = world("solana-ends");
    let raw = payment(&world, 700);
    world.send(&raw).unwrap();
    pass(&world, 3);
    world.reorg(3, &mut |_| false);
    assert!(world.history().is_empty());
    world.hold(payer(), true);
    world.resend(&payer());
    pass(&world, 400);
    world.hold(payer(), false);
    pass(&world, 3);
    assert!(world.history().is_empty());
    assert_eq!(world.send(&raw), Err("Blockhash not found"));
}

#[test]
fn closed_account_fails_in_its_block_only() {
    let world = world("solana-closed");
    world.close(SHOP, true);
    world.send(&payment(&world, 700)).unwrap();
    pass(&world, 3);
    let [(_, _, done)] = &world.history()[..] else {
        panic!("one transaction");
    };
    assert!(!done.success && done.paid().is_empty());
    assert!(done.after.lamports_of(&payer()) < done.before.lamports_of(&payer()));
}

#[test]
fn forged_and_foreign_transactions_are_refused() {
    let world = world("solana-forged");
    let mut raw = payment(&world, 700);
    raw[5] ^= 1;
    assert!(world.send(&raw).is_err());
    assert!(world.send(&[]).is_err());
    assert_eq!(signed(&Key::of(1), &json!({}), [0; 32]), None);
    let much = payment(&world, 2_000_000_000);
    assert!(world.send(&much).unwrap_err().contains("0x1"));
}

#[test]
fn bank_keeps_tokens_in_accounts_that_have_rent() {
    let mut bank = Bank::default();
    bank.fund(&SHOP, &COIN, 5);
    let account = associated(&SHOP, &COIN, &TOKEN).unwrap();
    assert_eq!(bank.lamports_of(&account), RENT);
    assert_eq!(
        (bank.balance(&SHOP, &COIN), bank.balance(&SHOP, &SYSTEM)),
        (5, 0)
    );
}
