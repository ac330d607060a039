//! The hub's actions and idempotency keys for a claim (guide: protocol 5, 7.1, 7.5 and 8.5). Pure: no I/O, no clock.

use std::collections::HashMap;

use vm::{
    Address, Amount, B256, ChainId, EvmAddress, U256,
    protocol::{
        action::Action,
        hub::{OrderAccount, alias, token_id},
        id,
        message::Execution,
    },
};

use super::{Refusal, deposit::Message, order::Terms, statement::Mode};

/// The contracts that a fast mint names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastMint {
    pub rate_limiter: EvmAddress,
    /// Zero where the hub has none.
    pub fee_calculator: EvmAddress,
}

/// A fast mint needs the hub's rate limiter, and the hub file names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fast mode needs the hub's rate limiter")]
pub struct NoRateLimiter;

/// Mints every deposit of a transaction to its order's account, or to the depositor's where it names no order. `None`
/// without deposits.
pub fn deposit(
    messages: &[Message],
    mode: Mode,
    fast: Option<FastMint>,
) -> Result<Option<Execution>, NoRateLimiter> {
    let Some(first) = messages.first() else {
        return Ok(None);
    };
    let fast = match mode {
        Mode::Slow => None,
        Mode::Fast => Some(fast.ok_or(NoRateLimiter)?),
    };
    let actions = messages.iter().map(|m| mint(m, fast).encode()).collect();
    Ok(Some(Execution {
        idempotency_key: mint_key(first),
        actions,
    }))
}

/// The idempotency key of the execution that mints all deposits of a transaction, fast or slow, whichever oracle
/// signed it.
pub fn mint_key(message: &Message) -> B256 {
    id::deterministic(&[message.chain.as_str(), &message.transaction])
}

fn mint(message: &Message, fast: Option<FastMint>) -> Action {
    let deposit = &message.deposit;
    let to = order_account(message).unwrap_or_else(|| alias(&message.chain, &deposit.depositor));
    let token = token_id(&message.chain, &deposit.currency);
    let amount = deposit.amount;
    match fast {
        None => Action::Mint { to, token, amount },
        Some(contracts) => Action::FastMint {
            to,
            token,
            amount,
            fee_calculator: contracts.fee_calculator,
            fee_calculator_data: vm::Bytes::new(),
            rate_limiter: contracts.rate_limiter,
            rate_limiter_data: vm::Bytes::new(),
        },
    }
}

/// Moves the deposits of an order to its solver, and after a fill the fees to their recipients. Refuses an outcome
/// without a deposit, and a deposit that names no order.
pub fn outcome(
    terms: &Terms,
    solver: EvmAddress,
    funded: &[Message],
    with_fees: bool,
) -> Result<Execution, Refusal> {
    if funded.is_empty() {
        return Err(Refusal::NoDeposit);
    }
    let deposits = arranged(terms, funded).into_iter().map(|message| {
        let from = order_account(message).ok_or(Refusal::NoOrder)?;
        let token = token_id(&message.chain, &message.deposit.currency);
        Ok(transfer(from, solver, token, message.deposit.amount))
    });
    let fees = terms.fees.iter().filter(|_| with_fees).map(|fee| {
        let to = alias(&fee.recipient_chain, &fee.recipient);
        let token = token_id(&fee.currency_chain, &fee.currency);
        Ok(transfer(solver, to, token, fee.amount))
    });
    let actions = deposits.chain(fees).collect::<Result<Vec<_>, Refusal>>()?;
    let ids: Vec<B256> = funded.iter().map(|message| message.onchain_id).collect();
    Ok(Execution {
        idempotency_key: id::outcome(&ids, terms.id),
        actions: actions.iter().map(Action::encode).collect(),
    })
}

