//! What owners of hub accounts sign, and what looks like it. Each cell ends with signatures that are their owners', and
//! what those ask for is signed.

use alloy::primitives::{Address as EvmAddress, U256};
use intentd::attest::{
    owner::{OwnerSignature, Requested},
    service::TransferClaim,
};
use vm::{
    ChainId,
    protocol::{
        action::Action,
        hub::{alias, token_id},
        id,
        owner::{Kind, Operation},
    },
};

use crate::{
    FAMILIES,
    cells::{Played, ensure, within},
    family::{AMOUNT, Offered, Owner, OwnerForm, Script},
    verdict::Verdict,
    world::{HOME, HUB, World},
};

const INVALID: &str = "OWNER_SIGNATURE_INVALID";
/// The bytes of the owner's key, and of a stranger's.
const OWN: u8 = 0x31;
const OTHER: u8 = 0x32;
/// The hub account that the owner pays.
const RECIPIENT: EvmAddress = EvmAddress::repeat_byte(0x77);
/// The owner's number for the transfer.
const NONCE: &str = "7";

/// A transfer of what an owner has at the hub.
struct Case {
    owner: Owner,
    requested: Requested,
    account: EvmAddress,
    token: U256,
}

impl Case {
    /// The settlement chain says that the owner has as much.
    fn new(world: &World, owner: Owner) -> Self {
        let (script, home) = (world.script, ChainId::new(HOME));
        let (family, currency) = (script.family(), script.currencies()[0]);
        let account = alias(&home, &family.account(&owner.account).unwrap());
        let token = token_id(&home, &family.currency(currency).unwrap());
        world.give(account, token, AMOUNT);
        let requested = Requested {
            kind: Kind::Transfer,
            chain: HOME.into(),
            currency: currency.into(),
            amount: AMOUNT.to_string(),
            owner_chain: HOME.into(),
            owner: owner.account.clone(),
            recipient: format!("{RECIPIENT:#x}"),
            nonce: NONCE.into(),
            additional: None,
        };
        Self {
            owner,
            requested,
            account,
            token,
        }
    }

    /// One for each account of the owner's whose signatures have this form.
    fn each(world: &World, form: OwnerForm) -> Offered<Vec<Self>> {
        let owners = world.script.owners(form, OWN)?;
        assert!(!owners.is_empty(), "{form:?} has no case");
        let cases = owners.into_iter().map(|owner| Self::new(world, owner));
        Ok(cases.collect())
    }

    /// What the owner signs.
    fn digest(&self) -> [u8; 32] {
        digest(&self.requested)
    }

    fn signature(&self) -> String {
        (self.owner.sign)(&self.digest())
    }

    /// What is signed of the transfer with this signature of the owner's.
    async fn claimed(&self, world: &World, signature: &str) -> Verdict {
        let claim = TransferClaim {
            requested: self.requested.clone(),
            signature: OwnerSignature::plain(signature),
        };
        Verdict::transfer(&world.oracle, world.oracle.transfer(&claim, None).await)
    }

    async fn is_refused(&self, world: &World, signature: &str) -> Played {
        let refused = self.claimed(world, signature).await.is_refused(INVALID);
        within(signature, refused)
    }

    /// The transfer is signed, as exactly that.
    async fn is_moved(&self, world: &World) -> Played {
        let signed = self.claimed(world, &self.signature()).await.signed()?;
        let action = Action::Transfer {
            from: self.account,
            to: RECIPIENT,
            token: self.token,
            amount: U256::from(AMOUNT),
        };
        let [from, to] = [self.account, RECIPIENT].map(|account| format!("{account:#x}"));
        let key = id::deterministic(&[HUB, &self.token.to_string(), &from, &to, NONCE]);
        let exactly = signed.key == key && signed.actions == [action.encode()];
        ensure(exactly, || {
            format!("{signed:?} is not {action:?} under {key}")
        })
    }
}

/// What the owner of a request signs.
fn digest(of: &Requested) -> [u8; 32] {
    let operation = Operation {
        kind: of.kind,
        chain_id: &of.chain,
        currency: &of.currency,
        amount: &of.amount,
        owner_chain_id: &of.owner_chain,
        owner: &of.owner,
        recipient: &of.recipient,
        nonce: &of.nonce,
        additional: None,
    };
    operation.digest()
}

