//! A depository program of our own, with the instructions and accounts of the real one (guide: protocol 4.3 and 9). It
//! runs as a builtin of the runtime: what it does to money it does by calling the system's and the tokens' programs.

use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_program_runtime::{declare_process_instruction, invoke_context::InvokeContext};
use solana_pubkey::{Pubkey, pubkey};

use super::{
    request::Request,
    token::{self, ASSOCIATED, associated},
};

pub const SYSTEM: Pubkey = pubkey!("11111111111111111111111111111111");

/// The first 8 bytes of sha256 of `global:deposit_native`, `global:deposit_token` and `global:execute_transfer`.
const DEPOSIT_NATIVE: [u8; 8] = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
const DEPOSIT_TOKEN: [u8; 8] = [0x0b, 0x9c, 0x60, 0xda, 0x27, 0xa3, 0xb4, 0x13];
const EXECUTE_TRANSFER: [u8; 8] = [0xe9, 0x7e, 0xa0, 0xb8, 0xeb, 0xce, 0x1f, 0x77];
/// The first 8 bytes of sha256 of `account:UsedRequest`.
const USED_REQUEST: [u8; 8] = [0x87, 0x86, 0x6e, 0x4d, 0x96, 0x62, 0xb4, 0x6b];
/// The discriminator, and whether the request is used.
const USED_REQUEST_LENGTH: usize = 9;

const COMPUTE_UNITS: u64 = 3_000;
const DEPOSITORY_SEED: &[u8] = b"relay_depository";
const VAULT_SEED: &[u8] = b"vault";
const REQUEST_SEED: &[u8] = b"used_request";
/// Where a mint's account has its decimals.
const DECIMALS: usize = 44;

/// The program's own reasons to fail.
const WRONG_ACCOUNT: InstructionError = InstructionError::Custom(6_000);
const NOT_THE_ALLOCATOR: InstructionError = InstructionError::Custom(6_001);
const EXPIRED: InstructionError = InstructionError::Custom(6_002);

declare_process_instruction!(Entrypoint, COMPUTE_UNITS, |context| { run(context) });

/// A depository at an address: what its instructions look like, and where its accounts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depository(pub Pubkey);

/// A deposit of tokens or of the native currency, by whoever signs for it.
#[derive(Clone, Copy, Debug)]
pub struct Paid {
    pub sender: Pubkey,
    pub depositor: Pubkey,
    pub amount: u64,
    pub id: [u8; 32],
}

impl Depository {
    /// The account that names the allocator.
    pub fn state(&self) -> Pubkey {
        self.derived(&[DEPOSITORY_SEED]).0
    }

    /// The account that has the native currency and owns the token accounts.
    pub fn vault(&self) -> Pubkey {
        self.derived(&[VAULT_SEED]).0
    }

    /// The account that exists once the withdrawal with this id is executed.
    pub fn used_request(&self, id: &[u8; 32]) -> Pubkey {
        self.derived(&[REQUEST_SEED, id]).0
    }

    fn derived(&self, seeds: &[&[u8]]) -> (Pubkey, u8) {
        Pubkey::find_program_address(seeds, &self.0)
    }

    /// `deposit_native`.
    pub fn deposit_native(&self, paid: &Paid) -> Instruction {
        self.instruction(
            [&DEPOSIT_NATIVE[..], &paid.amount.to_le_bytes(), &paid.id].concat(),
            vec![
                AccountMeta::new_readonly(self.state(), false),
                AccountMeta::new(paid.sender, true),
                AccountMeta::new_readonly(paid.depositor, false),
                AccountMeta::new(self.vault(), false),
                AccountMeta::new_readonly(SYSTEM, false),
            ],
        )
    }

    /// `deposit_token` of a mint of a token program.
    pub fn deposit_token(&self, paid: &Paid, (mint, program): (Pubkey, Pubkey)) -> Instruction {
        let account = |owner: &Pubkey| AccountMeta::new(associated(owner, &mint, &program), false);
        self.instruction(
            [&DEPOSIT_TOKEN[..], &paid.amount.to_le_bytes(), &paid.id].concat(),
            vec![
                AccountMeta::new_readonly(self.state(), false),
                AccountMeta::new(paid.sender, true),
                AccountMeta::new_readonly(paid.depositor, false),
                AccountMeta::new(self.vault(), false),
                AccountMeta::new_readonly(mint, false),
                account(&paid.sender),
                account(&self.vault()),
                AccountMeta::new_readonly(program, false),
                AccountMeta::new_readonly(ASSOCIATED, false),
                AccountMeta::new_readonly(SYSTEM, false),
            ],
        )
    }

