//! What the family adds to agreement: nonces, bytes, authorizations, calls that need each other.

use super::*;
use crate::{
    trade::{
        ContractChecks,
        failover::fakes::{Says, account, call, draft, honest, providers, reverts, three},
    },
    types::{B256, Bytes},
};

/// Whoever a delegation is to has signed it.
struct Codec;

impl TransactionCodec for Codec {
    fn admit(&self, _: u64, draft: &Unsealed, _: &Limits) -> Result<Vec<Address>, Unfit> {
        let signed = draft.authorizations.iter();
        Ok(signed.map(|one| one.address.clone()).collect())
    }

    fn data_fee(
        &self,
        _: u64,
        draft: &Unsealed,
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

    fn digest(&self, _: u64, _: &Unsealed) -> Result<B256, CodecError> {
        Err(CodecError("nothing is signed here".into()))
    }

    fn seal(&self, _: u64, _: &Unsealed, _: &[u8; 65]) -> Result<(Bytes, B256), CodecError> {
        Err(CodecError("nothing is signed here".into()))
    }
}

fn among(said: Vec<Says>, required: usize) -> Wallet {
    let limits = Limits::default();
    Wallet {
        failover: Failover::new("chain", required, providers(said)).unwrap(),
        family: &crate::ethereum::FAMILY,
        number: 1,
        codec: &Codec,
        limits: Arc::new(limits),
        data_fees: Some(account(3)),
        asked: None,
    }
}

#[tokio::test]
async fn one_liar_of_three_moves_no_nonce() {
    for nonce in [0, 6, 8, 1_007] {
        let wallet = among(three(|odd| odd.nonce = (nonce, nonce)), 2);
        assert_eq!(wallet.nonce(&account(1), false).await, Ok(7), "{nonce}");
    }
}

#[tokio::test]
async fn a_planned_payment_costs_its_gas_and_its_bytes() {
    let wallet = Arc::new(among(three(|odd| odd.rate.base = 10_000), 2));
    let providers = facade(wallet);
    let fee = providers.fee(&draft()).await.unwrap().unwrap();
    assert_eq!((fee.work, fee.besides), (50_000, Amount::from(100)));
    assert_eq!(fee.total(), Amount::from(50_000 * 32 + 100));
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
    let admitted = async |said: Vec<Says>, list: &[Authorization]| {
        let call = call();
        let draft = Draft {
            from: call.from,
            value: call.value,
            body: Body::Call {
                to: call.to,
                data: call.data,
                authorizations: list.to_vec(),
            },
        };
        let wallet: &dyn trade::Wallet = &among(said, 2);
        wallet.admit(&draft).await.unwrap()
    };
    assert_eq!(admitted(three(|_| ()), &[one(7), one(8)]).await, Ok(()));
    for list in [vec![one(6)], vec![one(7), one(7)], vec![one(8)]] {
        let said = admitted(three(|_| ()), &list).await;
        assert!(matches!(said, Err(Unfit::Authorization(..))), "{said:?}");
    }
    let mut queued = honest();
    queued.nonce = (7, 8);
    let queued = vec![honest(), queued.clone(), queued];
    let said = admitted(queued, &[one(7)]).await.unwrap_err();
    assert!(said.to_string().contains("that wait"), "{said}");
    // One that claims a queue is not believed.
    let lied = three(|odd| odd.nonce = (7, 9));
    assert_eq!(admitted(lied, &[one(7)]).await, Ok(()));
}

#[tokio::test]
async fn one_liar_of_three_neither_fails_a_simulation_nor_passes_one() {
    let simulated = async |said: Vec<Says>| among(said, 2).simulate_all(&[draft()]).await;
    let lies = three(|said| said.estimate = reverts());
    assert_eq!(simulated(lies).await, Ok(Ok(())));
    let revert = || Says {
        estimate: reverts(),
        ..honest()
    };
    let lies = vec![honest(), revert(), revert()];
    assert!(matches!(simulated(lies).await, Ok(Err(_))));
    let lies = vec![honest(), revert()];
    assert!(matches!(simulated(lies).await, Err(ReadError::Quorum(_))));
}
