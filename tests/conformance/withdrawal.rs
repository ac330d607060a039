//! A withdrawal, and what is claimed of how it ended.

use alloy::{
    hex,
    primitives::{B256, U256},
};
use intentd::attest::service::{AddressClaim, WithdrawalClaim};
use vm::{
    ChainId, EvmAddress, WithdrawalInfo,
    protocol::{
        action::Action,
        hub::{WithdrawalAccount, alias, token_id},
        id,
        request::PayloadRequest,
    },
};

use crate::{
    cells::{Played, Stop, ensure},
    deal::solver,
    family::{AMOUNT, ExecutionKind, Script, Withdrawing},
    ledger::Tx,
    verdict::{Signed, Verdict},
    world::{HOME, SOLVER, World},
};

/// The withdrawer's number for the withdrawal.
const NONCE: u64 = 7;

/// What a withdrawer asked for, and what is shown as it.
#[derive(Clone)]
pub struct Withdrawal {
    script: &'static dyn Script,
    /// What the claim says that was asked for.
    pub recipient: String,
    pub currency: String,
    pub amount: u64,
    /// The family's encoding.
    pub encoded: Vec<u8>,
}

/// What the hub knows the withdrawal by.
struct Accounts {
    /// Has the money until the withdrawal ends.
    apart: EvmAddress,
    owner: EvmAddress,
    token: U256,
}

/// One that nothing is wrong with.
pub fn good(script: &'static dyn Script) -> Withdrawing<'static> {
    Withdrawing {
        to: script.accounts().recipient,
        currency: script.currencies()[0],
        amount: AMOUNT,
        number: 1,
        // In 2106.
        until: u64::from(u32::MAX),
    }
}

impl Withdrawal {
    /// The withdrawal that was asked for.
    pub fn new(script: &'static dyn Script, asked: &Withdrawing<'_>) -> Self {
        Self {
            script,
            recipient: asked.to.to_owned(),
            currency: asked.currency.to_owned(),
            amount: asked.amount,
            encoded: script.withdrawal(asked),
        }
    }

    /// The same request, with another encoded withdrawal.
    pub fn shown_as(&self, encoded: Vec<u8>) -> Self {
        Self {
            encoded,
            ..self.clone()
        }
    }

    fn info(&self) -> WithdrawalInfo {
        let codec = self.script.family().withdrawals.unwrap();
        codec.describe(&codec.decode(&self.encoded).unwrap())
    }

    fn id(&self) -> B256 {
        self.info().id.unwrap().parse().unwrap()
    }

    fn accounts(&self, world: &World) -> Accounts {
        let (home, family) = (&world.home.spec.id, self.script.family());
        let currency = family.address(&self.currency).unwrap();
        let withdrawer = format!("{:#x}", solver().address());
        let withdrawer = vm::SETTLEMENT.account(&withdrawer).unwrap();
        let owner = alias(&ChainId::new(SOLVER), &withdrawer);
        let account = WithdrawalAccount {
            chain: home,
            depository: world.home.spec.depository.as_ref().unwrap(),
            currency: &currency,
            recipient: &family.address(&self.recipient).unwrap(),
            owner,
            nonce: U256::from(NONCE),
        };
        Accounts {
            apart: account.address(),
            owner,
            token: token_id(home, &currency),
        }
    }

    /// The id under which the allocator records what was asked for.
    fn payload(&self, world: &World) -> B256 {
        let (spec, family) = (&world.home.spec, self.script.family());
        let text = |text: &str| family.address(text).unwrap().text().to_owned();
        let owner = self.accounts(world).owner;
        let request = PayloadRequest {
            chain_id: spec.hub_chain_id.to_string(),
            depository: spec.depository.as_ref().unwrap().text().to_owned(),
            currency: text(&self.currency),
            amount: U256::from(self.amount),
            spender: format!("{owner:#x}"),
            recipient: text(&self.recipient),
            nonce: nonce(),
            additional_data: self.script.additional(),
        };
        let params = family.withdrawals.unwrap().normalize_payload(&request);
        params.unwrap().message().unwrap().payload_id()
    }

    /// Has the allocator record this withdrawal under the request.
    pub fn record(&self, world: &World) {
        let spending = self.info().spending;
        let payload = spending.map_or_else(
            || self.encoded.clone(),
            |spending| spending.payload.to_vec(),
        );
        world.allocator.record(self.payload(world), &payload);
    }

    pub fn execution(&self, kind: ExecutionKind) -> Result<Tx, Stop> {
        Ok(self.script.execution(kind, &self.encoded)?)
    }

    /// What is signed of how it ended; the claim may name a transaction.
    pub async fn claimed(&self, world: &World, transaction: Option<&str>) -> Verdict {
        self.claimed_for(world, HOME, transaction).await
    }

    /// The same, with a request for a withdrawal on `chain`.
    pub async fn claimed_for(
        &self,
        world: &World,
        chain: &str,
        transaction: Option<&str>,
    ) -> Verdict {
        let address = AddressClaim {
            chain: chain.to_owned(),
            currency: self.currency.clone(),
            withdrawer: format!("{:#x}", solver().address()),
            withdrawer_chain: SOLVER.to_owned(),
            recipient: self.recipient.clone(),
            nonce: nonce(),
        };
        let claim = WithdrawalClaim {
            chain: HOME.to_owned(),
            withdrawal: hex::encode_prefixed(&self.encoded),
            transaction: transaction.map(str::to_owned),
            address,
            additional: self.script.additional(),
            hints: None,
        };
        Verdict::withdrawal(&world.oracle, world.oracle.withdrawal(&claim, None).await)
    }

    /// Whether exactly this was signed: what was set apart is burned.
    pub fn burned(&self, world: &World, signed: &Signed) -> Played {
        let Accounts { apart, token, .. } = self.accounts(world);
        let burn = Action::Burn {
            from: apart,
            token,
            amount: U256::from(self.amount),
        };
        self.ends(signed, &burn, &[])
    }

    /// Whether exactly this was signed: what was set apart returns to its owner.
    pub fn returned(&self, world: &World, signed: &Signed) -> Played {
        let Accounts {
            apart,
            owner,
            token,
        } = self.accounts(world);
        let back = Action::Transfer {
            from: apart,
            to: owner,
            token,
            amount: U256::from(self.amount),
        };
        self.ends(signed, &back, &["2"])
    }

    fn ends(&self, signed: &Signed, action: &Action, ending: &[&str]) -> Played {
        let id = self.id().to_string();
        let key = id::deterministic(&[&[id.as_str(), ""][..], ending].concat());
        let exactly = signed.key == key && signed.actions == [action.encode()];
        ensure(exactly, || {
            format!("{signed:?} is not {action:?} under {key}")
        })
    }
}

fn nonce() -> String {
    B256::from(U256::from(NONCE)).to_string()
}
