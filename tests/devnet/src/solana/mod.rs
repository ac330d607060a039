//! A Solana chain of our own: the real runtime and the real token programs, with a depository program, behind JSON-RPC.
//! Slots, commitments, block times, skipped slots and forks are what they are told to be.

mod executed;
mod front;
pub mod intermediary;
mod ledger;
mod listed;
mod local;
mod lookup;
pub mod program;
mod request;
mod rpc;
pub mod token;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use alloy::primitives::{B256, keccak256};
use anyhow::{Context, Result, anyhow};
use litesvm::LiteSVM;
use sha2::{Digest, Sha256};
use solana_account::Account as State;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_keypair::{Keypair, keypair_from_seed};
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0};
use solana_program_runtime::solana_sbpf::program::BuiltinFunctionDefinition as _;
use solana_pubkey::{Pubkey, pubkey};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use spl_token_2022_interface::{
    extension::{ExtensionType, StateWithExtensions, metadata_pointer, transfer_fee},
    instruction as of_tokens,
    state::{Account as TokenState, Mint},
};

pub use front::Front;
pub use ledger::Lag;
pub use listed::Listed;
pub use local::{ID, LocalChain, PROVIDERS};
pub use program::{Depository, Paid};
pub use request::Request;
pub use token::{TOKEN, TOKEN_2022, Token};

use ledger::Ledger;

/// Where the depository program is.
pub const PROGRAM: Pubkey = pubkey!("99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2");
/// Where the same program is once more, which is nobody's depository.
pub const LOOKALIKE: Pubkey = Pubkey::new_from_array([0x10; 32]);
/// Between two blocks of a chain that keeps pace.
const SLOT: Duration = Duration::from_millis(1_000 / ledger::SLOTS_PER_SECOND);
/// Lamports of every account that the tests know.
const FUNDS: u64 = 1_000_000_000_000;
/// Decimals of every token.
const DECIMALS: u8 = 6;

/// The ledger that all providers of a chain show.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Ledger>>);

impl Shared {
    /// A poisoned ledger is one whose last block was not made: it stands as it was.
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The chain. Its providers are started by [`Cluster::provider`] and end by themselves.
#[derive(Clone)]
pub struct Cluster {
    ledger: Shared,
    pub depository: Depository,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// A chain whose depository obeys `allocator`. A transaction makes a block at once, and blocks are final `lag` later.
    pub fn new(allocator: &Pubkey, lag: Lag) -> Result<Self> {
        Self::aged(allocator, lag, 0)
    }

    /// The same, so many slots after its first block.
    pub fn aged(allocator: &Pubkey, lag: Lag, slots: u64) -> Result<Self> {
        let depository = Depository(PROGRAM);
        // The ledger itself decides which block's hash a transaction may name.
        let mut state = LiteSVM::new().with_blockhash_check(false);
        state.add_builtin(PROGRAM, program::Entrypoint::register);
        state.add_builtin(LOOKALIKE, program::Entrypoint::register);
        state.add_builtin(
            intermediary::INTERMEDIARY,
            intermediary::Entrypoint::register,
        );
        let rent = state.minimum_balance_for_rent_exemption(0);
        state.airdrop(&depository.vault(), rent).map_err(failed)?;
        let data = allocator.to_bytes().to_vec();
        put(&mut state, depository.state(), PROGRAM, data)?;
        #[expect(clippy::disallowed_methods, reason = "the chain begins now")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let began = now.saturating_sub(slots / ledger::SLOTS_PER_SECOND);
        let mut ledger = Ledger::new(state, i64::try_from(began)?, lag);
        if slots > 0 {
            // So that the newest final block is that old, too.
            ledger.skip(slots - 1);
            for _ in 0..=lag.finalized {
                ledger.make();
            }
        }
        let cluster = Self {
            ledger: Shared(Arc::new(Mutex::new(ledger))),
            depository,
        };
        cluster.fund(allocator)?;
        Ok(cluster)
    }

    /// One more provider of the chain.
    pub async fn provider(&self) -> Result<Front> {
        Front::start(self.ledger.clone()).await
    }

    /// Makes `blocks` blocks, one slot after another, of what waits.
    pub fn advance(&self, blocks: u64) {
        for _ in 0..blocks {
            self.ledger.lock().make();
        }
    }

