//! A deposit names its order in a text. Claims compare that text with the order's id, so whoever spells it otherwise is
//! paid by nobody, and takes the deposit back through the hub.

use crate::{
    bitcoin::FINAL,
    deal::{Asset, Deal},
    invariants::{Ending, PATIENCE},
    lived,
    machine::Machine,
    quotes::passes,
    side::Kind,
};

/// What a deposit is worth, in cents of a dollar.
const CENTS: u64 = 20_000;

fn deposits(name: &str, play: impl AsyncFnOnce(&mut Machine, Deal) -> Vec<String>) {
    let made = async || Machine::new((Kind::Bitcoin, Kind::Evm), name, FINAL).await;
    passes(lived(1, made, async |m: &mut Machine| {
        let deal = m.quote(Asset::Native, CENTS, false).await;
        play(m, deal).await
    }));
}

#[test]
fn deposit_that_spells_its_order_as_it_is_written_is_filled() {
    deposits("as written", async |m: &mut Machine, deal: Deal| {
        m.deposit(&deal);
        m.ends(&deal, Ending::Filled).await
    });
}

#[test]
fn deposit_that_spells_its_order_in_capitals_is_paid_for_by_nobody() {
    deposits("in capitals", async |m: &mut Machine, mut deal: Deal| {
        deal.capitalize();
        let sent = m.deposit(&deal);
        let told = m.tell(&deal, &sent).await;
        m.pass(PATIENCE).await;
        let status = m.status(&deal).await;
        let paid = [m.filled(&deal), m.refunded(&deal)].concat();
        let waits = status == "waiting" && paid.is_empty();
        let wrong = (!waits).then(|| format!("{status}, paid {paid:?}; told: {told:?}"));
        wrong.into_iter().collect()
    });
}
