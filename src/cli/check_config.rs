//! `intentd check-config`: what the daemon would do with this environment. Prints no secret.

use crate::{
    chains::{Chains, Loaded},
    config::Config,
    run::Parts,
};

pub fn run(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let _guard = runtime.enter();
    let (config, mistakes) = Config::draft(variables);
    let Parts {
        signer,
        chains,
        settings,
    } = Parts::of(&config, mistakes)?;
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
        format!("hub          {}, {}", settings.id, hub(&chains)),
        format!("unused       {}", config.unused.join(" ")),
        format!("chains       {}", chains.list().len()),
    ];
    #[allow(clippy::print_stdout)]
    for line in lines.into_iter().chain(chains.list().iter().map(chain)) {
        println!("{line}");
    }
    Ok(())
}

fn hub(chains: &Chains) -> String {
    match chains.hub() {
        Ok(hub) => format!("{} of {} providers", hub.required, hub.providers),
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