    /// Makes a block every half a second, as long as it is polled. A chain that is ahead of the clock waits.
    pub async fn keep_pace(&self) {
        let mut ticks = tokio::time::interval(SLOT);
        loop {
            ticks.tick().await;
            #[expect(clippy::disallowed_methods, reason = "the chain follows the clock")]
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |now| now.as_secs());
            if self.time() <= i64::try_from(now).unwrap_or(i64::MAX) {
                self.advance(1);
            }
        }
    }

    /// What the account got of the native currency by a transaction, which paid somebody else's fee or none.
    pub fn gained(&self, signature: &Signature, account: &Pubkey) -> Option<u64> {
        let ledger = self.ledger.lock();
        let (at, inside) = ledger.find(signature)?;
        let executed = &ledger.blocks()[at].transactions[inside];
        let place = executed.accounts.iter().position(|one| one == account)?;
        let (before, after) = (&executed.meta.pre_balances, &executed.meta.post_balances);
        after.get(place)?.checked_sub(*before.get(place)?)
    }

    /// Lets `slots` slots go by without a block.
    pub fn skip(&self, slots: u64) {
        self.ledger.lock().skip(slots);
    }

    /// The newest `blocks` blocks are on no fork that lives: what was in them is gone, and the chain goes on at later
    /// slots.
    pub fn drop_blocks(&self, blocks: usize) {
        self.ledger.lock().drop_blocks(blocks);
    }

    /// Whether a transaction makes a block at once; else it waits for [`Cluster::advance`].
    pub fn automatic(&self, on: bool) {
        self.ledger.lock().automatic = on;
    }

    /// Whether nodes know the times of the blocks that are made from now on.
    pub fn timed(&self, on: bool) {
        self.ledger.lock().timed = on;
    }

    /// Nodes learn the times of the blocks that have none.
    pub fn tell_times(&self) {
        self.ledger.lock().tell_times();
    }

    /// The slot of the newest block.
    pub fn slot(&self) -> u64 {
        self.ledger.lock().tip().slot
    }

    /// Unix seconds at the newest block.
    pub fn time(&self) -> i64 {
        ledger::clock(&self.ledger.lock().tip().state)
    }

    /// The slot and the time, where nodes know it, of the block of a transaction.
    pub fn placed(&self, signature: &Signature) -> Option<(u64, Option<i64>)> {
        let ledger = self.ledger.lock();
        let block = &ledger.blocks()[ledger.find(signature)?.0];
        Some((block.slot, block.time))
    }

    /// What an account holds of the native currency.
    pub fn balance(&self, of: &Pubkey) -> u64 {
        self.ledger.lock().tip().state.get_balance(of).unwrap_or(0)
    }

    /// What the associated account of `owner` holds of a token.
    pub fn tokens(&self, owner: &Pubkey, (mint, program): Token) -> u64 {
        let account = token::associated(owner, &mint, &program);
        let found = self.ledger.lock().tip().state.get_account(&account);
        let read = |found: State| {
            let account = StateWithExtensions::<TokenState>::unpack(&found.data);
            Some(account.ok()?.base.amount)
        };
        found.and_then(read).unwrap_or(0)
    }

    /// 1,000 of the native currency, out of nothing.
    pub fn fund(&self, account: &Pubkey) -> Result<()> {
        let mut done = Ok(());
        self.ledger.lock().change(|state| {
            // Else the second time would be the same transaction as the first.
            state.expire_blockhash();
            let given = state.airdrop(account, FUNDS);
            done = given.map(drop).map_err(failed);
        });
        done
    }

    /// A mint of `program` with 6 decimals, whose tokens `owner` makes; on each transfer `fee` ten-thousandths are kept
    /// back, which only Token-2022 can. Where it keeps nothing back, its mint says where its metadata is.
    pub fn mint(&self, owner: &Keypair, program: Pubkey, fee: u16) -> Result<Token> {
        let (mint, authority) = (Keypair::new(), owner.pubkey());
        let key = mint.pubkey();
        let extensions: &[_] = match fee {
            0 if program == TOKEN_2022 => &[ExtensionType::MetadataPointer],
            0 => &[],
            _ => &[ExtensionType::TransferFeeConfig],
        };
        let length = ExtensionType::try_calculate_account_len::<Mint>(extensions)?;
        let rent = self.rent(length);
        let create = solana_system_interface::instruction::create_account;
        let mut instructions = vec![create(&authority, &key, rent, length as u64, &program)];
        if fee > 0 {
            let config = transfer_fee::instruction::initialize_transfer_fee_config;
            instructions.push(config(&program, &key, None, None, fee, u64::MAX)?);
        } else if program == TOKEN_2022 {
            let pointer = metadata_pointer::instruction::initialize;
            instructions.push(pointer(&program, &key, None, Some(key))?);
        }
        let begin = of_tokens::initialize_mint2(&program, &key, &authority, None, DECIMALS);
        instructions.push(begin?);
        self.execute(&instructions, &[owner, &mint])?;
        Ok((key, program))
    }

