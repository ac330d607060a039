//! What a scripted chain remembers, and what its contracts do to it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use alloy::{
    primitives::{Address, B256, Bytes, Log, U256},
    sol_types::{SolCall, SolError, SolEvent},
};
use vm::protocol::{
    action::Action,
    message::{Domain, Execution, TypedMessage},
    signature::Signature,
};

use super::abi;

/// Gas of a transaction's beginning, of a byte of calldata, and of what contracts do.
const INTRINSIC: u64 = 21_000;
const BYTE: u64 = 16;
const MOVE: u64 = 25_000;
const STEP: u64 = 8_000;

/// What an address runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contract {
    Token,
    Depository,
    Router,
    Proxy {
        router: Address,
    },
    /// Burns this much gas at every call that pays for gas.
    Till {
        burns: u64,
    },
    /// Applies what one of its signers signed.
    Oracle {
        signers: [Address; 2],
    },
    /// Keeps words that this solver leaves.
    Mapping {
        solver: Address,
    },
}

/// Balances by owner and currency; the zero address is the native currency.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub contracts: BTreeMap<Address, Contract>,
    pub balances: BTreeMap<(Address, Address), U256>,
    pub allowances: BTreeMap<(Address, Address, Address), U256>,
    pub nonces: BTreeMap<Address, u64>,
    /// The hub's balances, by account and token id.
    pub hub: BTreeMap<(Address, U256), U256>,
    pub executed: BTreeSet<B256>,
    /// Words of the hub's accounts.
    pub words: BTreeSet<(Address, B256)>,
}

/// A call as contracts see it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub from: Address,
    pub to: Address,
    pub value: U256,
    pub data: &'a [u8],
}

/// One transaction on its way.
pub struct Frame {
    pub state: State,
    pub logs: Vec<Log>,
    pub gas: u64,
    /// Whether the transaction pays for its gas: some contracts look.
    pub priced: bool,
    pub domain: Domain,
}

/// What a revert says.
pub type Reverted = Bytes;

impl State {
    pub fn balance(&self, owner: Address, currency: Address) -> U256 {
        self.balances
            .get(&(owner, currency))
            .copied()
            .unwrap_or_default()
    }

    pub fn give(&mut self, owner: Address, currency: Address, amount: U256) {
        *self.balances.entry((owner, currency)).or_default() += amount;
    }

    pub fn held(&self, account: Address, token: U256) -> U256 {
        self.hub.get(&(account, token)).copied().unwrap_or_default()
    }
}

impl Frame {
    /// Runs a whole transaction: its intrinsic gas, then its call.
    pub fn transact(&mut self, message: &Message<'_>) -> Result<(), Reverted> {
        self.gas += intrinsic(message.data);
        self.call(message)
    }

    fn call(&mut self, message: &Message<'_>) -> Result<(), Reverted> {
        self.gas += STEP;
        self.pay(message.from, message.to, Address::ZERO, message.value)?;
        match self.state.contracts.get(&message.to).cloned() {
            None => Ok(()),
            Some(_) if message.data.is_empty() => Ok(()),
            Some(Contract::Token) => self.token(message),
            Some(Contract::Depository) => self.depository(message),
            Some(Contract::Router) => self.router(message),
            Some(Contract::Proxy { router }) => self.proxy(message, router),
            Some(Contract::Till { burns }) => {
                self.gas += if self.priced { burns } else { 0 };
                Ok(())
            }
            Some(Contract::Oracle { signers }) => self.oracle(message, signers),
            Some(Contract::Mapping { solver }) => {
                let call = abi::leaveCall::abi_decode(message.data);
                let call = call.map_err(|_| says("no function"))?;
                if message.from != solver {
                    return Err(says("not its own word"));
                }
                self.state.words.insert((call.user, call.id));
                Ok(())
            }
        }
    }

