//! What the story's statements rest on: whoever has the lists of chains and knows the signers verifies each of them,
//! without a provider and without a key.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devnet::world::Devnet;
use intentd::{
    cli,
    store::{
        Making, Range, Store,
        pair::{Directories, Pair},
        rows,
    },
};
use tokio::signal::unix::Signal;
use url::Url;

use super::{
    oracles::{Alone, Setup, data_dir},
    page::Page,
};

/// What the reader of a statement knows. Besides, whoever asks an oracle why it signed knows its `DATA_DIR`.
const KNOWN: [&str; 4] = ["ENVIRONMENT", "CHAINS_FILE", "HUB_FILE", "ORACLE_SIGNERS"];

/// The oracles of a story that is told, all of them ended.
pub struct Proof<'a> {
    pub page: &'a Page,
    pub world: &'a Devnet,
    pub setup: &'a Setup,
    /// Where the oracles were.
    pub urls: &'a [Url],
    /// Where they left their stores.
    pub directory: &'a Path,
}

impl Proof<'_> {
    /// Exports every statement of every oracle and verifies it, unless somebody ends it before.
    pub async fn show(&self, terminate: &mut Signal) -> Result<()> {
        tokio::select! {
            shown = self.all() => shown,
            _ = tokio::signal::ctrl_c() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    }

    async fn all(&self) -> Result<()> {
        self.page.heading("Evidence")?;
        for (number, oracle) in self.world.oracles.iter().enumerate() {
            let verified = self.verified(number).await;
            let verified = verified.with_context(|| oracle.name.clone())?;
            let what = format!("{verified} statements verified without a provider");
            self.page.fact(&oracle.name, what)?;
        }
        Ok(())
    }

    /// How many statements oracle `number` has signed; an error where one is not verified.
    async fn verified(&self, number: usize) -> Result<usize> {
        let keys = statements(data_dir(self.directory, number)).await?;
        ensure!(!keys.is_empty(), "no statement was signed");
        let of = (self.setup, number);
        let oracle = Alone::start(self.world, of, self.urls, self.directory).await?;
        let all = oracle.variables.iter();
        let known = all.filter(|(name, _)| KNOWN.contains(&name.as_str()));
        let known: Vec<_> = known.cloned().collect();
        let data_dir = oracle.data_dir.display().to_string();
        let asking = [&known[..], &[("DATA_DIR".to_owned(), data_dir)][..]].concat();
        let file = self.directory.join("statement.json");
        let path = file.display().to_string();
        for key in &keys {
            let document = cli::told(&["explain", "--json", key], asking.clone()).await?;
            std::fs::write(&file, document)?;
            let told = cli::told(&["verify", &path], known.clone()).await;
            let told = told.with_context(|| format!("{key} is not verified"))?;
            ensure!(told.starts_with(&format!("verified    {key}\n")), "{told}");
        }
        oracle.stop().await?;
        Ok(keys.len())
    }
}

/// The keys of all statements in the journal of a daemon that has ended.
async fn statements(data_dir: PathBuf) -> Result<Vec<String>> {
    let pair = Pair::open(&Directories::new(data_dir, None), Making::Refused)?;
    let all = Range::new(rows::ENTRY, &[], None, usize::MAX);
    let found = pair.journal.scan(all).await;
    pair.close().await;
    let names = found?.into_iter().map(|(key, _)| key.name);
    names.map(|name| Ok(String::from_utf8(name)?)).collect()
}
