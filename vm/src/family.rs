//! The seam between the daemon and the VM families.
//!
//! A [`Family`] is a table entry: pure codecs, and a way to open one provider of one chain. What a
//! family cannot do is `None`. The daemon looks families up by name once, when it loads its chains.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    endpoint::Endpoint,
    finality::Finality,
    hint::Hints,
    oracle::{ChainReader, StateReader},
    owner::{KeyReader, OwnerVerifier},
    protocol::{
        self,
        request::{PayloadParams, PayloadRequest, WithdrawCall},
    },
    spec::{EntryRules, FinalityDefaults},
    trade::{
        ApprovalSteps, Draft, Landing, OpenProviders, OpenSwaps, OpenTrading, ReadLimits, Scheme,
        StepBuilder,
    },
    types::{Address, B256, Bytes, ChainId, TxRef, U256},
};

/// One VM family.
pub struct Family {
    /// The name that configuration and the API use, for example `ethereum-vm`.
    pub name: &'static str,
    /// What integrators' clients call it: `evm`, `svm`, …
    pub short: &'static str,
    pub codec: &'static dyn Codec,
    pub lengths: Lengths,
    /// Decimals of the native currency, where they are the same on all chains of the family.
    pub native_decimals: Option<u8>,
    /// What callers write before the codec's text of a transaction id (`0x` on Tron).
    pub tx_prefix: &'static str,
    /// What callers say besides an id so that a transaction is found, under the family's name.
    pub hints: Hints,
    /// Whether a question for the deposits of an unknown transaction is answered with none; else it is refused.
    pub unknown_is_empty: bool,
    /// Whether blocks' headers bear out which logs are in them, so that a lone provider leaves none out unseen.
    pub blooms: bool,
    /// Whether of a chain's depositories only the primary one's withdrawals are read.
    pub sole_depository: bool,
    /// Whether oracles authorize its withdraw requests for the hub's own allocator.
    pub authorizable: bool,
    /// Whether the ends of withdrawals from this depository are judged; `None`: those from all.
    pub withdraws_from: Option<fn(&Address) -> bool>,
    /// As [`Spending::unproven`], of a withdrawal that the allocator is to be told of. `None` where signatures cover all.
    pub unproven: Option<UnprovenOf>,
    /// Refuses what the allocator is to be told (v2.2) where it would pay another currency than the request's, or record
    /// a withdrawal of whose end nobody could say anything: [`WithdrawalCodec::normalize_payload`] takes what it is given.
    /// `None` where it has nothing to refuse.
    pub check_payload: Option<PayloadCheck>,
    pub withdrawals: Option<&'static dyn WithdrawalCodec>,
    /// `None`: allocators record the encoded withdrawal.
    pub payloads: Option<&'static dyn PayloadCodec>,
    pub owners: Option<&'static dyn OwnerVerifier>,
    /// Opens one provider that reads keys of owners, likewise. `None` where signatures are verified without the chain.
    pub owner_keys: Option<OpenProvider>,
    pub orders: Option<&'static dyn OrderCodec>,
    pub finality: FinalityDefaults,
    /// What it reads in a chain's entry besides the fields of all families.
    pub entry: Option<EntryRules>,
    /// Opens one provider. No network traffic happens before the first read.
    pub open: Option<OpenProvider>,
    /// Opens one provider for trading, likewise.
    pub trade: Option<OpenTrading>,
    /// Reads the `limits` of a network in the market file. Without them all has its default.
    pub limits: Option<ReadLimits>,
    /// Makes one of a chain's providers. `Ok(None)`: there is none.
    pub providers: Option<OpenProviders>,
    /// The keys of its accounts, and the account of a public key.
    pub keys: Option<FamilyKeys>,
    /// How what an account means to pay lands.
    pub landing: Option<&'static dyn Landing>,
    pub steps: Option<&'static dyn StepBuilder>,
    /// Whether callers choose how the user's transactions are made: [`Choices`](crate::trade::Choices).
    pub choices: bool,
    /// What tells a user's draft by its transaction, as [`Receipt::outer_call`](crate::Receipt::outer_call) has it, where
    /// a transaction shows less than the draft has; `None`: [`Draft::digest`].
    pub own_call: Option<fn(&Draft) -> B256>,
    /// `None`: nobody but its owner takes what an account has.
    pub approvals: Option<&'static dyn ApprovalSteps>,
    /// Opens the exchanges that a chain's configuration names.
    pub swaps: Option<OpenSwaps>,
}

/// How many bytes a family's addresses have, at least and at most, and its transaction ids where others are refused.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    pub account: (usize, usize),
    pub currency: (usize, usize),
    pub transaction: Option<usize>,
}

impl Lengths {
    /// Of a family whose codec knows better.
    pub const ANY: Self = Self {
        account: (0, usize::MAX),
        currency: (0, usize::MAX),
        transaction: None,
    };

    /// Accounts and currencies alike.
    pub const fn both(bytes: usize) -> Self {
        Self {
            account: (bytes, bytes),
            currency: (bytes, bytes),
            transaction: None,
        }
    }
}

