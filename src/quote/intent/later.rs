//! Features that this version does not have: refused, never ignored.

use super::super::{
    body::{Body, on},
    code::{Code, Refused},
};

/// Chains of other families (integrator-api.md 1): known to integrators, not traded yet.
const CHAINS: &[u64] = &[
    1337,
    8_253_038,
    9_092_725,
    792_703_809,
    728_126_428,
    224_235_520,
    3_586_256,
    9_286_185,
    543_210,
];

/// Refuses a body that asks for what is not here yet. Fields that only tune what is refused itself ask for nothing:
/// `permitExpiry` is of permits; `depositFeePayer`, `maxRouteLength`, `useSharedAccounts` and
/// `includeComputeUnitLimit` are of Solana origins, which clients may send with every body.
pub fn refuse(body: &Body, keyed: bool) -> Result<(), Refused> {
    if on(body.subsidize_fees) && !keyed {
        let what = "subsidizeFees: expected an API key, whose wallet pays";
        return Err(Refused::new(Code::Unauthorized, what));
    }
    if on(body.use_external_liquidity) {
        let what = "useExternalLiquidity: no canonical route is connected";
        return Err(Refused::new(Code::UnsupportedRoute, what));
    }
    let asked = [
        ("subsidizeFees", on(body.subsidize_fees)),
        (
            "sponsoredFeeComponents",
            body.sponsored_fee_components.is_some(),
        ),
        (
            "maxSubsidizationAmount",
            body.max_subsidization_amount.is_some(),
        ),
        ("subsidizeRent", on(body.subsidize_rent)),
        ("usePermit", on(body.use_permit)),
        ("topupGas", on(body.topup_gas)),
        ("topupGasAmount", body.topup_gas_amount.is_some()),
        ("useDepositAddress", on(body.use_deposit_address)),
        ("strict", on(body.strict)),
        ("recoveryAddress", body.recovery_address.is_some()),
        ("fixedRate", body.fixed_rate.is_some()),
    ];
    if let Some((field, _)) = asked.iter().find(|(_, asked)| *asked) {
        return Err(unsupported(&format!("{field}: not supported yet")));
    }
    match body.protocol_version.as_deref() {
        None | Some("v2" | "preferV2") => Ok(()),
        Some(_) => Err(Refused::new(
            Code::InvalidField,
            "protocolVersion: expected v2",
        )),
    }
}

/// A chain number that the market does not list.
pub fn chain(field: &str, number: u64) -> Refused {
    if CHAINS.contains(&number) {
        let what = format!("{field}: chain {number} is not traded yet");
        return Refused::new(Code::UnsupportedRoute, what);
    }
    let what = format!("{field}: expected the id of a supported chain");
    Refused::new(Code::UnsupportedChain, what)
}

fn unsupported(what: &str) -> Refused {
    Refused::new(Code::UnsupportedExecutionType, what)
}
