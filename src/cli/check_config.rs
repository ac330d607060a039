//! `intentd check-config`: what the daemon would do with this environment. Prints no secret.

use crate::{
    chains::{Chains, Loaded, Opened},
    config::Config,
    run,
};

pub fn run(config: &Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let _guard = runtime.enter();
    let chains = Chains::load(config)?;
    let signer = run::signer(config)?;
    let lines = [
        format!("environment  {}", config.environment),
        format!("listen       {}:{}", config.http_host, config.http_port),
        format!("data         {}", config.data_dir.display()),
        format!("signer       {:#x}", signer.address()),
        format!("finality     {:?}", config.finality_profile),
        format!(
            "keys         {}",
            config.api_keys.as_ref().map_or(0, Vec::len)
        ),
        format!("peers        {}", config.peers.len()),
        format!("hub          {}", settlement(chains.hub())),
        format!("allocator    {}", settlement(chains.allocator())),
        format!("chains       {}", chains.list().len()),
    ];
    #[allow(clippy::print_stdout)]
    for line in lines.into_iter().chain(chains.list().iter().map(chain)) {
        println!("{line}");
    }
    Ok(())
}

fn settlement(chain: Result<&Opened, &str>) -> String {
    match chain {
        Ok(chain) => format!("{} of {} providers", chain.required, chain.providers),
        Err(why) => why.to_owned(),
    }
}

fn chain(loaded: &Loaded) -> String {
    let state = match &loaded.chain {
        Ok(chain) => format!(
            "{} of {} providers, {} blocks, {} s",
            chain.required,
            chain.providers,
            chain.chain.spec.finality.blocks,
            chain.chain.spec.finality.seconds
        ),
        Err(why) => why.clone(),
    };
    format!("  {:<14} {:<14} {state}", loaded.id, loaded.vm_type)
}