    fn pay(
        &mut self,
        from: Address,
        to: Address,
        currency: Address,
        amount: U256,
    ) -> Result<(), Reverted> {
        if amount.is_zero() {
            return Ok(());
        }
        let left = self.state.balance(from, currency).checked_sub(amount);
        self.state
            .balances
            .insert((from, currency), left.ok_or_else(|| says("too little"))?);
        self.state.give(to, currency, amount);
        Ok(())
    }

    fn log(&mut self, emitter: Address, event: &impl SolEvent) {
        self.logs.push(Log {
            address: emitter,
            data: event.encode_log_data(),
        });
    }

    fn moved(
        &mut self,
        token: Address,
        from: Address,
        to: Address,
        amount: U256,
    ) -> Result<(), Reverted> {
        self.gas += MOVE;
        if self.state.contracts.get(&token) != Some(&Contract::Token) {
            return Err(says("no token"));
        }
        self.pay(from, to, token, amount)?;
        self.log(token, &abi::Transfer { from, to, amount });
        Ok(())
    }

    fn spent(
        &mut self,
        token: Address,
        (owner, spender): (Address, Address),
        amount: U256,
    ) -> Result<(), Reverted> {
        let key = (owner, spender, token);
        let allowed = self.state.allowances.get(&key).copied().unwrap_or_default();
        if allowed != U256::MAX {
            let left = allowed.checked_sub(amount);
            let left = left.ok_or_else(|| says("not allowed"))?;
            self.state.allowances.insert(key, left);
        }
        Ok(())
    }

    fn token(&mut self, message: &Message<'_>) -> Result<(), Reverted> {
        let (from, token) = (message.from, message.to);
        if let Ok(call) = abi::transferCall::abi_decode(message.data) {
            return self.moved(token, from, call.to, call.amount);
        }
        if let Ok(call) = abi::transferFromCall::abi_decode(message.data) {
            self.spent(token, (call.from, from), call.amount)?;
            return self.moved(token, call.from, call.to, call.amount);
        }
        let call = abi::approveCall::abi_decode(message.data).map_err(|_| says("no function"))?;
        self.gas += MOVE;
        self.state
            .allowances
            .insert((from, call.spender, token), call.amount);
        Ok(())
    }

    fn depository(&mut self, message: &Message<'_>) -> Result<(), Reverted> {
        let at = message.to;
        let or = |depositor: Address| match depositor.is_zero() {
            true => message.from,
            false => depositor,
        };
        if let Ok(call) = abi::depositNativeCall::abi_decode(message.data) {
            let event = abi::RelayNativeDeposit {
                from: or(call.depositor),
                amount: message.value,
                id: call.id,
            };
            self.log(at, &event);
            return Ok(());
        }
        let call =
            abi::depositErc20Call::abi_decode(message.data).map_err(|_| says("no function"))?;
        self.spent(call.token, (message.from, at), call.amount)?;
        self.moved(call.token, message.from, at, call.amount)?;
        let event = abi::RelayErc20Deposit {
            from: or(call.depositor),
            token: call.token,
            amount: call.amount,
            id: call.id,
        };
        self.log(at, &event);
        Ok(())
    }

    fn router(&mut self, message: &Message<'_>) -> Result<(), Reverted> {
        let router = message.to;
        if let Ok(call) = abi::sweepCall::abi_decode(message.data) {
            let left = self.state.balance(router, call.currency);
            return match call.currency.is_zero() || left.is_zero() {
                true => self.pay(router, call.to, call.currency, left),
                false => self.moved(call.currency, router, call.to, left),
            };
        }
        let fill =
            abi::router::fillCall::abi_decode(message.data).map_err(|_| says("no function"))?;
        for call in fill.calls {
            self.routed(router, call.to, call.data, call.value)?;
        }
        Ok(())
    }

