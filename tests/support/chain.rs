//! Real chains with daemons over them: what the tests on anvil begin with.

use alloy::{
    primitives::{Address, B256, U256},
    rpc::types::TransactionReceipt,
};
use devnet::{
    artifact::Artifacts,
    world::{Deposit, DevChain, Devnet, Money, SignedOrder, Terms},
};

use super::daemon::{Setup, daemon};

pub const DEPOSITS: &str = "/attestations/depository-deposits/v1";
pub const FILLS: &str = "/attestations/solver-fills/v1";
pub const REFUNDS: &str = "/attestations/solver-refunds/v1";
pub const WITHDRAWALS: &str = "/attestations/depository-withdrawals/v1";
pub const INITIATION: &str = "/attestations/withdrawal-initiation/v1";
pub const INITIATED: &str = "/attestations/withdrawal-initiated/v1";

/// Who is paid at the destination.
pub const RECIPIENT: Address = Address::repeat_byte(9);
/// What every order owes the user's app, in the input's currency.
pub const FEE: u64 = 10;

/// A daemon over `world` that signs as its `number`th oracle.
pub fn oracle(world: &Devnet, number: usize) -> Setup {
    daemon()
        .chains(&world.files())
        .signer(&world.oracles[number])
}

/// An amount of the chain's own currency.
pub fn native(amount: u64) -> Money {
    token(Address::ZERO, amount)
}

/// An amount of a token.
pub fn token(currency: Address, amount: u64) -> Money {
    let amount = U256::from(amount);
    Money { currency, amount }
}

/// Makes everything that stands in `chain`'s blocks final.
pub async fn finalize(world: &Devnet, chain: &DevChain) {
    let blocks = world.options.finality_blocks;
    chain.node.mine(blocks, 1).await.unwrap();
}

/// Makes everything that stands in the blocks of the settlement chain final.
pub async fn finalize_hub(world: &Devnet) {
    let blocks = world.options.finality_blocks;
    world.hub.node.mine(blocks, 1).await.unwrap();
}

/// The origin of another node: a chain of the same id with the same contracts, other blocks and a longer history.
pub async fn fork(world: &Devnet) -> DevChain {
    let artifacts = Artifacts::load().unwrap().into();
    let chain_id = world.origin.node.chain_id;
    let fork = DevChain::start("origin", chain_id, &world.allocator, artifacts);
    let fork = fork.await.unwrap();
    assert_eq!(fork.depository, world.origin.depository);
    let funds = U256::from(10u64.pow(18));
    let user = world.user.address();
    fork.node.set_balance(user, funds).await.unwrap();
    fork.node.mine(8, 60).await.unwrap();
    fork
}

/// An order from the origin to the destination and what happens to it. Whatever it does is final
/// when it returns.
pub struct Deal<'a> {
    world: &'a Devnet,
    pub order: SignedOrder,
    input: Money,
    output: Money,
}

impl<'a> Deal<'a> {
    /// `salt` tells apart orders that are otherwise equal.
    pub async fn new(world: &'a Devnet, input: Money, output: Money, salt: u64) -> Self {
        let terms = Terms {
            input,
            output,
            recipient: RECIPIENT,
            calls: Vec::new(),
            fee: U256::from(FEE),
            deadline: None,
            salt,
        };
        let order = world.order(&terms).await.unwrap();
        Self {
            world,
            order,
            input,
            output,
        }
    }

    /// The user deposits the input.
    pub async fn deposit(&self) -> Deposit {
        let (chain, user, id) = (&self.world.origin, &self.world.user, self.order.id);
        let Money { currency, amount } = self.input;
        let sent = match currency.is_zero() {
            true => chain.deposit_native(user, amount, id).await,
            false => chain.deposit_erc20(user, currency, amount, id).await,
        };
        let deposit = chain.deposited(&done(sent)).await.unwrap();
        finalize(self.world, chain).await;
        deposit
    }

    /// The user transfers the input into the depository, naming the order behind the call's data.
    pub async fn transfer(&self) -> Deposit {
        let (chain, user, id) = (&self.world.origin, &self.world.user, self.order.id);
        let Money { currency, amount } = self.input;
        let sent = chain.transfer_to_depository(user, currency, amount, Some(id));
        let deposit = chain.transferred(&done(sent.await), id).await.unwrap();
        finalize(self.world, chain).await;
        deposit
    }

    /// The solver pays the output.
    pub async fn fill(&self) -> B256 {
        self.pay(&self.world.destination, self.output, RECIPIENT)
            .await
    }

    /// The solver gives the input back.
    pub async fn refund(&self) -> B256 {
        let user = self.world.user.address();
        self.pay(&self.world.origin, self.input, user).await
    }

    async fn pay(&self, chain: &DevChain, money: Money, to: Address) -> B256 {
        let (solver, id) = (&self.world.solver, self.order.id);
        let sent = match money.currency.is_zero() {
            true => chain.pay_native(solver, to, money.amount, id).await,
            false => chain.pay_erc20(solver, money, to, id).await,
        };
        let hash = done(sent).transaction_hash;
        finalize(self.world, chain).await;
        hash
    }
}

/// The receipt of a transaction that must have succeeded.
pub fn done(sent: anyhow::Result<TransactionReceipt>) -> TransactionReceipt {
    let receipt = sent.unwrap();
    assert!(
        receipt.status(),
        "transaction {} failed",
        receipt.transaction_hash
    );
    receipt
}
