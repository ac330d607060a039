//! Claims at the oracle: before the solver's, or of what never was.

use alloy::primitives::{Address, U256};
use anyhow::{Result, ensure};
use devnet::{claim, node::Payload, world::order::text};
use serde_json::{Value, json};
use vm::protocol::id::outcome;

use super::{
    arena::{GUEST, TRUSTED},
    life::Wish,
    stranger::{Fixture, paid},
};

/// An order of his own with a fee for himself, and nothing deposited: the fee would leave the solver's
/// account at the hub.
pub async fn forced(fixture: &mut Fixture) -> Result<()> {
    let recipient = text(fixture.stranger.address());
    let fees = json!([{"recipient": recipient, "fee": "500"}]);
    let order = fixture
        .stranger
        .order(Wish::ETHER, |body| body["appFees"] = fees);
    let order = order.await?.quote().await?.order.clone();
    let deposit = fixture.victim.deposit().await?;
    let status = fixture.victim.until(&["success"]).await?;
    let fill = paid(&status)?;
    let bodies = [
        ("fill", "solver-fills", claim::fill(&order, &[], fill)),
        ("refund", "solver-refunds", claim::refund(&order, &[], &[])),
        (
            "fill, the user's deposit",
            "solver-fills",
            claim::fill(&order, &[deposit], fill),
        ),
    ];
    for (key, whose) in [
        (None, "no key"),
        (Some(GUEST), "a guest's"),
        (Some(TRUSTED), "the one that may"),
    ] {
        let mut told = Vec::new();
        for (what, route, body) in &bodies {
            let mut body = body.clone();
            body["force"] = true.into();
            let said = fixture.stranger.insists(route, &body, key).await?;
            told.push(format!("{what} {said}"));
        }
        fixture.note(&format!("forced with {whose}"), told.join(", "));
    }
    let mut unsigned: Value = bodies[0].2.clone();
    unsigned["force"] = true.into();
    unsigned["orderSignature"] = format!("0x{}", "11".repeat(65)).into();
    let said = fixture
        .stranger
        .insists("solver-fills", &unsigned, Some(TRUSTED))
        .await?;
    fixture.note("forced with a bad signature", said);
    Ok(())
}

pub async fn dust_first(fixture: &mut Fixture) -> Result<()> {
    let order = fixture.victim.quote().await?.order.clone();
    let deposit = fixture.victim.deposit().await?;
    let dust = fixture.stranger.dusts(order.id).await?;
    let status = fixture.victim.until(&["submitted", "success"]).await?;
    let body = claim::fill(&order, &[dust], paid(&status)?);
    let said = fixture
        .stranger
        .insists("solver-fills", &body, None)
        .await?;
    let settled = outcome(&[deposit.onchain_id], order.id);
    let first = fixture
        .arena
        .world
        .hub
        .executions(settled)
        .await?
        .is_empty();
    ensure!(first, "the solver was paid before he had his answer");
    fixture.note("the fill, for the wei, before the solver is paid", said);
    Ok(())
}

/// A wei, and more than the least that an order takes for its refund.
pub async fn refund(fixture: &mut Fixture) -> Result<()> {
    let order = fixture.victim.quote().await?.order.clone();
    let deposit = fixture.victim.deposit().await?;
    let site = &fixture.stranger.arena.world.origin;
    let to: Address = fixture.victim.who.address();
    let mut bodies = Vec::new();
    for (what, amount) in [("a wei", 1), ("a fiftieth", Wish::ETHER.amount / 50)] {
        let back = Payload::pay(to, U256::from(amount)).suffix(order.id);
        let back = fixture.stranger.sends(site, back).await?.transaction_hash;
        let deposits = std::slice::from_ref(&deposit);
        bodies.push((what, claim::refund(&order, deposits, &[back])));
    }
    for when in ["before the fill is final", "after"] {
        for (what, body) in &bodies {
            let said = fixture
                .stranger
                .insists("solver-refunds", body, None)
                .await?;
            fixture.note(&format!("{what} as the refund, {when}"), said);
        }
        fixture.victim.until(&["success"]).await?;
    }
    Ok(())
}
