//! What people read: headings, facts and balances, on standard output.

use std::io::{self, IsTerminal, Write};

use alloy::primitives::{Address, U256, utils::format_units};
use anyhow::Result;
use devnet::world::{DevChain, Devnet};

/// Where lines go.
pub struct Page {
    bold: bool,
}

impl Page {
    pub fn new() -> Self {
        Self {
            bold: io::stdout().is_terminal(),
        }
    }

    pub fn heading(&self, text: &str) -> Result<()> {
        let (on, off) = if self.bold {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        Ok(writeln!(io::stdout(), "\n{on}{text}{off}")?)
    }

    /// One fact: what, and what about it.
    pub fn fact(&self, what: &str, about: impl std::fmt::Display) -> Result<()> {
        Ok(writeln!(io::stdout(), "  {what:<22} {about}")?)
    }

    /// A line to copy, as it stands.
    pub fn line(&self, text: &str) -> Result<()> {
        Ok(writeln!(io::stdout(), "{text}")?)
    }
}

/// A balance that is read back from a chain.
enum WatchedBalance<'a> {
    Native(&'a DevChain, Address),
    Token(&'a DevChain, Address),
    Hub(Address, U256),
}

/// Balances worth watching, and what they were when last looked at.
pub struct Ledger<'a> {
    world: &'a Devnet,
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    label: String,
    place: WatchedBalance<'a>,
    unit: Unit,
    last: U256,
}

/// How an amount is written.
#[derive(Clone, Copy)]
pub enum Unit {
    Eth,
    Usd,
}

impl Unit {
    pub fn show(self, amount: U256) -> String {
        let (decimals, name) = match self {
            Self::Eth => (18, "ETH"),
            Self::Usd => (6, "USD"),
        };
        let text = format_units(amount, decimals).unwrap_or_default();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{whole}{point}{fraction} {name}")
    }
}

impl<'a> Ledger<'a> {
    pub fn new(world: &'a Devnet) -> Self {
        Self {
            world,
            entries: Vec::new(),
        }
    }

    /// Watches both currencies of an account of a site.
    pub async fn watch(&mut self, site: &'a DevChain, who: &str, account: Address) -> Result<()> {
        let label = format!("{}, {who}", site.id);
        self.add(
            label.clone(),
            WatchedBalance::Native(site, account),
            Unit::Eth,
        )
        .await?;
        self.add(label, WatchedBalance::Token(site, account), Unit::Usd)
            .await
    }

    /// Watches what an account holds of the origin's currencies at the hub.
    pub async fn watch_hub(&mut self, who: &str, account: Address) -> Result<()> {
        let origin = &self.world.origin;
        for (currency, unit) in [(Address::ZERO, Unit::Eth), (origin.token, Unit::Usd)] {
            let place = WatchedBalance::Hub(account, origin.token_id(currency)?);
            self.add(format!("hub, {who}"), place, unit).await?;
        }
        Ok(())
    }

    async fn add(&mut self, label: String, place: WatchedBalance<'a>, unit: Unit) -> Result<()> {
        let last = self.read(&place).await?;
        self.entries.push(Entry {
            label,
            place,
            unit,
            last,
        });
        Ok(())
    }

    /// Reads every balance again and prints those that changed.
    pub async fn changes(&mut self, page: &Page) -> Result<()> {
        let mut now = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            now.push(self.read(&entry.place).await?);
        }
        for (entry, now) in self.entries.iter_mut().zip(now) {
            if entry.last != now {
                let (old, new) = (entry.unit.show(entry.last), entry.unit.show(now));
                page.fact("", format!("{:<30} {old} -> {new}", entry.label))?;
                entry.last = now;
            }
        }
        Ok(())
    }

    async fn read(&self, place: &WatchedBalance<'_>) -> Result<U256> {
        match place {
            WatchedBalance::Native(site, account) => site.node.balance(*account).await,
            WatchedBalance::Token(site, account) => site.token_balance(site.token, *account).await,
            WatchedBalance::Hub(account, token) => self.world.hub.balance(*account, *token).await,
        }
    }
}
