//! What a family has to say for its column: how its nodes answer, and what its transactions look like. Each word here
//! is of no family.

use alloy::primitives::{B256, U256, b256};
use serde_json::{Map, Value};
use vm::Family;

use crate::ledger::{Ledger, Tx};

/// What every deposit and every order is about, in units of the currency.
pub const AMOUNT: u64 = 100_000;
/// The least that fills and refunds pay.
pub const LEAST: u64 = 90_000;
/// What an order owes besides.
pub const FEE: u64 = 10;

/// Something, or why the family has no such thing.
pub type Offered<T> = Result<T, &'static str>;

/// A node's answer: a result, or an error's code and text.
pub type Answer = Result<Value, (i64, &'static str)>;

/// The accounts of a chain, as texts.
#[derive(Clone, Debug)]
pub struct Accounts {
    pub user: &'static str,
    /// Sends the solver's payments.
    pub solver: String,
    pub recipient: &'static str,
    pub stranger: &'static str,
}

/// How a liar changes a deposit that others show as it is.
#[derive(Clone, Copy, Debug)]
pub enum Twist {
    Amount,
    /// One more deposit in the same transaction.
    Added,
    Dropped,
    /// It names another order.
    Order,
    /// It failed.
    Status,
    /// It is another transaction.
    Other,
    OddHex,
    /// What is numbered in it is out of order.
    Indexes,
}

/// What is sent to a depository, or looks so. Each names the first of two orders unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepositKind {
    Plain,
    Token,
    /// Names no order, or zero.
    NoId,
    /// Has text where an id would be.
    NotAnId,
    /// Has more behind the id.
    LongText,
    /// The same by another contract, program or address.
    LookAlike,
    /// Says so, and nothing moved.
    EventAlone,
    /// The money went to somebody's own account.
    OwnVault,
    Failed,
    /// Of an amount of zero.
    Nothing,
    /// One unit, one less, one more.
    Units,
    /// Amounts that no binary fraction has.
    Edges,
    /// Of so little that nodes do not pass it on, or just do.
    Unrelayed,
    /// Names both orders.
    TwoIds,
    TwoDepositors,
    /// Two deposits in one transaction.
    Several,
    /// One unit, or nothing, beside the deposit in its transaction.
    Beside,
    TwoDepositories,
    /// The depository pays itself.
    FromDepository,
    /// The depository calls itself.
    SelfCall,
    /// What a depository says in another shape.
    OddShape,
    /// The order stands where it does not count.
    ElsewhereNamed,
    /// Less arrives than was sent.
    FeeOnTransfer,
    /// A currency that its sender made.
    Worthless,
    /// Through a contract or program of somebody else's.
    InnerCall,
    /// More deposits than one execution carries.
    TooMany,
    /// Money that a block made.
    Coinbase,
    /// Every kind of account that can pay.
    Payers,
    /// Accounts that the transaction names by a table.
    Tables,
    /// A block without a time.
    NoTime,
    /// A currency that calls its maker's contract or program as it moves.
    Calling,
    /// A currency that hides how much moves.
    Hidden,
    /// The depository's account is closed in the same transaction.
    ClosedVault,
    /// The payer's account is closed in the same transaction.
    ClosedPayer,
    /// Thousands of events that are about nothing here, or as many as there is room for.
    Crowded,
}

/// One deposit of a kind.
pub struct Case {
    pub what: &'static str,
    pub body: Value,
    pub expected: Expected,
}

/// A deposit of a kind, and what is signed of it.
pub fn case(what: &'static str, body: Value, expected: Expected) -> Case {
    Case {
        what,
        body,
        expected,
    }
}

/// Refused: nobody can tell what was deposited, or whose it is.
pub const UNREADABLE: Expected = Expected::Refused("DEPOSIT_UNREADABLE");

/// What is signed about a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Refused with this code.
    Refused(&'static str),
    /// Answered, with nothing to sign.
    Nothing,
    Minted(Vec<Minted>),
}

/// Money that the hub is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minted {
    pub depositor: String,
    /// The order that it is for; `None`: it is the depositor's.
    pub order: Option<B256>,
    pub currency: String,
    pub amount: U256,
}

/// What pays for an order, or looks so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentKind {
    Good,
    /// In two parts that add up.
    Split,
    /// In two parts, each told of in its own way, of which one way alone counts.
    TwoWays,
    NamesOther,
    NamesNone,
    /// The id with more text around it.
    NamesLoosely,
    NamesBoth,
    /// Of money that another than the payer gave.
    OfAnother,
    /// Out of a depository.
    OutOfDepository,
    OtherCurrency,
    Failed,
    /// Another than its payer named the order.
    NamedByAnother,
    /// Another contract than the order's says that it was paid.
    OtherRouter,
}

/// A payment of `amount` from an account to another, for the first of two orders.
#[derive(Clone, Debug)]
pub struct Paying<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub currency: &'a str,
    pub amount: u64,
    pub orders: [B256; 2],
}

/// A withdrawal of `amount` from the depository.
#[derive(Clone, Copy, Debug)]
pub struct Withdrawing<'a> {
    pub to: &'a str,
    pub currency: &'a str,
    pub amount: u64,
    /// Tells apart withdrawals that are otherwise equal.
    pub number: u64,
    /// Unix seconds: it is not executed later, where withdrawals expire.
    pub until: u64,
}

/// What executes a withdrawal, or looks so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionKind {
    /// By the depository.
    Good,
    /// By the depository, in another transaction.
    Again,
    Failed,
    /// Another than the depository says so.
    LookAlike,
    /// Spends what the withdrawal would have paid: it can never be executed.
    Spent,
}

