//! One liar or laggard of three decides nothing, and nobody waits for one that hangs.

use async_trait::async_trait;

use super::*;
use crate::{
    CodecError,
    trade::{Accounts, Authorization, Called, CurrencyInfo, DepositTx, ScanError, Scanner, Writer},
    types::Block,
};

/// What a provider says.
#[derive(Clone)]
struct Says {
    hangs: bool,
    nonce: (u64, u64),
    fees: Fees,
    estimate: Result<u64, Revert>,
    fate: Fate,
    broadcast: Broadcast,
    balance: Amount,
}

fn honest() -> Says {
    Says {
        hangs: false,
        nonce: (7, 7),
        fees: Fees {
            base: 30,
            priority: 2,
        },
        estimate: Ok(50_000),
        fate: Fate::Waiting,
        broadcast: Broadcast::Accepted,
        balance: Amount::from(9),
    }
}

impl Says {
    async fn say<T: Send>(&self, what: T) -> Result<T, ReadError> {
        if self.hangs {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        Ok(what)
    }
}

#[async_trait]
impl Writer for Says {
    async fn estimate(&self, _: &Intended<'_>) -> Result<Result<u64, Revert>, ReadError> {
        self.say(self.estimate.clone()).await
    }

    async fn fees(&self) -> Result<Fees, ReadError> {
        self.say(self.fees).await
    }

    async fn nonce(&self, _: &Address, waiting: bool) -> Result<u64, ReadError> {
        let (mined, pending) = self.nonce;
        self.say(if waiting { pending } else { mined }).await
    }

    async fn broadcast(&self, _: &Bytes) -> Result<Broadcast, ReadError> {
        self.say(self.broadcast.clone()).await
    }

    async fn fate(&self, _: &B256) -> Result<Fate, ReadError> {
        self.say(self.fate.clone()).await
    }
}

#[async_trait]
impl Accounts for Says {
    async fn balance(&self, _: &Address, _: &Address) -> Result<Amount, ReadError> {
        self.say(self.balance).await
    }

    async fn allowance(&self, _: &Address, _: &Address, _: &Address) -> Result<Amount, ReadError> {
        self.say(self.balance).await
    }

    async fn currency(&self, _: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        self.say(None).await
    }

    async fn is_contract(&self, _: &Address) -> Result<bool, ReadError> {
        self.say(false).await
    }

    /// What the bytes cost: one for each of the question.
    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        let fee = U256::from(calls[0].data.len());
        vec![self.say(Ok(fee.to_be_bytes::<32>().into())).await]
    }
}

#[async_trait]
impl Scanner for Says {
    async fn head(&self) -> Result<Block, ReadError> {
        self.say(block(1)).await
    }

    async fn block(&self, _: u64) -> Result<Option<Block>, ReadError> {
        self.say(None).await
    }

    async fn deposits(
        &self,
        _: std::ops::RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }

