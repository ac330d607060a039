//! Triggers of deposit addresses.

use vm::protocol::{message::Domain, trigger};

use super::*;

pub(super) const ORDER: &str = "0xc2e80b8763efe795853030c2288eb9611da6b7c19d051e83d8725a66b16a33cd";

pub(super) fn claim() -> trigger::Trigger {
    let claim = json!({
        "input": {
            "vmType": "ethereum-vm", "chainId": "ethereum", "currency": NATIVE, "amount": "5",
        },
        "derivationFields": {
            "inputVmType": "ethereum-vm", "outputVmType": "ethereum-vm", "outputChainId": "base",
            "outputCurrency": NATIVE, "outputRecipient": RECIPIENT, "solver": RECIPIENT,
            "pricingOracle": RECIPIENT, "depositor": DEPOSITOR, "refundRecipient": DEPOSITOR,
            "priceImpactBps": "50",
        },
        "orderId": ORDER, "nonce": "7", "extraData": "0x",
        "currencies": [{"chainId": "ethereum", "currency": NATIVE}],
        "prices": [{
            "usdPrice": "300000", "usdPriceDecimals": 2, "currencyDecimals": 18,
            "expiration": "1760009999",
        }],
    });
    serde_json::from_value(claim).unwrap()
}

/// A world whose manager maps the claim's trigger to `order`.
pub(super) fn mapping(order: &str) -> World {
    let mut world = world();
    world.oracle.hub.settings.deposit_address_manager = Some(EvmAddress::repeat_byte(8));
    let (hash, order) = (claim().hash().unwrap(), order.parse().unwrap());
    world.hub.words.lock().unwrap().insert(hash.to_vec(), order);
    world
}

#[tokio::test]
async fn a_trigger_is_signed_that_its_manager_maps_to_the_order() {
    let world = mapping(ORDER);
    let first = world.oracle.trigger(&claim(), None).await.unwrap();
    assert_eq!(first.trigger.trigger_hash, claim().hash().unwrap());
    assert_eq!(
        first.trigger.deposit_address_manager,
        EvmAddress::repeat_byte(8)
    );
    let digest = first.trigger.digest(&Domain::trigger(U256::from(31337)));
    let [ours] = &first.signatures[..] else {
        panic!("{first:?}");
    };
    let own = world.oracle.journal.signer();
    assert_eq!(ours.signature.recover(&digest), Ok(own));
    assert_eq!(ours.domain, None);
    let again = world.oracle.trigger(&claim(), None).await.unwrap();
    assert_eq!(again.signatures, first.signatures);
    let key = format!("trigger/{}", first.trigger.trigger_hash);
    let entry = world.oracle.journal.entry(&key).await.unwrap().unwrap();
    assert_eq!(entry.facts[0].chain, "relay");
}

#[tokio::test]
async fn a_trigger_of_another_order_of_none_or_of_no_final_block_is_not_signed() {
    let refused = |world: World, claim: trigger::Trigger| async move {
        word(world.oracle.trigger(&claim, None).await)
    };
    let other = mapping(&B256::repeat_byte(1).to_string());
    assert_eq!(refused(other, claim()).await, "TRIGGER_NOT_MAPPED");
    let mut changed = claim();
    changed.nonce = U256::from(8);
    assert_eq!(refused(mapping(ORDER), changed).await, "TRIGGER_NOT_MAPPED");
    // Of what it does not know, the manager says zero.
    let zero = B256::ZERO.to_string();
    let mut none = claim();
    none.order_id = zero.clone();
    assert_eq!(refused(mapping(&zero), none).await, "INVALID_REQUEST");
    let young = mapping(ORDER);
    *young.hub.settled.lock().unwrap() = None;
    assert_eq!(refused(young, claim()).await, "TRIGGER_NOT_MAPPED");
    let broken = mapping(ORDER);
    *broken.hub.broken.lock().unwrap() = Some(ReadError::Doubtful("two answers".into()));
    assert_eq!(refused(broken, claim()).await, "doubtful");
}

#[tokio::test]
async fn a_trigger_that_cannot_be_is_refused_before_anything_is_read() {
    let refused = |world: World, claim: trigger::Trigger| async move {
        let answer = word(world.oracle.trigger(&claim, None).await);
        assert!(world.hub.asked.lock().unwrap().is_empty());
        answer
    };
    let mut long = claim();
    long.prices = vec![long.prices[0].clone(); limits::ITEMS + 1];
    assert_eq!(refused(mapping(ORDER), long).await, "TOO_MANY_ITEMS");
    let mut long = claim();
    long.currencies = vec![long.currencies[0].clone(); limits::ITEMS + 1];
    assert_eq!(refused(mapping(ORDER), long).await, "TOO_MANY_ITEMS");
    let mut unknown = claim();
    unknown.input.chain_id = "q".into();
    assert_eq!(
        refused(mapping(ORDER), unknown).await,
        "CHAIN_NOT_AVAILABLE"
    );
    let mut solver = claim();
    solver.derivation_fields.solver = "0x12".into();
    assert_eq!(refused(mapping(ORDER), solver).await, "INVALID_REQUEST");
    let without = world();
    let missing = without.oracle.trigger(&claim(), None).await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "Missing deposit address manager config"
    );
}

/// A manager that forgot the trigger: the block of which it was signed has left the chain.
#[tokio::test]
async fn a_trigger_is_not_signed_while_the_hub_is_halted() {
    let world = mapping(ORDER);
    world.oracle.trigger(&claim(), None).await.unwrap();
    let key = format!("trigger/{}", claim().hash().unwrap());
    let (hub, block) = (vm::ChainId::new("relay"), fixtures::block(10));
    let journal = &world.oracle.journal;
    journal.reorged(&key, &hub, &block, 1).await.unwrap();
    assert_eq!(word(world.oracle.trigger(&claim(), None).await), "journal");
}
