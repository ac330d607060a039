//! One transaction in the runtime: it is run, and what it did is kept the way nodes show it.

use litesvm::{LiteSVM, types::TransactionMetadata};
use solana_account_decoder::{
    parse_account_data::SplTokenAdditionalDataV2, parse_token::token_amount_to_ui_amount_v3,
};
use solana_address_lookup_table_interface::state::AddressLookupTable;
use solana_message::{VersionedMessage, v0::LoadedAddresses};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction::versioned::{TransactionVersion, VersionedTransaction};
use solana_transaction_error::TransactionError;
use solana_transaction_status_client_types::{
    EncodedTransaction, EncodedTransactionWithStatusMeta, InnerInstruction, InnerInstructions,
    TransactionStatusMeta, TransactionTokenBalance, UiCompiledInstruction, UiMessage, UiRawMessage,
    UiTransaction,
};
use spl_token_2022_interface::{
    extension::StateWithExtensions,
    state::{Account, Mint},
};

use super::token::{TOKEN, TOKEN_2022};

/// A transaction of a block and what it did.
#[derive(Clone, Debug)]
pub struct Executed {
    pub transaction: VersionedTransaction,
    pub meta: TransactionStatusMeta,
    /// All accounts that it names, those from lookup tables last.
    pub accounts: Vec<Pubkey>,
}

impl Executed {
    /// Runs `transaction` on `state`. An error where no block would have it; one that failed is in a block.
    pub fn run(
        state: &mut LiteSVM,
        transaction: VersionedTransaction,
    ) -> Result<Self, TransactionError> {
        let loaded = loaded(state, &transaction.message)?;
        let fixed = transaction.message.static_account_keys();
        let accounts = fixed.iter().chain(&loaded.writable);
        let accounts: Vec<Pubkey> = accounts.chain(&loaded.readonly).copied().collect();
        let before = Holdings::of(state, &accounts);
        let (status, said) = match state.send_transaction(transaction.clone()) {
            Ok(said) => (Ok(()), said),
            Err(failed) => match failed.err {
                error @ TransactionError::InstructionError(..) => (Err(error), failed.meta),
                refused => return Err(refused),
            },
        };
        let after = Holdings::of(state, &accounts);
        Ok(Self {
            meta: meta(status, said, (before, after), loaded),
            transaction,
            accounts,
        })
    }

    pub fn signature(&self) -> Signature {
        self.transaction
            .signatures
            .first()
            .copied()
            .unwrap_or_default()
    }

    /// The transaction with the encoding `json`.
    pub fn shown(&self) -> EncodedTransactionWithStatusMeta {
        let message = &self.transaction.message;
        let instructions = message.instructions().iter();
        let lookups = message.address_table_lookups();
        let raw = UiRawMessage {
            header: *message.header(),
            account_keys: message
                .static_account_keys()
                .iter()
                .map(Pubkey::to_string)
                .collect(),
            recent_blockhash: message.recent_blockhash().to_string(),
            instructions: instructions
                .map(|one| UiCompiledInstruction::from(one, Some(1)))
                .collect(),
            address_table_lookups: lookups.map(|tables| tables.iter().map(Into::into).collect()),
            transaction_config: None,
        };
        let signatures = self.transaction.signatures.iter();
        EncodedTransactionWithStatusMeta {
            transaction: EncodedTransaction::Json(UiTransaction {
                signatures: signatures.map(Signature::to_string).collect(),
                message: UiMessage::Raw(raw),
            }),
            meta: Some(self.meta.clone().into()),
            version: Some(self.transaction.version()),
        }
    }

    /// Whether clients that know no versions can read it.
    pub fn is_legacy(&self) -> bool {
        self.transaction.version() == TransactionVersion::LEGACY
    }
}

/// The accounts that a message takes from lookup tables.
fn loaded(
    state: &LiteSVM,
    message: &VersionedMessage,
) -> Result<LoadedAddresses, TransactionError> {
    let mut loaded = LoadedAddresses::default();
    for lookup in message.address_table_lookups().unwrap_or_default() {
        let account = state.get_account(&lookup.account_key);
        let account = account.ok_or(TransactionError::AddressLookupTableNotFound)?;
        let table = AddressLookupTable::deserialize(&account.data);
        let table = table.map_err(|_| TransactionError::InvalidAddressLookupTableData)?;
        let at = |index: &u8| {
            let found = table.addresses.get(usize::from(*index)).copied();
            found.ok_or(TransactionError::InvalidAddressLookupTableIndex)
        };
        for index in &lookup.writable_indexes {
            loaded.writable.push(at(index)?);
        }
        for index in &lookup.readonly_indexes {
            loaded.readonly.push(at(index)?);
        }
    }
    Ok(loaded)
}

/// What accounts hold at a moment.
struct Holdings {
    lamports: Vec<u64>,
    tokens: Vec<TransactionTokenBalance>,
}

impl Holdings {
    fn of(state: &LiteSVM, accounts: &[Pubkey]) -> Self {
        let lamports = accounts
            .iter()
            .map(|key| state.get_balance(key).unwrap_or(0));
        let tokens = (0_u8..).zip(accounts);
        Self {
            lamports: lamports.collect(),
            tokens: tokens
                .filter_map(|(index, key)| tokens_of(state, index, key))
                .collect(),
        }
    }
}

/// What a token account holds; `None` for all others.
fn tokens_of(state: &LiteSVM, index: u8, key: &Pubkey) -> Option<TransactionTokenBalance> {
    let found = state.get_account(key)?;
    if ![TOKEN, TOKEN_2022].contains(&found.owner) {
        return None;
    }
    let account = StateWithExtensions::<Account>::unpack(&found.data)
        .ok()?
        .base;
    let mint = state.get_account(&account.mint)?;
    let decimals = StateWithExtensions::<Mint>::unpack(&mint.data)
        .ok()?
        .base
        .decimals;
    let unit = SplTokenAdditionalDataV2::with_decimals(decimals);
    Some(TransactionTokenBalance {
        account_index: index,
        mint: account.mint.to_string(),
        ui_token_amount: token_amount_to_ui_amount_v3(account.amount, &unit),
        owner: account.owner.to_string(),
        program_id: found.owner.to_string(),
    })
}

fn meta(
    status: Result<(), TransactionError>,
    said: TransactionMetadata,
    (before, after): (Holdings, Holdings),
    loaded_addresses: LoadedAddresses,
) -> TransactionStatusMeta {
    let called = (0_u8..).zip(said.inner_instructions);
    let called = called.filter(|(_, inner)| !inner.is_empty());
    let inner_instructions = called.map(|(index, inner)| InnerInstructions {
        index,
        instructions: inner
            .into_iter()
            .map(|one| InnerInstruction {
                stack_height: Some(u32::from(one.stack_height)),
                instruction: one.instruction,
            })
            .collect(),
    });
    TransactionStatusMeta {
        status,
        fee: said.fee,
        pre_balances: before.lamports,
        post_balances: after.lamports,
        inner_instructions: Some(inner_instructions.collect()),
        log_messages: Some(said.logs),
        pre_token_balances: Some(before.tokens),
        post_token_balances: Some(after.tokens),
        rewards: Some(Vec::new()),
        loaded_addresses,
        return_data: None,
        compute_units_consumed: Some(said.compute_units_consumed),
        cost_units: None,
    }
}
