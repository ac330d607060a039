//! Transactions told to the API that are not the user's.

use std::time::Duration;

use alloy::primitives::{B256, U256};
use anyhow::Result;
use devnet::{contracts::Token, node::Payload};
use tokio::time::sleep;

use super::stranger::Fixture;

/// As long as a told transaction takes to be looked for several times.
const LOOKED_FOR: Duration = Duration::from_secs(3);

pub async fn foreign(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    let site = &arena.world.origin;
    let request = fixture.victim.quote().await?.request.clone();
    let who = fixture.stranger.address();
    let own = fixture
        .stranger
        .sends(site, Payload::pay(who, U256::from(1)))
        .await?;
    let most = Token::transferCall {
        to: who,
        amount: U256::MAX,
    };
    let failed = fixture
        .stranger
        .sends(site, Payload::call(site.token, &most))
        .await?;
    let order = fixture.order().await?;
    let dust = fixture.stranger.dusts(order).await?;
    let told = [
        ("his own", own.transaction_hash),
        ("a failed one", failed.transaction_hash),
        ("one that does not exist", B256::repeat_byte(0x77)),
        ("his wei under the order", dust.transaction),
    ];
    let mut answers = Vec::new();
    for (what, hash) in told {
        let [index, single] = fixture.stranger.submits(&request, site, hash).await?;
        answers.push(format!("{what} {index}, {single}"));
    }
    fixture.note("told", answers.join("; "));
    sleep(LOOKED_FOR).await;
    let state = fixture.victim.state();
    fixture.note("the user's request then", state);
    Ok(())
}