/// The deposits in the order in which an outcome moves them, whatever input a claim names them for. Among inputs of
/// one chain and currency the smallest gets the smallest deposit, and of equal deposits the first gets the lowest id.
/// A claim may name deposits crosswise that fit either input, and every oracle must reach one digest. Where only one
/// assignment fits, the result is that one, so oracles that use the named assignment agree.
fn arranged<'a>(terms: &Terms, funded: &'a [Message]) -> Vec<&'a Message> {
    let mut alike: HashMap<U256, Vec<usize>> = HashMap::new();
    for (at, (input, message)) in terms.inputs.iter().zip(funded).enumerate() {
        let (chain, deposit) = (&message.chain, &message.deposit);
        if input.chain == chain.as_str() && input.currency == deposit.currency {
            let token = token_id(chain, &deposit.currency);
            alike.entry(token).or_default().push(at);
        }
    }
    let mut arranged: Vec<&Message> = funded.iter().collect();
    for mut positions in alike.into_values() {
        let mut messages: Vec<&Message> = positions.iter().map(|at| &funded[*at]).collect();
        messages.sort_unstable_by_key(|message| (message.deposit.amount, message.onchain_id));
        positions.sort_unstable_by_key(|at| (terms.inputs[*at].amount, *at));
        for (at, message) in positions.into_iter().zip(messages) {
            arranged[at] = message;
        }
    }
    arranged
}

/// Moves a deposit from its order's account back to its depositor's.
pub fn recovered(message: &Message) -> Result<Execution, Refusal> {
    let deposit = &message.deposit;
    let from = order_account(message).ok_or(Refusal::NoOrder)?;
    let to = alias(&message.chain, &deposit.depositor);
    let token = token_id(&message.chain, &deposit.currency);
    let back = transfer(from, to, token, deposit.amount);
    let key = id::deterministic(&[&message.onchain_id.to_string(), "recover"]);
    Ok(one(key, &back))
}

/// Refuses a claim whose execution would move more than its deposits brought: one without a deposit, or with fees of
/// a currency that no single deposit covers.
pub fn check_covered(terms: &Terms, funded: &[Message], with_fees: bool) -> Result<(), Refusal> {
    if funded.is_empty() {
        return Err(Refusal::NoDeposit);
    }
    // The largest deposit of each currency.
    let mut brought: HashMap<U256, Amount> = HashMap::new();
    for message in funded {
        let token = token_id(&message.chain, &message.deposit.currency);
        let largest = brought.entry(token).or_default();
        *largest = (*largest).max(message.deposit.amount);
    }
    for fee in terms.fees.iter().filter(|_| with_fees) {
        let token = token_id(&fee.currency_chain, &fee.currency);
        let left = brought.entry(token).or_default();
        *left = left.checked_sub(fee.amount).ok_or(Refusal::Uncovered)?;
    }
    Ok(())
}

/// An owner's balance that moves to another hub account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movement {
    pub from: EvmAddress,
    pub to: EvmAddress,
    pub token: U256,
    pub amount: Amount,
}

impl Movement {
    /// `settlement` is the hub's name; the nonce counts without case.
    pub fn execution(&self, settlement: &str, nonce: &str) -> Execution {
        let [from, to] = [self.from, self.to].map(|account| format!("{account:#x}"));
        let token = self.token.to_string();
        let key = id::deterministic(&[settlement, &token, &from, &to, nonce]);
        one(key, &transfer(self.from, self.to, self.token, self.amount))
    }
}

/// The hub account (alias) of `address` of `chain`.
pub fn account(chain: &str, address: &Address) -> EvmAddress {
    alias(&ChainId::new(chain), address)
}

/// The hub's balance for a withdrawal, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escrow {
    pub address: EvmAddress,
    pub owner: EvmAddress,
    pub token: U256,
    pub amount: Amount,
}

impl Escrow {
    /// Burns an executed withdrawal's balance. The idempotency key is that of a claim without a transaction (guide:
    /// protocol 8.5): callers name different transactions, and all oracles must reach one key.
    pub fn burned(&self, withdrawal: B256) -> Execution {
        let burn = Action::Burn {
            from: self.address,
            token: self.token,
            amount: self.amount,
        };
        one(id::deterministic(&[&withdrawal.to_string(), ""]), &burn)
    }

