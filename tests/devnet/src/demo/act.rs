//! What every act of the story does: wait for finality, ask, show who signed, settle, read back.

use std::time::Duration;

use alloy::rpc::types::TransactionReceipt;
use anyhow::{Context, Result, ensure};
use devnet::{
    claim,
    node::{Block, Node},
    world::{Execution, Refusal},
};
use serde_json::Value;

use super::story::Story;

const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);

impl Story<'_> {
    /// Waits until `receipt` is final on its chain by the configured rule, then asks.
    pub async fn attest(
        &mut self,
        route: &str,
        body: &Value,
        (node, receipt): (&Node, &TransactionReceipt),
    ) -> Result<Value> {
        self.ledger.changes(self.page).await?;
        self.wait(node, receipt).await?;
        self.ask(route, body).await
    }

    /// Waits until `receipt` is final on its chain by the configured rule.
    pub async fn wait(&self, node: &Node, receipt: &TransactionReceipt) -> Result<()> {
        let number = receipt.block_number.context("not in a block")?;
        let block = node.block(number.into()).await?;
        let wait = self.finality(node, block);
        tokio::time::timeout(PATIENCE, wait)
            .await
            .context("the chain stands still")?
    }

    async fn finality(&self, node: &Node, block: Block) -> Result<()> {
        let options = &self.world.options;
        loop {
            let tip = node.tip().await?;
            let deep = tip.number >= block.number + options.finality_blocks;
            if deep && tip.time >= block.time + options.finality_seconds {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks the first oracle and shows who signed.
    pub async fn ask(&self, route: &str, body: &Value) -> Result<Value> {
        let answer = self
            .oracles
            .ask(&format!("attestations/{route}"), body)
            .await?;
        if let Some(signatures) = answer["execution"]["signatures"].as_array() {
            for signature in signatures {
                let signer = signature["oracleSigner"].as_str().context("no signer")?;
                self.page.fact("oracle signs", signer)?;
            }
        }
        Ok(answer)
    }

    /// Asks the first oracle when all of them have seen what is final on a chain abroad, and shows who signed.
    pub async fn ask_everybody(&self, route: &str, body: &Value) -> Result<Value> {
        let path = format!("attestations/{route}");
        let seen = async {
            loop {
                let answer = self.oracles.ask(&path, body).await.unwrap_or_default();
                let signed = answer["execution"]["signatures"].as_array();
                if signed.is_some_and(|all| all.len() == self.world.oracles.len()) {
                    break;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        // Whoever is too late says why when it is asked once more.
        let _ = tokio::time::timeout(PATIENCE, seen).await;
        self.ask(route, body).await
    }

    /// Submits the execution with just as many signatures as the contract asks for.
    pub async fn settle(&mut self, answer: &Value) -> Result<TransactionReceipt> {
        let mut execution = claim::execution(answer)?;
        let threshold = self.world.options.threshold;
        let given = execution.signatures.len();
        ensure!(
            given >= threshold,
            "only {given} signatures, {threshold} are needed"
        );
        execution.signatures.truncate(threshold);
        let receipt = self.world.hub.submit(execution).await?;
        self.sent(
            &format!("hub accepts {threshold} of {}", self.world.oracles.len()),
            &receipt,
        )?;
        self.ledger.changes(self.page).await?;
        Ok(receipt)
    }

    /// Shows that the contract refuses what two oracles have not signed exactly so.
    pub async fn rejections(&self, answer: &Value) -> Result<()> {
        let good = claim::execution(answer)?;
        let hub = &self.world.hub;
        let with = |signatures: Vec<_>| Execution {
            signatures,
            ..good.clone()
        };
        let [first, second] = [&good.signatures[0], &good.signatures[1]].map(Clone::clone);
        let mut flipped = second.to_vec();
        flipped[40] ^= 1;
        let other_domain = hub.digest("1", good.idempotency_key, &good.actions);
        let foreign = self.world.oracles.iter().take(2);
        let foreign = foreign.map(|oracle| oracle.sign_digest(other_domain));
        let cases: [(&str, Execution); 4] = [
            ("one bit flipped", with(vec![first.clone(), flipped.into()])),
            ("one signer twice", with(vec![first.clone(), first.clone()])),
            ("one signature", with(vec![first])),
            ("another domain", with(foreign.collect::<Result<_>>()?)),
        ];
        for (what, bad) in cases {
            let Err(error) = hub.submit(bad).await else {
                anyhow::bail!("the oracle contract accepted {what}");
            };
            let why = Refusal::of(&error).with_context(|| format!("{what}: {error:#}"))?;
            self.page
                .fact("hub rejects", format!("{what}: {}", why.name()))?;
        }
        Ok(())
    }
}