/// In which form owners sign, or look as if they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerForm {
    /// As wallets do: each way that counts.
    Good,
    /// Of the two numbers that make the same signature, the greater one.
    HighS,
    /// All of the transaction that a message is signed by, where a part of it counts.
    Transaction,
    /// As the key signs for an account of another kind.
    OtherKind,
}

/// Makes a signature of a digest.
type Sign = dyn Fn(&[u8; 32]) -> String;

/// An account, and how the key that owns it signs.
pub struct Owner {
    pub what: &'static str,
    pub account: String,
    /// Whether signatures of this form are its owner's.
    pub counts: bool,
    /// The signature of a digest, as claims have it: hex.
    pub sign: Box<Sign>,
}

/// An account, whether what signs for it counts, and the bytes of the signature of a digest.
pub fn owner(
    (what, account): (&'static str, &str),
    counts: bool,
    sign: impl Fn(&[u8; 32]) -> Vec<u8> + 'static,
) -> Owner {
    Owner {
        what,
        account: account.to_owned(),
        counts,
        sign: Box::new(move |digest: &[u8; 32]| alloy::hex::encode_prefixed(sign(digest))),
    }
}

/// The order of the group of the curve secp256k1.
const ORDER: B256 = b256!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");

/// The greater of the two numbers `s` of a secp256k1 signature, of which this is the lower one. Both are 32 bytes, big
/// endian.
pub fn greater_s(low: &[u8]) -> [u8; 32] {
    let low = U256::from_be_slice(low);
    let high = U256::from_be_bytes(ORDER.0) - low;
    assert!(high > low, "the lower s is signed with");
    high.to_be_bytes()
}

/// A family's column.
pub trait Script: Sync {
    /// The column's name.
    fn column(&self) -> &'static str;

    fn family(&self) -> &'static Family;

    /// The entry of the chains file of the chain called `id`, whose nodes say that they are `identity`.
    fn entry(&self, id: &str, identity: u8) -> Value;

    /// Seconds between blocks.
    fn pace(&self) -> u64;

    /// The blocks that have to stand on a block before it is final.
    fn depth(&self) -> u64;

    /// Has the chain's own word for final decide, in its entry.
    fn tag(&self, entry: &mut Value) -> Offered<()>;

    /// Whether heights may have no block.
    fn skips(&self) -> Offered<()>;

    fn accounts(&self) -> Accounts;

    /// The currencies that orders here are in: the native one first.
    fn currencies(&self) -> Vec<&'static str>;

    /// The extra data of orders that are filled here.
    fn extra_data(&self) -> String;

    /// The same for another contract than the one that counts.
    fn other_extra_data(&self) -> Offered<String>;

    /// The id of the transaction called `name`.
    fn id(&self, name: &str) -> String;

    /// What a node that has `ledger` answers.
    fn answer(&self, ledger: &Ledger, method: &str, params: &Value) -> Answer;

    /// What the index of a node that has `ledger` shows at a path; `None` where there is no such path, or no index.
    fn page(&self, _ledger: &Ledger, _path: &str) -> Option<String> {
        None
    }

    /// Has the chain's entry name an index at this URL.
    fn indexed(&self, entry: &mut Value, url: &str) -> Offered<()>;

    /// The names of fields one of which is read of every transaction, and whose value is a text.
    fn once(&self) -> &'static [&'static str];

    fn twist(&self, twist: Twist, tx: &Tx) -> Offered<Tx>;

    fn deposits(&self, kind: DepositKind, orders: [B256; 2]) -> Offered<Vec<Case>>;

    /// A deposit whose order another than its payer named.
    fn named_by_other(&self, order: B256) -> Offered<Value>;

    fn payment(&self, kind: PaymentKind, paying: &Paying<'_>) -> Offered<Value>;

    /// Two different calls as orders have them.
    fn calls(&self) -> Offered<[String; 2]>;

    /// A payment in whose transaction the calls with these indexes of [`Script::calls`] are made.
    fn called(&self, paying: &Paying<'_>, calls: &[usize]) -> Offered<Value>;

    /// A transaction that cannot be in a block beside `tx`: both spend the same.
    fn rival(&self, tx: &Tx) -> Offered<Tx>;

    /// A transaction that spends what `tx` gave back to its payer, and pays for the inclusion of both: a deposit for an
    /// order, or none. With what is signed of it.
    fn child(&self, tx: &Tx, order: Option<B256>) -> Offered<(Tx, Expected)>;

    /// The family's encoding of a withdrawal, which the allocator may record.
    fn withdrawal(&self, asked: &Withdrawing<'_>) -> Vec<u8>;

    /// Withdrawals whose execution would not prove the payment, or that move more.
    fn unsound_withdrawals(&self, asked: &Withdrawing<'_>)
    -> Offered<Vec<(&'static str, Vec<u8>)>>;

    /// The same withdrawal of another depository.
    fn foreign_withdrawal(&self, asked: &Withdrawing<'_>) -> Offered<Vec<u8>>;

    /// What the allocator is told besides, by family name.
    fn additional(&self) -> Option<Map<String, Value>> {
        None
    }

    /// Whether withdrawals expire.
    fn expires(&self) -> Offered<()>;

    /// Whether a transaction names the withdrawal that it executes.
    fn names_withdrawals(&self) -> Offered<()>;

    /// Accounts of the key of which each byte is `key`, and how it signs for them in this form.
    fn owners(&self, form: OwnerForm, key: u8) -> Offered<Vec<Owner>>;

    /// A transaction about an encoded withdrawal.
    fn execution(&self, kind: ExecutionKind, withdrawal: &[u8]) -> Offered<Tx>;
}