    /// Returns an expired withdrawal's balance to its owner; the key as in [`Escrow::burned`].
    pub fn returned(&self, withdrawal: B256) -> Execution {
        let back = transfer(self.address, self.owner, self.token, self.amount);
        one(
            id::deterministic(&[&withdrawal.to_string(), "", "2"]),
            &back,
        )
    }

    /// Moves the owner's balance to the withdrawal address. `settlement` is the hub's name.
    pub fn initiated(&self, settlement: &str) -> Execution {
        let apart = transfer(self.owner, self.address, self.token, self.amount);
        let address = format!("{:#x}", self.address);
        let key = id::deterministic(&[settlement, &self.token.to_string(), &address]);
        one(key, &apart)
    }
}

/// Gives the amount of an expired withdraw request back to the account that it was taken from, or to the order's.
pub fn minted_back(request: B256, to: EvmAddress, token: U256, amount: Amount) -> Execution {
    let key = id::deterministic(&[&request.to_string(), "2"]);
    one(key, &Action::Mint { to, token, amount })
}

fn one(idempotency_key: B256, action: &Action) -> Execution {
    Execution {
        idempotency_key,
        actions: vec![action.encode()],
    }
}

fn transfer(from: EvmAddress, to: EvmAddress, token: U256, amount: Amount) -> Action {
    Action::Transfer {
        from,
        to,
        token,
        amount,
    }
}