    /// `execute_transfer`, which the allocator signs and pays for. `encoded` is the request in the family's encoding,
    /// and `id` its id.
    pub fn execute_transfer(
        &self,
        request: &Request,
        allocator: Pubkey,
        (encoded, id): (&[u8], &[u8; 32]),
    ) -> Instruction {
        let mut accounts = vec![
            AccountMeta::new_readonly(self.state(), false),
            AccountMeta::new(allocator, true),
            AccountMeta::new(request.recipient, false),
            AccountMeta::new(self.vault(), false),
            AccountMeta::new(self.used_request(id), false),
            AccountMeta::new_readonly(SYSTEM, false),
        ];
        if let Some((mint, program)) = request.token {
            let account = |owner: &Pubkey| associated(owner, &mint, &program);
            accounts.extend([
                AccountMeta::new_readonly(mint, false),
                AccountMeta::new(account(&self.vault()), false),
                AccountMeta::new(account(&request.recipient), false),
                AccountMeta::new_readonly(program, false),
                AccountMeta::new_readonly(ASSOCIATED, false),
            ]);
        }
        self.instruction([&EXECUTE_TRANSFER[..], encoded].concat(), accounts)
    }

    fn instruction(&self, data: Vec<u8>, accounts: Vec<AccountMeta>) -> Instruction {
        Instruction {
            program_id: self.0,
            accounts,
            data,
        }
    }
}

/// An instruction as the program sees it.
struct Call {
    depository: Depository,
    accounts: Vec<(Pubkey, bool)>,
    data: Vec<u8>,
}

impl Call {
    fn of(context: &InvokeContext<'_, '_>) -> Result<Self, InstructionError> {
        let now = context
            .transaction_context
            .get_current_instruction_context()?;
        let accounts = (0..now.get_number_of_instruction_accounts()).map(|at| {
            let key = *now.get_key_of_instruction_account(at)?;
            Ok((key, now.is_instruction_account_signer(at)?))
        });
        Ok(Self {
            depository: Depository(*now.get_program_key()?),
            accounts: accounts.collect::<Result<_, InstructionError>>()?,
            data: now.get_instruction_data().to_vec(),
        })
    }

    fn account(&self, at: usize) -> Result<Pubkey, InstructionError> {
        let account = self.accounts.get(at).map(|(key, _)| *key);
        account.ok_or(InstructionError::MissingAccount)
    }

    fn signer(&self, at: usize) -> Result<Pubkey, InstructionError> {
        match self.accounts.get(at) {
            Some((key, true)) => Ok(*key),
            _ => Err(InstructionError::MissingRequiredSignature),
        }
    }

    fn expect(&self, at: usize, key: Pubkey) -> Result<Pubkey, InstructionError> {
        let found = self.account(at)?;
        (found == key).then_some(key).ok_or(WRONG_ACCOUNT)
    }
}

fn run(context: &mut InvokeContext<'_, '_>) -> Result<(), InstructionError> {
    let call = Call::of(context)?;
    let Some((kind, arguments)) = call.data.split_first_chunk::<8>() else {
        return Err(InstructionError::InvalidInstructionData);
    };
    match *kind {
        DEPOSIT_NATIVE => deposit_native(context, &call, arguments),
        DEPOSIT_TOKEN => deposit_token(context, &call, arguments),
        EXECUTE_TRANSFER => execute_transfer(context, &call, arguments),
        _ => Err(InstructionError::InvalidInstructionData),
    }
}

/// The amount in front of an order's id.
fn amount(arguments: &[u8]) -> Result<u64, InstructionError> {
    let amount = arguments
        .first_chunk::<8>()
        .filter(|_| arguments.len() == 40);
    let amount = amount.ok_or(InstructionError::InvalidInstructionData)?;
    Ok(u64::from_le_bytes(*amount))
}

