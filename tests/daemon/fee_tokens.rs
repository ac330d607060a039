//! A token that takes a fee on transfers, listed by mistake, over real chains: it is not quoted.

use crate::support::daemon::daemon;
use devnet::world::{DevChain, Devnet};
use serde_json::{Value, json};

/// Lists a new token of `contract` at a site, and gives some to user and solver.
async fn listed(world: &Devnet, site: &DevChain, contract: &str, entry: &mut Value) -> String {
    let token = site.deploy_token(contract).await.unwrap();
    for owner in [&world.user, &world.solver] {
        let amount = alloy::primitives::U256::from(1_000_000_000_000_u64);
        site.mint(token, owner.address(), amount).await.unwrap();
    }
    let currencies = entry["currencies"].as_array_mut().unwrap();
    let mut currency = currencies[1].clone();
    currency["address"] = format!("{token:#x}").into();
    currency["symbol"] = contract.into();
    currencies.push(currency);
    format!("{token:#x}")
}

#[tokio::test(flavor = "multi_thread")]
async fn token_with_a_fee_is_refused_on_both_sides() {
    let world = Devnet::start().await.unwrap();
    let mut files = world.files();
    let (origin, destination) = (&world.origin, &world.destination);
    let fee_in = listed(&world, origin, "FeeToken", &mut files.market[0]).await;
    let fee_out = listed(&world, destination, "FeeToken", &mut files.market[1]).await;
    let daemon = daemon()
        .chains(&files)
        .signer(&world.oracles[0])
        .solver(&world.solver, "destination")
        .start()
        .await;
    let (input, output) = (
        format!("{:#x}", origin.token),
        format!("{:#x}", destination.token),
    );
    let client = reqwest::Client::new();
    for (from, to, refused) in [
        (&input, &output, None),
        (&fee_in, &output, Some("UNSUPPORTED_CURRENCY")),
        (&input, &fee_out, Some("UNSUPPORTED_CURRENCY")),
    ] {
        let user = format!("{:#x}", world.user.address());
        let body = json!({
            "user": user, "originChainId": 31_001, "destinationChainId": 31_002,
            "originCurrency": from, "destinationCurrency": to, "amount": "100000000",
            "tradeType": "EXACT_INPUT",
        });
        let url = format!("{}/quote/v2", daemon.integrator_url());
        let answer = client.post(url).json(&body).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["errorCode"].as_str(), refused, "{answer}");
    }
    daemon.stop().await;
}
