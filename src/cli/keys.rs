//! `intentd keys`: which address signs.

use crate::{config::Config, run};

pub fn run(config: &Config) -> anyhow::Result<()> {
    let signer = run::signer(config)?;
    #[allow(clippy::print_stdout)]
    {
        println!("{:#x}", signer.address());
    }
    Ok(())
}