fn deposit_native(
    context: &mut InvokeContext<'_, '_>,
    call: &Call,
    arguments: &[u8],
) -> Result<(), InstructionError> {
    let sender = call.signer(1)?;
    let vault = call.expect(3, call.depository.vault())?;
    let transfer = solana_system_interface::instruction::transfer;
    context.native_invoke_signed(transfer(&sender, &vault, amount(arguments)?), &[])
}

fn deposit_token(
    context: &mut InvokeContext<'_, '_>,
    call: &Call,
    arguments: &[u8],
) -> Result<(), InstructionError> {
    let sender = call.signer(1)?;
    let vault = call.expect(3, call.depository.vault())?;
    let (mint, program) = (call.account(4)?, call.account(7)?);
    call.expect(6, associated(&vault, &mint, &program))?;
    let open = token::open(&sender, &vault, (mint, program));
    context.native_invoke_signed(open, &[])?;
    let accounts = [call.account(5)?, call.account(6)?];
    let (amount, decimals) = (amount(arguments)?, decimals(context, 4)?);
    let transfer = token::transfer(&sender, accounts, (mint, program), amount, decimals);
    context.native_invoke_signed(transfer?, &[])
}

fn execute_transfer(
    context: &mut InvokeContext<'_, '_>,
    call: &Call,
    arguments: &[u8],
) -> Result<(), InstructionError> {
    let allocator = call.signer(1)?;
    call.expect(0, call.depository.state())?;
    if data(context, 0)? != allocator.to_bytes() {
        return Err(NOT_THE_ALLOCATOR);
    }
    let request = Request::decode(arguments).ok_or(InstructionError::InvalidInstructionData);
    let (request, mint) = request?;
    let clock = context.environment_config.sysvar_cache().get_clock()?;
    if clock.unix_timestamp > request.expiration {
        return Err(EXPIRED);
    }
    let recipient = call.expect(2, request.recipient)?;
    let vault = call.expect(3, call.depository.vault())?;
    use_up(context, call, arguments)?;
    let (_, bump) = call.depository.derived(&[VAULT_SEED]);
    let seeds: &[&[u8]] = &[VAULT_SEED, &[bump]];
    let Some(mint) = mint else {
        let transfer = solana_system_interface::instruction::transfer;
        let transfer = transfer(&vault, &recipient, request.amount);
        return context.native_invoke_signed(transfer, &[seeds]);
    };
    let program = call.account(9)?;
    call.expect(6, mint)?;
    let open = token::open(&allocator, &recipient, (mint, program));
    context.native_invoke_signed(open, &[])?;
    let accounts = [call.account(7)?, call.account(8)?];
    let decimals = decimals(context, 6)?;
    let transfer = token::transfer(&vault, accounts, (mint, program), request.amount, decimals);
    context.native_invoke_signed(transfer?, &[seeds])
}

/// Makes the account that shows that a request is executed: there is none twice.
fn use_up(
    context: &mut InvokeContext<'_, '_>,
    call: &Call,
    request: &[u8],
) -> Result<(), InstructionError> {
    let id = super::sha256(request);
    let (key, bump) = call.depository.derived(&[REQUEST_SEED, &id]);
    call.expect(4, key)?;
    let rent = context.environment_config.sysvar_cache().get_rent()?;
    let rent = rent.minimum_balance(USED_REQUEST_LENGTH);
    let create = solana_system_interface::instruction::create_account(
        &call.signer(1)?,
        &key,
        rent,
        USED_REQUEST_LENGTH as u64,
        &call.depository.0,
    );
    context.native_invoke_signed(create, &[&[REQUEST_SEED, &id, &[bump]]])?;
    let now = context
        .transaction_context
        .get_current_instruction_context()?;
    let used = [&USED_REQUEST[..], &[1]].concat();
    now.try_borrow_instruction_account(4)?
        .set_data_from_slice(&used)
}

fn data(context: &InvokeContext<'_, '_>, at: u16) -> Result<Vec<u8>, InstructionError> {
    let now = context
        .transaction_context
        .get_current_instruction_context()?;
    let account = now.try_borrow_instruction_account(at)?;
    Ok(account.get_data().to_vec())
}

fn decimals(context: &InvokeContext<'_, '_>, mint: u16) -> Result<u8, InstructionError> {
    let data = data(context, mint)?;
    data.get(DECIMALS)
        .copied()
        .ok_or(InstructionError::InvalidAccountData)
}