/// The keys that the accounts of a family have, and the account of a public key.
#[derive(Clone, Copy)]
pub struct FamilyKeys {
    pub scheme: Scheme,
    /// The account of a public key of that scheme.
    pub account: fn(&[u8]) -> Result<Address, CodecError>,
}

/// Opens one provider without network traffic. An error where the configuration of the chain does not fit its family.
pub type OpenProvider = fn(&Arc<ChainSpec>, &Endpoint) -> Result<Provider, SpecError>;

/// See [`Family::unproven`].
pub type UnprovenOf = fn(&PayloadRequest) -> Result<Option<Bytes>, CodecError>;

/// Refuses what the allocator is not to be told.
pub type PayloadCheck = fn(&PayloadRequest) -> Result<(), CodecError>;

impl Family {
    /// Parses an account, contract or currency of this family.
    pub fn address(&self, text: &str) -> Result<Address, CodecError> {
        self.account(text).or_else(|_| self.currency(text))
    }

    /// Parses an account or contract of this family.
    pub fn account(&self, text: &str) -> Result<Address, CodecError> {
        self.of_length(text, self.lengths.account)
    }

    /// Parses a currency of this family.
    pub fn currency(&self, text: &str) -> Result<Address, CodecError> {
        self.of_length(text, self.lengths.currency)
    }

    fn of_length(&self, text: &str, (least, most): (usize, usize)) -> Result<Address, CodecError> {
        let address = self.any_address(text)?;
        if (least..=most).contains(&address.bytes().len()) {
            return Ok(address);
        }
        let refused = |text| CodecError(format!("Not as long as those of {}: {text}", self.name));
        Err(refused(protocol::text::short(text)))
    }

    /// Parses what the published ids are defined for: of any length. No account of a request.
    /// Hex must decode to itself: the published encodings drop or add digits to make bytes of it.
    pub fn any_address(&self, text: &str) -> Result<Address, CodecError> {
        let bytes = self.codec.encode_address(text)?;
        let spelled = self.codec.decode_address(&bytes).unwrap_or_default();
        if spelled.starts_with("0x") && !spelled.eq_ignore_ascii_case(text) {
            let text = protocol::text::short(text);
            return Err(CodecError(format!("Not whole bytes of hex: {text}")));
        }
        Ok(Address::from_parts(text, bytes))
    }

    /// The one spelling of an account, contract or currency: texts that name the same one have the same, and no others
    /// have. A text that is none stands for itself, hex without case.
    pub fn canonical(&self, text: &str) -> String {
        let address = self.any_address(text);
        let spelled = address.and_then(|address| self.codec.decode_address(address.bytes()));
        spelled.unwrap_or_else(|_| match text.starts_with("0x") {
            true => text.to_ascii_lowercase(),
            false => text.to_owned(),
        })
    }

    /// The native currency.
    pub fn native(&self) -> Result<Address, CodecError> {
        self.currency(self.codec.native())
    }

    /// Parses a transaction id; `hint` is whatever the caller sent under this family's name.
    /// Onchain ids are made of the text, so that but for its case a transaction has one spelling.
    pub fn tx(&self, text: &str, hint: Option<&Value>) -> Result<TxRef, CodecError> {
        let refused = || {
            let text = protocol::text::short(text);
            CodecError(format!("Not a transaction id of {}: {text}", self.name))
        };
        let id = text.strip_prefix(self.tx_prefix).ok_or_else(refused)?;
        let bytes = self.codec.encode_transaction_id(id)?;
        let canonical = self.codec.decode_transaction_id(&bytes)?;
        let other = self.lengths.transaction.is_some_and(|it| it != bytes.len());
        if other || !canonical.eq_ignore_ascii_case(id) {
            return Err(refused());
        }
        Ok(TxRef {
            text: text.into(),
            bytes: bytes.into(),
            hint: hint.cloned().map(Arc::new),
        })
    }
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Text that does not belong to a family's format, or bytes that do not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(pub String);

/// Addresses, currencies and transaction ids of a family (guide: protocol 2.2).
pub trait Codec: Send + Sync {
    /// The native currency's sentinel text.
    fn native(&self) -> &'static str;
    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError>;
    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError>;
    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError>;
    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError>;
}

/// Order calls and extra data (guide: protocol 3.2).
pub trait OrderCodec: Send + Sync {
    /// `{to, data, value}` out of an order call; `None` where the family has no calls.
    fn decode_call(&self, call: &[u8]) -> Result<OrderCall, CodecError>;
    fn encode_call(&self, call: &OrderCall) -> Result<Vec<u8>, CodecError>;
    /// The fill contract named by an order's extra data.
    fn decode_extra_data(&self, data: &[u8]) -> Result<Address, CodecError>;
    fn encode_extra_data(&self, fill_contract: &Address) -> Result<Vec<u8>, CodecError>;
    /// The call that has the fill contract `router` give what is left of a currency to `to`.
    fn sweep(&self, router: &Address, of: &Address, to: &Address) -> Result<OrderCall, CodecError>;
}

/// One call that an order wants made on its output chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderCall {
    pub to: Address,
    pub data: Bytes,
    pub value: U256,
}