/// Wrong when a transfer was signed.
async fn is_unsigned(world: &World) -> Played {
    let statements = world.statements_on(HUB).await;
    ensure(statements.is_empty(), || format!("signed: {statements:?}"))
}

/// An owner's signature counts in each form that its family has.
pub async fn signed(script: &'static dyn Script) -> Played {
    let world = World::start(script).await?;
    is_unsigned(&world).await?;
    for case in Case::each(&world, OwnerForm::Good)? {
        within(case.owner.what, case.is_moved(&world).await)?;
    }
    let statements = world.statements_on(HUB).await;
    ensure(!statements.is_empty(), || "no statement".into())
}

/// None of these is a signature of the owner's.
async fn refused(script: &'static dyn Script, wrong: impl Fn(&Case) -> Vec<String>) -> Played {
    let world = World::start(script).await?;
    for case in Case::each(&world, OwnerForm::Good)? {
        let wrong = wrong(&case);
        assert!(!wrong.is_empty(), "{} has no case", case.owner.what);
        for signature in &wrong {
            within(case.owner.what, case.is_refused(&world, signature).await)?;
        }
    }
    is_unsigned(&world).await?;
    signed(script).await
}

/// Bytes are missing at the end, one or more.
pub async fn truncated(script: &'static dyn Script) -> Played {
    let cut = |case: &Case| -> Vec<String> {
        let good = case.signature();
        let ends = [good.len() - 2, good.len() / 4 * 2, 4, 2, 0];
        ends.map(|end| good[..end].to_owned()).to_vec()
    };
    refused(script, cut).await
}

/// There is a byte more, at the end or at the beginning, or the signature is there twice.
pub async fn longer(script: &'static dyn Script) -> Played {
    let longer = |case: &Case| -> Vec<String> {
        let good = case.signature();
        let digits = good.trim_start_matches("0x");
        vec![
            format!("{good}00"),
            format!("0x00{digits}"),
            format!("{good}{digits}"),
        ]
    };
    refused(script, longer).await
}

/// The owner has signed this transfer with one part of it changed.
pub async fn other_message(script: &'static dyn Script) -> Played {
    let stranger = format!("{:#x}", EvmAddress::repeat_byte(0x78));
    let others = |case: &Case| -> Vec<String> {
        let mut all = vec![case.requested.clone(); 4];
        all[0].amount = (AMOUNT - 1).to_string();
        all[1].recipient.clone_from(&stranger);
        all[2].nonce = "8".into();
        all[3].kind = Kind::Withdrawal;
        let all = all.iter();
        all.map(|other| (case.owner.sign)(&digest(other))).collect()
    };
    refused(script, others).await
}

/// The owner of another account has signed this transfer.
pub async fn other_account(script: &'static dyn Script) -> Played {
    refused(script, |case| by(&[script], OTHER, case)).await
}

/// The same key has signed this transfer as the families of the other columns do.
pub async fn other_family(script: &'static dyn Script) -> Played {
    let column = script.column();
    let others = FAMILIES.iter().filter(|other| other.column() != column);
    let others: Vec<_> = others.copied().collect();
    refused(script, |case| by(&others, OWN, case)).await
}

/// The signatures of a case's transfer by the key of which each byte is `key`, in the forms of these families.
fn by(scripts: &[&'static dyn Script], key: u8, case: &Case) -> Vec<String> {
    let owners = scripts.iter().flat_map(|script| {
        let owners = script.owners(OwnerForm::Good, key);
        owners.unwrap_or_default()
    });
    owners.map(|owner| (owner.sign)(&case.digest())).collect()
}

/// Signatures of a form count for the account that the family says they count for, where they `may`, and for no other.
pub async fn formed(script: &'static dyn Script, form: OwnerForm, may: bool) -> Played {
    let world = World::start(script).await?;
    let strangers = script.owners(form, OTHER)?;
    for (case, stranger) in Case::each(&world, form)?.iter().zip(&strangers) {
        let Owner { what, counts, .. } = case.owner;
        ensure(may || !counts, || format!("{what} must not count"))?;
        let foreign = (stranger.sign)(&case.digest());
        within(what, case.is_refused(&world, &foreign).await)?;
        let own = match counts {
            true => case.is_moved(&world).await,
            false => case.is_refused(&world, &case.signature()).await,
        };
        within(what, own)?;
    }
    signed(script).await
}
