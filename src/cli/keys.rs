//! `intentd keys`: which address signs.

use crate::{config::Config, run};

pub fn run(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
    let (config, mut mistakes) = Config::draft(variables);
    let signer = run::signer(&config, &mut mistakes);
    let signer = mistakes.or(signer)?;
    #[allow(clippy::print_stdout)]
    {
        println!("{:#x}", signer.address());
    }
    Ok(())
}
