//! A bar on the terminal while a network's past is read; nothing where there is no terminal.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{prefix} {wide_bar} {pos}/{len} blocks, {eta} left";

/// The bar, while there is one.
pub struct Progress {
    network: String,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub fn new(network: &str) -> Self {
        Self {
            network: network.to_owned(),
            bar: None,
        }
    }

    /// Everything up to `to` is indexed, of a chain whose head is `head`. The bar is shown from the first call that
    /// leaves something to do, until one that leaves nothing.
    pub fn report(&mut self, to: u64, head: u64) {
        if to >= head {
            if let Some(bar) = self.bar.take() {
                bar.finish_and_clear();
            }
            return;
        }
        if self.bar.is_none() && stderr().is_terminal() {
            let style = ProgressStyle::with_template(TEMPLATE);
            let bar = ProgressBar::new(head).with_prefix(self.network.clone());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.reset_eta();
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_length(head);
            bar.set_position(to);
        }
    }
}