    fn routed(
        &mut self,
        router: Address,
        to: Address,
        data: Bytes,
        value: U256,
    ) -> Result<(), Reverted> {
        self.call(&Message {
            from: router,
            to,
            value,
            data: &data,
        })?;
        match data.is_empty() {
            true => self.log(router, &abi::SolverNativeTransfer { to, amount: value }),
            false => {
                let amount = value;
                self.log(router, &abi::SolverCallExecuted { to, data, amount });
            }
        }
        Ok(())
    }

    fn proxy(&mut self, message: &Message<'_>, router: Address) -> Result<(), Reverted> {
        let fill =
            abi::proxy::fillCall::abi_decode(message.data).map_err(|_| says("no function"))?;
        for paid in fill.payments {
            self.spent(paid.token, (message.from, message.to), paid.amount)?;
            self.moved(paid.token, message.from, paid.to, paid.amount)?;
        }
        self.pay(message.to, router, Address::ZERO, message.value)?;
        for call in fill.calls {
            self.routed(router, call.to, call.data, call.value)?;
        }
        Ok(())
    }

    fn oracle(&mut self, message: &Message<'_>, signers: [Address; 2]) -> Result<(), Reverted> {
        let call = abi::executeCall::abi_decode(message.data).map_err(|_| says("no function"))?;
        let key = call.idempotencyKey;
        if self.state.executed.contains(&key) {
            let error = abi::AlreadyExecuted {
                idempotencyKey: key,
            };
            return Err(error.abi_encode().into());
        }
        let execution = Execution {
            idempotency_key: key,
            actions: call.actions,
        };
        let digest = execution.digest(&self.domain);
        let signed = call.signatures.iter().any(|signature| {
            let signer = signer(digest, signature);
            signer.is_some_and(|signer| signers.contains(&signer))
        });
        if !signed {
            return Err(says("not signed"));
        }
        self.state.executed.insert(key);
        for action in &execution.actions {
            self.gas += MOVE;
            self.act(action)?;
        }
        Ok(())
    }

    fn act(&mut self, action: &[u8]) -> Result<(), Reverted> {
        let action = Action::decode(action).map_err(|_| says("no action"))?;
        let (from, to, token, amount) = match action {
            Action::Mint { to, token, amount }
            | Action::FastMint {
                to, token, amount, ..
            } => (None, Some(to), token, amount),
            Action::Burn {
                from,
                token,
                amount,
            } => (Some(from), None, token, amount),
            Action::Transfer {
                from,
                to,
                token,
                amount,
            } => (Some(from), Some(to), token, amount),
        };
        if let Some(from) = from {
            let left = self.state.held(from, token).checked_sub(amount);
            let left = left.ok_or_else(|| says("insufficient hub balance"))?;
            self.state.hub.insert((from, token), left);
        }
        if let Some(to) = to {
            *self.state.hub.entry((to, token)).or_default() += amount;
        }
        Ok(())
    }
}

/// Signatures whose signers are remembered.
const REMEMBERED: usize = 4_096;

/// Signers by digest and signature; `None` where the signature is none.
type Signers = HashMap<(B256, Vec<u8>), Option<Address>>;

/// Who signed a digest. It is asked for the same by each provider, and again for a block.
pub fn signer(digest: B256, signature: &[u8]) -> Option<Address> {
    thread_local! {
        static KNOWN: RefCell<Signers> = RefCell::default();
    }
    let recover = || Signature::from_bytes(signature).ok()?.recover(&digest).ok();
    KNOWN.with_borrow_mut(|known| {
        if known.len() > REMEMBERED {
            known.clear();
        }
        let signed = known.entry((digest, signature.to_vec()));
        *signed.or_insert_with(recover)
    })
}

/// What a transaction takes before anything is called.
pub fn intrinsic(data: &[u8]) -> u64 {
    INTRINSIC + BYTE * data.len() as u64
}

/// `Error(string)`.
fn says(what: &str) -> Reverted {
    alloy::sol_types::Revert::from(what).abi_encode().into()
}