/// Depository withdrawals of a family (guide: protocol 8.1). `withdrawal` is the JSON object of the
/// vectors and of the API; the bytes are what allocators sign.
pub trait WithdrawalCodec: Send + Sync {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError>;
    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError>;
    /// What the encoded withdrawal says; each part fails on its own.
    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo;
    /// v2.2: the spelling of a request that the Aurora allocator hashes (guide: protocol 8.2).
    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError>;
    /// v2.3: the `data` bytes of a hub allocator request (guide: protocol 8.3); the whole request is
    /// made by [`WithdrawRequest::new`](crate::protocol::request::WithdrawRequest::new).
    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError>;
}

/// What an allocator records of a withdrawal, where that is not the withdrawal (guide: protocol 8.4).
pub trait PayloadCodec: Send + Sync {
    /// How many signatures the allocator gives for it.
    fn signatures(&self, payload: &[u8]) -> Result<usize, CodecError>;
    /// The withdrawal without signatures: what became of it is read by this, too.
    fn unsigned(&self, payload: &[u8]) -> Result<Vec<u8>, CodecError>;
    /// The withdrawal with signatures as the allocator's signature service gives them, in order.
    fn signed(&self, payload: &[u8], signatures: &[Bytes]) -> Result<Vec<u8>, CodecError>;
    /// Refuses the `data` of a hub allocator request whose payload would be one of which [`StateReader::withdrawal`] never
    /// says how it ended.
    fn check_request(&self, data: &[u8]) -> Result<(), CodecError>;
}

/// What an encoded withdrawal says; each part fails on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawalInfo {
    /// The withdrawal id as the family writes it.
    pub id: Result<String, CodecError>,
    pub currency: Result<String, CodecError>,
    pub amount: Result<String, CodecError>,
    pub recipient: Result<String, CodecError>,
    /// `Err` unless its execution proves that this payment was made, and nothing else.
    pub sole: Result<(), CodecError>,
    /// `None` where the depository is a contract that is called.
    pub spending: Option<Spending>,
}

/// What a withdrawal says besides that is a transaction of the depository's own account. No transaction names its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The account that pays.
    pub payer: String,
    /// What the allocator records of it. Elsewhere that is the encoded withdrawal.
    pub payload: Bytes,
    /// What it says of outputs that it spends and no signature covers, for [`StateReader::bears_out`]: where it names too
    /// small values, the rest is paid as fees. `None` where signatures cover all.
    pub unproven: Option<Bytes>,
}

impl WithdrawalInfo {
    /// Every part fails for one reason.
    pub fn unreadable(error: &CodecError) -> Self {
        let refused = || Err(error.clone());
        Self {
            id: refused(),
            currency: refused(),
            amount: refused(),
            recipient: refused(),
            sole: Err(error.clone()),
            spending: None,
        }
    }
}

/// A chain as configured: what decides how it is read and judged.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    pub id: ChainId,
    pub family: &'static Family,
    /// The chain's number at the hub: the EVM chain id, else keccak256(id).
    pub hub_chain_id: U256,
    pub depository: Option<Address>,
    pub additional_depositories: Vec<Address>,
    pub finality: Finality,
    /// Blocks for which a signed fact is watched after its finality.
    pub watch_blocks: u64,
    /// Whose word about payments and calls counts.
    pub fill_routers: FillRouters,
    /// The entry's `additionalData`, variables resolved: family-private settings.
    pub additional: Map<String, Value>,
}

/// The fill routers whose word counts. An order names its own, and its solver writes the order: whoever
/// names a contract of his own could have it say that anything was paid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FillRouters {
    /// Whichever the order names.
    #[default]
    Any,
    Listed(Vec<Address>),
}

impl FillRouters {
    pub fn accepts(&self, router: &Address) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(listed) => listed.contains(router),
        }
    }

    /// With one more, where they are listed.
    pub fn add(&mut self, router: Address) {
        if let Self::Listed(listed) = self
            && !listed.contains(&router)
        {
            listed.push(router);
        }
    }
}

impl ChainSpec {
    /// The primary depository and the additional ones.
    pub fn depositories(&self) -> impl Iterator<Item = &Address> {
        self.depository.iter().chain(&self.additional_depositories)
    }
}

/// One opened provider of one chain, as a family made it.
#[derive(Clone)]
pub struct Provider {
    /// For logs and metrics; see [`Endpoint::name`]. Unique within its chain.
    pub name: Arc<str>,
    pub reader: Arc<dyn ChainReader>,
    pub state: Option<Arc<dyn StateReader>>,
    pub keys: Option<Arc<dyn KeyReader>>,
    /// Whether a node of another network is noticed. It is not where nothing in the chain's entry tells networks apart.
    pub checks_network: bool,
}

/// A loaded chain.
#[derive(Clone)]
pub struct Chain {
    pub spec: Arc<ChainSpec>,
    pub reader: Arc<dyn ChainReader>,
    pub state: Option<Arc<dyn StateReader>>,
}

/// A configuration that cannot work, with the entry's field in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);