    async fn omitted(
        &self,
        _: u64,
        _: &Block,
        _: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl crate::trade::Simulator for Says {
    async fn rehearse(&self, _: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        self.say(self.estimate.clone()).await
    }
}

/// Whoever a delegation is to has signed it.
struct Codec;

impl TransactionCodec for Codec {
    fn admit(&self, _: u64, draft: &Draft, _: &Limits) -> Result<Vec<Address>, Unfit> {
        let signed = draft.authorizations.iter();
        Ok(signed.map(|one| one.address.clone()).collect())
    }

    fn data_fee(
        &self,
        _: u64,
        draft: &Draft,
        contract: Option<&Address>,
    ) -> Result<Call, CodecError> {
        Ok(Call {
            to: contract.cloned().unwrap_or_else(|| account(9)),
            ..draft.call.clone()
        })
    }

    fn routing(&self, proxy: &Address, router: &Address) -> Result<(Call, Bytes), CodecError> {
        let question = Call {
            to: proxy.clone(),
            ..call()
        };
        Ok((question, router.bytes().to_vec().into()))
    }

    fn digest(&self, _: u64, _: &Draft) -> Result<B256, CodecError> {
        Err(CodecError("nothing is signed here".into()))
    }

    fn seal(&self, _: u64, _: &Draft, _: &[u8; 65]) -> Result<(Bytes, B256), CodecError> {
        Err(CodecError("nothing is signed here".into()))
    }
}

fn block(fork: u8) -> Block {
    Block {
        number: 5,
        hash: B256::repeat_byte(fork),
        parent: B256::ZERO,
        time: 9,
    }
}

fn included(fork: u8) -> Fate {
    Fate::Included {
        block: block(fork),
        depth: 0,
        success: true,
        spent: None,
    }
}

#[tokio::test]
async fn one_liar_of_three_makes_no_transaction_dear_or_cheap() {
    let cost = |gas: u64, data: Option<u64>| {
        Some(Spent {
            gas: U256::from(gas),
            data: data.map(U256::from),
        })
    };
    let with = |told: Option<Spent>| {
        let mut fate = included(1);
        if let Fate::Included { spent, .. } = &mut fate {
            *spent = told;
        }
        fate
    };
    let saying = |told: [Option<Spent>; 3]| {
        let each = told.map(|told| Says {
            fate: with(told),
            ..self::honest()
        });
        among(each.into(), 2)
    };
    let honest = cost(30, Some(4));
    for lie in [
        cost(0, Some(0)),
        cost(u64::MAX, Some(u64::MAX)),
        cost(30, None),
        None,
    ] {
        let said = saying([lie, honest, honest]).fate(&B256::ZERO).await;
        assert_eq!(said, Ok(with(honest)), "{lie:?}");
    }
    let said = saying([None, None, honest]).fate(&B256::ZERO).await;
    assert_eq!(said, Ok(with(None)));
}

fn account(byte: u8) -> Address {
    Address::from_parts(&format!("{byte}"), vec![byte; 20])
}

fn call() -> Call {
    Call {
        from: account(1),
        to: account(2),
        data: vec![1; 100].into(),
        value: Amount::ZERO,
    }
}

fn reverts() -> Result<u64, Revert> {
    Err(Revert {
        reason: "no".into(),
        data: Bytes::new(),
    })
}

/// Two honest ones and one that is changed; it stands first, where it is asked first.
fn three(change: impl FnOnce(&mut Says)) -> Failover {
    let mut odd = honest();
    change(&mut odd);
    among(vec![odd, honest(), honest()], 2)
}

fn among(said: Vec<Says>, required: usize) -> Failover {
    let trades = said.into_iter().map(|says| {
        let says = Arc::new(says);
        TradingProvider {
            scanner: says.clone(),
            accounts: says.clone(),
            writer: says.clone(),
            simulator: says,
            inspector: Arc::new(crate::testing::Unseen),
        }
    });
    let context = FailoverContext {
        name: "chain".into(),
        number: 1,
        codec: &Codec,
        limits: Limits {
            data_fees: Some(account(3)),
            ..Limits::default()
        },
        required,
    };
    Failover::new(context, trades.collect()).unwrap()
}

#[tokio::test]
async fn one_liar_of_three_moves_no_number() {
    for nonce in [0, 6, 8, 1_007] {
        let failover = three(|odd| odd.nonce = (nonce, nonce));
        assert_eq!(failover.nonce(&account(1), false).await, Ok(7), "{nonce}");
    }
    for (base, priority) in [(0, 0), (10_000_000, 10_000_000), (30, 5_000), (30, 0)] {
        let failover = three(|odd| odd.fees = Fees { base, priority });
        assert_eq!(failover.fees().await, Ok(honest().fees), "{base}");
    }
    for balance in [Amount::ZERO, Amount::MAX] {
        let failover = three(|odd| odd.balance = balance);
        let said = failover.balance(&account(1), &account(2)).await;
        assert_eq!(said, Ok(Amount::from(9)));
    }
    for gas in [0, 21_000, u64::MAX] {
        let failover = three(|odd| odd.estimate = Ok(gas));
        let said = failover.estimate(&Intended::free(&call())).await;
        assert_eq!(said, Ok(Ok(50_000)));
    }
}

#[tokio::test]
async fn two_that_contradict_each_other_say_nothing_of_fees() {
    for base in [0, 6, 10_000] {
        let mut odd = honest();
        odd.fees.base = base;
        let said = among(vec![honest(), odd], 2).fees().await;
        assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
    }
    let mut near = honest();
    near.fees.base = 33;
    let said = among(vec![honest(), near], 2).fees().await;
    assert_eq!(said, Ok(honest().fees));
}

#[tokio::test]
async fn a_revert_is_what_a_quorum_says() {
    let intended = call();
    let intended = Intended::free(&intended);
    let lied = three(|odd| odd.estimate = reverts());
    assert_eq!(lied.estimate(&intended).await, Ok(Ok(50_000)));
    let mut odd = honest();
    odd.estimate = reverts();
    let two = among(vec![odd.clone(), odd.clone(), honest()], 2);
    let said = two.estimate(&intended).await.unwrap();
    assert_eq!(said.unwrap_err().reason, "no");
    let said = among(vec![odd, honest()], 2).estimate(&intended).await;
    assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
}

#[tokio::test]
async fn a_fate_is_what_a_quorum_has_seen() {
    let hash = B256::ZERO;
    let lied = three(|odd| odd.fate = included(1)).fate(&hash).await;
    assert_eq!(lied, Ok(Fate::Waiting));
    let behind = |fork| {
        let mut one = honest();
        one.fate = included(fork);
        one
    };
    let agreed = among(vec![honest(), behind(1), behind(1)], 2);
    assert_eq!(agreed.fate(&hash).await, Ok(included(1)));
    let split = among(vec![behind(2), behind(1), honest()], 2);
    assert_eq!(split.fate(&hash).await, Ok(Fate::Waiting));
    // One that claims to know it keeps nobody from sending it again.
    let unknown = || Says {
        fate: Fate::Unknown,
        ..honest()
    };
    for lie in [Fate::Waiting, included(1)] {
        let odd = Says {
            fate: lie,
            ..honest()
        };
        let lied = among(vec![odd, unknown(), unknown()], 2);
        assert_eq!(lied.fate(&hash).await, Ok(Fate::Unknown));
    }
}

#[tokio::test]
async fn a_transaction_is_refused_by_a_quorum() {
    let raw = Bytes::new();
    let refused = || Broadcast::Refused("oversized data".into());
    let lied = three(|odd| odd.broadcast = refused()).broadcast(&raw).await;
    assert_eq!(lied, Ok(Broadcast::Accepted));
    let says = |said: &Broadcast| {
        let mut one = honest();
        one.broadcast = said.clone();
        one
    };
    let other = Broadcast::Underpriced;
    let agreed = among(vec![says(&other), says(&refused()), says(&refused())], 2);
    assert_eq!(agreed.broadcast(&raw).await, Ok(refused()));
    // One that takes what the others never will holds up nobody.
    let alone = among(vec![honest(), says(&refused()), says(&refused())], 2);
    assert_eq!(alone.broadcast(&raw).await, Ok(refused()));
    let taken = among(vec![honest(), says(&refused())], 1);
    assert_eq!(taken.broadcast(&raw).await, Ok(Broadcast::Accepted));
    let taken = among(vec![honest(), says(&other), says(&refused())], 2);
    assert_eq!(taken.broadcast(&raw).await, Ok(Broadcast::Accepted));
    let split = among(vec![says(&other), says(&refused())], 2);
    let said = split.broadcast(&raw).await.unwrap();
    assert!(matches!(said, Broadcast::Rejected(_)), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_one_that_hangs() {
    let failover = three(|odd| odd.hangs = true);
    let started = Instant::now();
    assert_eq!(failover.nonce(&account(1), true).await, Ok(7));
    assert!(failover.fees().await.is_ok());
    assert!(failover.broadcast(&Bytes::new()).await.is_ok());
    let first = failover.first(|trade| async move { trade.scanner.head().await });
    assert_eq!(first.await, Ok(block(1)));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Two of three that hang are no quorum; that is known when their time is up.
    let mut odd = honest();
    odd.hangs = true;
    let failover = among(vec![odd.clone(), odd, honest()], 2);
    let started = Instant::now();
    let said = failover.nonce(&account(1), true).await;
    assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_planned_payment_costs_its_gas_and_its_bytes() {
    let failover = three(|odd| odd.fees.base = 10_000);
    let planned = call();
    let cost = failover.cost(&Intended::free(&planned)).await.unwrap();
    let cost = cost.unwrap();
    assert_eq!((cost.gas, cost.data), (50_000, Amount::from(100)));
    assert_eq!(cost.total, Amount::from(50_000 * 32 + 100));
}

#[tokio::test]
async fn authorizations_stand_where_their_accounts_do() {
    let one = |nonce| Authorization {
        chain_id: 1,
        address: account(4),
        nonce,
        y_parity: 0,
        r: B256::ZERO,
        s: B256::ZERO,
    };
    let planned = call();
    let admitted = async |failover: Failover, list: &[Authorization]| {
        let intended = Intended {
            authorizations: list,
            ..Intended::free(&planned)
        };
        failover.admit(&intended).await.unwrap()
    };
    assert_eq!(admitted(three(|_| ()), &[one(7), one(8)]).await, Ok(()));
    for list in [vec![one(6)], vec![one(7), one(7)], vec![one(8)]] {
        let said = admitted(three(|_| ()), &list).await;
        assert!(matches!(said, Err(Unfit::Authorization(..))), "{said:?}");
    }
    let mut queued = honest();
    queued.nonce = (7, 8);
    let queued = among(vec![honest(), queued.clone(), queued], 2);
    let said = admitted(queued, &[one(7)]).await.unwrap_err();
    assert!(said.to_string().contains("that wait"), "{said}");
    // One that claims a queue is not believed.
    let lied = three(|odd| odd.nonce = (7, 9));
    assert_eq!(admitted(lied, &[one(7)]).await, Ok(()));
}

#[tokio::test]
async fn one_liar_of_three_neither_fails_a_rehearsal_nor_passes_one() {
    let rehearsed = async |said: Failover| said.rehearse(&[call()]).await;
    let lies = three(|said| said.estimate = reverts());
    assert_eq!(rehearsed(lies).await, Ok(Ok(())));
    let revert = || Says {
        estimate: reverts(),
        ..honest()
    };
    let lies = among(vec![honest(), revert(), revert()], 2);
    assert!(matches!(rehearsed(lies).await, Ok(Err(_))));
    let lies = among(vec![honest(), revert()], 2);
    assert!(matches!(rehearsed(lies).await, Err(ReadError::Quorum(_))));
}