/// The hub account of the order that a deposit names; `None` if it names none.
pub fn order_account(message: &Message) -> Option<EvmAddress> {
    let deposit: B256 = message.deposit.id.parse().ok()?;
    (!deposit.is_zero()).then(|| {
        OrderAccount {
            chain: &message.chain,
            depositor: &message.deposit.depositor,
            timestamp: U256::from(message.timestamp),
            deposit,
        }
        .address()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attest::{deposit, fixtures::Fixture};

    const CONTRACTS: FastMint = FastMint {
        rate_limiter: EvmAddress::repeat_byte(1),
        fee_calculator: EvmAddress::repeat_byte(2),
    };

    fn messages(change: fn(&mut vm::Deposit)) -> Vec<Message> {
        let mut read = Fixture::new().deposits.remove(0);
        change(&mut read.deposits()[0]);
        deposit::settled(&read.seen()).unwrap()
    }

    fn action(messages: &[Message], mode: Mode, fast: Option<FastMint>) -> Action {
        let execution = deposit(messages, mode, fast).unwrap().unwrap();
        Action::decode(&execution.actions[0]).unwrap()
    }

    #[test]
    fn fast_deposit_names_limiter_and_calculator_and_needs_a_limiter() {
        let messages = messages(|_| {});
        let Action::FastMint {
            rate_limiter,
            fee_calculator,
            amount,
            ..
        } = action(&messages, Mode::Fast, Some(CONTRACTS))
        else {
            panic!("no fast mint");
        };
        assert_eq!(rate_limiter, CONTRACTS.rate_limiter);
        assert_eq!(fee_calculator, CONTRACTS.fee_calculator);
        assert_eq!(amount, U256::from(1000));
        assert_eq!(deposit(&messages, Mode::Fast, None), Err(NoRateLimiter));
        let slow = action(&messages, Mode::Slow, Some(CONTRACTS));
        assert!(matches!(slow, Action::Mint { .. }));
    }

    #[test]
    fn deposit_without_an_order_goes_to_its_depositor() {
        let ordered = messages(|_| {});
        let zero = messages(|deposit| deposit.id = B256::ZERO.to_string().into());
        let depositor = alias(&zero[0].chain, &zero[0].deposit.depositor);
        let to = |messages: &[Message]| match action(messages, Mode::Slow, None) {
            Action::Mint { to, .. } => to,
            other => panic!("{other:?}"),
        };
        assert_eq!(to(&zero), depositor);
        assert_ne!(to(&ordered), depositor);
        assert_eq!(deposit(&[], Mode::Slow, None), Ok(None));
    }

    /// The transfers of the actions, for an order with native inputs of the amounts `inputs`. `named` has the amounts
    /// and ids of the deposits, in the order in which the claim names them.
    fn moved(inputs: &[u64], named: &[(u64, u8)]) -> Vec<Action> {
        let fixture = Fixture::ordering(|order| {
            let input = order.inputs[0].clone();
            order.inputs = inputs.iter().map(|_| input.clone()).collect();
            for (input, amount) in order.inputs.iter_mut().zip(inputs) {
                input.payment.amount = amount.to_string();
            }
        });
        let first = messages(|_| {}).remove(0);
        let named = named.iter().map(|(amount, id)| {
            let mut message = first.clone();
            message.onchain_id = B256::with_last_byte(*id);
            message.deposit.amount = U256::from(*amount);
            // A different time, and so another order account for each deposit.
            message.timestamp += u64::from(*id);
            message
        });
        let named: Vec<Message> = named.collect();
        let execution = outcome(&fixture.terms(), EvmAddress::ZERO, &named, false).unwrap();
        let actions = execution.actions.iter();
        actions.map(|a| Action::decode(a).unwrap()).collect()
    }

    #[test]
    fn deposits_of_like_inputs_are_moved_in_one_order_whatever_is_named() {
        for [one, other] in [
            [(1_000, 1), (1_000, 2)],
            [(1_000, 2), (1_000, 1)],
            [(1_005, 1), (1_000, 2)],
        ] {
            let actions = moved(&[1_000, 1_000], &[one, other]);
            assert_eq!(actions.len(), 2);
            assert_eq!(actions, moved(&[1_000, 1_000], &[other, one]));
        }
        // Three deposits, two of them named crosswise.
        let (a, b, c) = ((500, 7), (1_000, 9), (1_000, 8));
        let inputs = [1_000, 500, 1_000];
        assert_eq!(moved(&inputs, &[b, a, c]), moved(&inputs, &[c, a, b]));
    }

    /// No claim leads here: what judges it refuses both before.
    #[test]
    fn an_outcome_moves_deposits_of_an_order_or_is_none() {
        let terms = Fixture::new().terms();
        let of = |funded: &[Message]| outcome(&terms, EvmAddress::ZERO, funded, true).map(drop);
        let unordered = messages(|deposit| deposit.id = B256::ZERO.to_string().into());
        assert_eq!(of(&messages(|_| {})), Ok(()));
        assert_eq!(of(&[]), Err(Refusal::NoDeposit));
        assert_eq!(of(&unordered), Err(Refusal::NoOrder));
    }

    #[test]
    fn where_one_way_is_good_the_outcome_goes_by_what_is_named() {
        let amounts = |actions: &[Action]| -> Vec<u64> {
            let amount = |action: &Action| match action {
                Action::Transfer { amount, .. } => amount.to::<u64>(),
                other => panic!("{other:?}"),
            };
            actions.iter().map(amount).collect()
        };
        for inputs in [[1_000, 500], [500, 1_000]] {
            for ids in [[1, 2], [2, 1]] {
                let named = [(inputs[0], ids[0]), (inputs[1], ids[1])];
                assert_eq!(amounts(&moved(&inputs, &named)), inputs);
            }
        }
    }

    #[test]
    fn ended_withdrawals_have_different_keys_and_directions() {
        let escrow = Escrow {
            address: EvmAddress::repeat_byte(1),
            owner: EvmAddress::repeat_byte(2),
            token: U256::from(3),
            amount: U256::from(4),
        };
        let withdrawal = B256::repeat_byte(5);
        let (burned, returned) = (escrow.burned(withdrawal), escrow.returned(withdrawal));
        assert_ne!(burned.idempotency_key, returned.idempotency_key);
        let key = id::deterministic(&[&withdrawal.to_string(), ""]);
        assert_eq!(burned.idempotency_key, key);
        assert_eq!(
            Action::decode(&returned.actions[0]),
            Ok(transfer(
                escrow.address,
                escrow.owner,
                escrow.token,
                escrow.amount
            ))
        );
        assert_eq!(
            Action::decode(&escrow.initiated("relay").actions[0]),
            Ok(transfer(
                escrow.owner,
                escrow.address,
                escrow.token,
                escrow.amount
            ))
        );
    }
}
