//! One side of a trade in terms that all families share.

use alloy::primitives::{B256, U256};
use intentd::chains::Opened;
use serde_json::Value;
use vm::{Family, testing::Manners};

/// Name, number at the API, and seconds between blocks of a chain.
pub type Named = (&'static str, u64, u64);

/// The families that trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Evm,
    Scripted,
    Solana,
    Bitcoin,
}

impl Kind {
    /// Whether blocks have payments that failed. A transaction of Bitcoin's is valid, or in no block.
    pub fn has_failures(self) -> bool {
        self != Self::Bitcoin
    }

    /// Whether what waits for a block is seen, and may be replaced.
    pub fn has_sightings(self) -> bool {
        self == Self::Bitcoin
    }

    /// Whether a deposit is seen in a block that is not final.
    pub fn has_confirmations(self) -> bool {
        self != Self::Solana
    }

    /// Whether tokens are in accounts that their owners can give away.
    pub fn has_owned_accounts(self) -> bool {
        self == Self::Solana
    }

    /// Whether users can be asked to pay others on their own chain, without the solver.
    pub fn has_own_payments(self) -> bool {
        self != Self::Bitcoin
    }

    pub fn short(self) -> &'static str {
        match self {
            Self::Evm => "evm",
            Self::Scripted => "scripted",
            Self::Solana => "solana",
            Self::Bitcoin => "bitcoin",
        }
    }
}

/// A chain and its accounts, as texts of its family.
#[derive(Clone, Debug)]
pub struct About {
    /// The chain's name in orders.
    pub name: &'static str,
    /// The chain's number at the API.
    pub number: u64,
    /// Seconds between heights.
    pub pace: u64,
    pub family: &'static Family,
    /// Makes deposits and gets refunds.
    pub user: String,
    /// Gets what the order delivers.
    pub recipient: String,
    /// Has money, and no key of anybody else's.
    pub stranger: String,
    pub native: String,
    /// The native currency where there is no other.
    pub token: String,
    /// Heights after which a payment that is in no block is replaced by another one.
    pub life: u64,
}

/// Whoever has an account on a chain that a test knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Solver,
    User,
    Recipient,
    Stranger,
    Depository,
}

impl Party {
    const ALL: [Self; 5] = [
        Self::Solver,
        Self::User,
        Self::Recipient,
        Self::Stranger,
        Self::Depository,
    ];

    /// Each party with the account that `of` answers.
    pub fn all<T>(of: impl Fn(Self) -> T) -> [(Self, T); 5] {
        Self::ALL.map(|party| (party, of(party)))
    }

    /// Whose account it is.
    pub fn with<T: PartialEq>(all: &[(Self, T)], account: &T) -> Option<Self> {
        let mut all = all.iter();
        all.find(|(_, known)| known == account)
            .map(|(party, _)| *party)
    }
}

/// A successful payment from one party to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub by: Party,
    pub to: Party,
    /// Of the native currency, or else of the token.
    pub native: bool,
    pub amount: U256,
    /// The order that it names.
    pub order: Option<B256>,
    pub transaction: String,
    /// Unix seconds of its block.
    pub time: u64,
}

/// What happens to the solver's payments on their way into a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    #[default]
    Fair,
    /// No block includes them.
    Held,
    /// Blocks include them, and they fail there.
    Failing,
}

/// How one of three providers behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It is like the others.
    Sound,
    Down,
    /// It is some blocks behind.
    Late,
    /// It hides transactions, or shows them with other contents.
    Blind,
}

impl Manner {
    /// The same on a scripted chain.
    pub fn scripted(self) -> Manners {
        Manners {
            lag: if self == Self::Late { 3 } else { 0 },
            down: self == Self::Down,
            blind: self == Self::Blind,
        }
    }
}

/// What nodes ask for a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fees {
    /// A thousandth of what is usual.
    Low,
    /// A thousand times as much.
    High,
}

impl Fees {
    /// What is asked instead of the usual fee: never nothing.
    pub fn of(self, usual: u128) -> u128 {
        match self {
            Self::Low => (usual / 1_000).max(1),
            Self::High => usual * 1_000,
        }
    }
}

/// What a test does to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Weather(Weather),
    Provider(Manner),
    /// Not on chains that ask nothing for work.
    Fees(Fees),
    /// No block is made for this many seconds.
    Stand(u64),
    /// Other blocks replace the newest `depth` ones. They include the transactions of the replaced ones again, but
    /// the solver's where `lost` is set.
    Reorg {
        depth: u64,
        lost: bool,
    },
    /// Every transaction that the solver ever sent and that is in no block waits for one again, where nodes keep
    /// such transactions.
    Resend,
    /// The party, the user or a stranger, replaces its waiting transactions by others that pay itself alone, where that is
    /// possible.
    Replace(Party),
    /// The party's account for the token is somebody else's, or its own again, where accounts have owners.
    Own(Party, bool),
}

/// A successful payment of the solver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub transaction: String,
    pub order: B256,
    pub amount: U256,
}

/// What everybody can do on a chain, and see there.
pub trait Public: Send + Sync {
    /// The stranger pays a party, which is not the depository, native currency, and names an order; the transaction's id.
    fn give(&self, to: Party, amount: U256, order: B256) -> String;
    /// The payments from one party to another in the present blocks, oldest first.
    fn seen(&self) -> Vec<Seen>;
}

/// A chain with its user and its recipient.
pub trait Side: Public {
    fn about(&self) -> &About;
    /// The chain as the process opens it.
    fn open(&self) -> Opened;
    /// What the market file says of this chain's family besides what it says of every chain.
    fn network(&self) -> Value;
    /// Sends the transaction of a step as the user or as the stranger; its id.
    fn follow(&self, by: Party, data: &Value) -> String;
    /// The step of a native deposit with so many smallest units less for the depository.
    fn short(&self, data: &Value, missing: U256) -> Value;
    fn blocks(&self) -> &dyn Blocks;
}

/// The blocks of a chain.
pub trait Blocks {
    /// Makes the blocks that are due at `now`, in unix seconds.
    fn mine_until(&self, now: u64);
    /// The newest height.
    fn height(&self) -> u64;
    fn act(&self, act: Act);
    /// The solver's successful payments of a currency to an account, in the present blocks.
    fn given(&self, account: &str, currency: &str) -> Vec<Given>;
    /// Every transaction in the present blocks as a line of a log, with its time in unix seconds.
    fn told(&self) -> Vec<(u64, String)>;
}
