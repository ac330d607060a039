//! Features that this version does not have: refused, never ignored.

use vm::{Address, ChainSpec, trade::Choices};

use super::{
    super::{
        body::{Body, on},
        code::{Code, Refused},
    },
    text,
};

/// Chains of other families (guide: protocol 2.1): known to integrators, not traded yet.
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

/// The default lifetime of a permit, in seconds. A body that names it asks for nothing.
const PERMIT_EXPIRY: u64 = 600;

/// Refuses a body that asks for what is not here yet.
pub fn refuse(body: &Body, keyed: bool) -> Result<(), Refused> {
    if on(body.subsidize_fees) && !keyed {
        let what = "subsidizeFees: expected an API key, whose wallet pays";
        return Err(Refused::new(Code::Unauthorized, what));
    }
    if on(body.use_external_liquidity) {
        let what = "useExternalLiquidity: no canonical route is connected";
        return Err(Refused::new(Code::UnsupportedRoute, what));
    }
    let expiry = body.permit_expiry.map(|given| given.0);
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
        (
            "permitExpiry",
            expiry.is_some_and(|seconds| seconds != PERMIT_EXPIRY),
        ),
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

/// What the caller wants of the user's transactions. Where the origin's family lets nobody choose, a value is taken
/// that says what happens anyway: the user pays for the deposit, and nothing is added to it.
pub fn choices(body: &Body, origin: &ChainSpec, user: &Address) -> Result<Choices, Refused> {
    let given = body.deposit_fee_payer.as_deref();
    let given = given.map(|given| text::owner(origin, "depositFeePayer", given));
    let choices = Choices {
        fee_payer: given.transpose()?.filter(|payer| payer != user),
        work_limit: on(body.include_compute_unit_limit),
        shared_accounts: body.use_shared_accounts.map(|given| given.0),
    };
    if origin.family.choices {
        return Ok(choices);
    }
    if choices.fee_payer.is_some() {
        let what =
            "depositFeePayer: expected the user, who pays for the deposit on the origin chain";
        return Err(unsupported(what));
    }
    let asked = [
        ("useSharedAccounts", choices.shared_accounts == Some(true)),
        ("includeComputeUnitLimit", choices.work_limit),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        None => Ok(Choices::default()),
        Some((field, _)) => {
            let what = format!("{field}: expected false: the origin chain has nothing of the kind");
            Err(unsupported(&what))
        }
    }
}

/// Refuses choices for a plain payment, which goes as it is.
pub fn of_payment(choices: &Choices) -> Result<(), Refused> {
    match *choices == Choices::default() {
        true => Ok(()),
        false => {
            let what = "depositFeePayer, useSharedAccounts, includeComputeUnitLimit: a payment on one chain has no deposit";
            Err(unsupported(what))
        }
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