    /// Gives tokens of `owner`'s mint to `to`.
    pub fn give(&self, owner: &Keypair, of: Token, to: &Pubkey, amount: u64) -> Result<()> {
        let gift = token::gift(&owner.pubkey(), of, to, amount)?;
        self.execute(&gift, &[owner]).map(drop)
    }

    /// Lamports that an account of `length` bytes has to hold.
    pub fn rent(&self, length: usize) -> u64 {
        let ledger = self.ledger.lock();
        ledger
            .tip()
            .state
            .minimum_balance_for_rent_exemption(length)
    }

    /// A transaction of `instructions`, paid by the first of `signers`, which names the newest block.
    pub fn sign(
        &self,
        instructions: &[Instruction],
        signers: &[&Keypair],
    ) -> Result<VersionedTransaction> {
        self.sign_with(instructions, signers, &[])
    }

    /// The same with accounts from lookup tables.
    pub fn sign_with(
        &self,
        instructions: &[Instruction],
        signers: &[&Keypair],
        tables: &[AddressLookupTableAccount],
    ) -> Result<VersionedTransaction> {
        let recent = self.ledger.lock().tip().hash;
        compiled(instructions, signers, tables, recent)
    }

    /// Hands a transaction to the chain, whatever comes of it: into a block at once, or to wait for one.
    pub fn submit(&self, transaction: VersionedTransaction) -> Result<Signature> {
        let signature = transaction
            .signatures
            .first()
            .copied()
            .context("unsigned")?;
        let mut ledger = self.ledger.lock();
        ledger.waiting.push(transaction);
        if ledger.automatic {
            ledger.make().pop().context("no block")??;
        }
        Ok(signature)
    }

    /// Signs, makes a block of it, and fails where the transaction does.
    pub fn execute(&self, instructions: &[Instruction], signers: &[&Keypair]) -> Result<Signature> {
        self.execute_with(instructions, signers, &[])
    }

    /// The same with accounts from lookup tables.
    pub fn execute_with(
        &self,
        instructions: &[Instruction],
        signers: &[&Keypair],
        tables: &[AddressLookupTableAccount],
    ) -> Result<Signature> {
        let signature = self.submit(self.sign_with(instructions, signers, tables)?)?;
        let ledger = self.ledger.lock();
        if let Some((at, inside)) = ledger.find(&signature) {
            ledger.blocks()[at].transactions[inside]
                .meta
                .status
                .clone()?;
        }
        Ok(signature)
    }
}

/// The key of a name. Never give one of these anything of value: the name is the secret.
pub fn keypair(name: &str) -> Result<Keypair> {
    let seed = seed(name);
    keypair_from_seed(seed.as_slice()).map_err(|error| anyhow!("no key: {error}"))
}

/// What the key of a name is made of.
pub fn seed(name: &str) -> B256 {
    keccak256(format!("intentd devnet key {name}"))
}

/// A transaction of `instructions` that names the block hash `recent`, paid by the first of `signers`.
fn compiled(
    instructions: &[Instruction],
    signers: &[&Keypair],
    tables: &[AddressLookupTableAccount],
    recent: Hash,
) -> Result<VersionedTransaction> {
    let payer = signers.first().context("nobody signs")?.pubkey();
    let message = v0::Message::try_compile(&payer, instructions, tables, recent)?;
    let message = VersionedMessage::V0(message);
    Ok(VersionedTransaction::try_new(message, signers)?)
}

fn put(state: &mut LiteSVM, key: Pubkey, owner: Pubkey, data: Vec<u8>) -> Result<()> {
    let account = State {
        lamports: state.minimum_balance_for_rent_exemption(data.len()),
        data,
        owner,
        ..State::default()
    };
    state
        .set_account(key, account)
        .map_err(|error| anyhow!("no account: {error}"))
}

fn failed(failed: litesvm::types::FailedTransactionMetadata) -> anyhow::Error {
    anyhow!("{}: {:?}", failed.err, failed.meta.logs)
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
