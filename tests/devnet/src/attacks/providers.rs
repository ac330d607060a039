//! One provider of three that lies.

use alloy::primitives::U256;
use anyhow::Result;
use devnet::proxy::{Lie, Rule, on};
use serde_json::{Value, json};

use super::{
    life::{MILLI, Wish},
    stranger::Fixture,
};

const SMALL: Wish = Wish {
    amount: 50 * MILLI,
    ..Wish::ETHER
};

pub async fn nonce(fixture: &mut Fixture) -> Result<()> {
    for more in [1, 1_000] {
        for liar in &fixture.arena.liars {
            liar.lie(higher(more));
        }
        let mut own = fixture.stranger.order(SMALL, |_| ()).await?;
        own.deposit().await?;
        fixture
            .ended(&format!("an order while it says {more} more"), &own)
            .await?;
        if more == 1 {
            fixture.victim.deposit().await?;
            fixture.victim.until(&["success"]).await?;
        }
    }
    tell_lies(fixture, "eth_getTransactionCount");
    Ok(())
}

fn higher(more: u64) -> Rule {
    on("eth_getTransactionCount", move |_| {
        Lie::patch(move |result: &mut Value| {
            let known = result.as_str().and_then(|text| text.parse::<U256>().ok());
            if let Some(known) = known {
                *result = json!(known + U256::from(more));
            }
        })
    })
}

pub async fn logs(fixture: &mut Fixture) -> Result<()> {
    for liar in &fixture.arena.liars {
        liar.reset();
        liar.lie(on("eth_getLogs", |_| Lie::Result(json!([]))));
    }
    fixture.victim.deposit().await?;
    fixture.victim.until(&["success"]).await?;
    tell_lies(fixture, "eth_getLogs");
    Ok(())
}

/// Says how often `method` was answered with a lie.
fn tell_lies(fixture: &mut Fixture, method: &str) {
    let liars = fixture.arena.liars.iter();
    let asked: usize = liars.map(|liar| liar.count(method)).sum();
    fixture.note("lies told", asked);
}
