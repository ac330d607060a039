//! One provider of three that lies.

use alloy::primitives::U256;
use anyhow::Result;
use devnet::proxy::{Lie, Rule, on};
use serde_json::{Value, json};

use super::{
    life::{MILLI, Wish},
    stranger::Scene,
};

const SMALL: Wish = Wish {
    amount: 50 * MILLI,
    ..Wish::ETHER
};

pub async fn nonce(scene: &mut Scene) -> Result<()> {
    for more in [1, 1_000] {
        for liar in &scene.arena.liars {
            liar.lie(higher(more));
        }
        let mut own = scene.stranger.order(SMALL, |_| ()).await?;
        own.deposit().await?;
        scene
            .ended(&format!("an order while it says {more} more"), &own)
            .await?;
        if more == 1 {
            scene.victim.deposit().await?;
            scene.victim.until(&["success"]).await?;
        }
    }
    tell_lies(scene, "eth_getTransactionCount");
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

pub async fn logs(scene: &mut Scene) -> Result<()> {
    for liar in &scene.arena.liars {
        liar.reset();
        liar.lie(on("eth_getLogs", |_| Lie::Result(json!([]))));
    }
    scene.victim.deposit().await?;
    scene.victim.until(&["success"]).await?;
    tell_lies(scene, "eth_getLogs");
    Ok(())
}

/// Says how often `method` was answered with a lie.
fn tell_lies(scene: &mut Scene, method: &str) {
    let liars = scene.arena.liars.iter();
    let asked: usize = liars.map(|liar| liar.count(method)).sum();
    scene.tell("lies told", asked);
}
