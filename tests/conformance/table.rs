//! The rows: what happens, and what must follow, in the words of no family. Each is written once and is run for every
//! family that reads chains.

use futures::future::LocalBoxFuture;

use crate::{
    cells::{
        Played, amounts, chain,
        deposits::{self, Rule},
        index, lies, loss, owners, payments, withdrawals,
    },
    family::{DepositKind, ExecutionKind, OwnerForm, PaymentKind, Script, Twist},
    node::Manner,
};

/// One row of the matrix.
pub struct Row {
    pub group: &'static str,
    pub case: &'static str,
    pub must: &'static str,
    pub play: fn(&'static dyn Script) -> LocalBoxFuture<'static, Played>,
}

macro_rules! rows {
    ($($group:literal { $($case:literal, $must:literal => |$script:ident| $played:expr;)* })*) => {
        &[$($(Row {
            group: $group,
            case: $case,
            must: $must,
            play: |$script| Box::pin(async move { $played.await }),
        },)*)*]
    };
}

pub const ROWS: &[Row] = rows![
    "One of three providers lies" {
        "a forged amount", "outvoted, set aside" => |s| lies::twisted(s, Twist::Amount);
        "a deposit added", "outvoted, set aside" => |s| lies::twisted(s, Twist::Added);
        "the deposit dropped", "outvoted, set aside" => |s| lies::twisted(s, Twist::Dropped);
        "another order", "outvoted, set aside" => |s| lies::twisted(s, Twist::Order);
        "a wrong status", "outvoted, set aside" => |s| lies::twisted(s, Twist::Status);
        "another transaction", "outvoted, set aside" => |s| lies::twisted(s, Twist::Other);
        "the transaction denied", "outvoted, counted" => |s| lies::denied(s);
        "another hash for the height", "outvoted, set aside" => |s| lies::wrong_hash(s);
        "another time of the block", "outvoted, set aside" => |s| lies::wrong_time(s);
        "another chain's id", "outvoted, set aside" => |s| lies::other_chain(s);
        "a tip of the future", "nothing is final by it" => |s| lies::future(s);
        "a tip that is 1 block late", "no vote is lost, nothing is early" => |s| lies::late(s, 1);
        "a tip that is 100 blocks late", "no vote is lost, nothing is early" => |s| lies::late(s, 100);
        "a lie in the second answer only", "outvoted, set aside" => |s| lies::second(s);
        "a fill that nobody made", "refused" => |s| lies::forged_fill(s);
        "hex of odd length", "outvoted, set aside" => |s| lies::twisted(s, Twist::OddHex);
        "numbers out of order", "outvoted, set aside" => |s| lies::twisted(s, Twist::Indexes);
        "truncated JSON", "no vote" => |s| lies::unreadable(s, &Manner::Truncated);
        "200 MB", "no vote" => |s| lies::unreadable(s, &Manner::Flood);
        "a field twice", "no vote" => |s| lies::unreadable(s, &Manner::Doubled);
        "a compressed bomb", "no vote" => |s| lies::unreadable(s, &Manner::Bomb);
        "a liar, then another is down", "503, also if it is honest again" => |s| lies::aside(s);
        "two lie, each in its way", "503" => |s| lies::two(s);
    }
    "Providers are lost" {
        "all are down", "503, then signed" => |s| loss::all_down(s);
        "status 503", "two are enough, one is not" => |s| loss::silent(s, &lies::DOWN);
        "429 with Retry-After", "two are enough, one is not" => |s| loss::silent(s, &Manner::Status(429, Some("1")));
        "hangs", "two are enough, one is not" => |s| loss::silent(s, &Manner::Hang);
        "drips", "two are enough, one is not" => |s| loss::silent(s, &Manner::Drip);
        "closes connections", "two are enough, one is not" => |s| loss::silent(s, &Manner::Drop);
        "redirects to an honest one", "two are enough, one is not" => |s| loss::redirected(s);
        "has no valid TLS", "two are enough, one is not" => |s| loss::insecure(s);
        "come and go", "two are enough, one is not" => |s| loss::flapping(s);
        "a name that leads elsewhere later", "no vote" => |s| loss::renamed(s);
    }
    "An index is a provider" {
        "alone", "signed as by nodes, or 503" => |s| index::alone(s);
        "it and a node", "both have to agree" => |s| index::pair(s);
        "it or a node beside it lies", "outvoted, set aside" => |s| index::lies(s);
        "another block, no deposit, another chain", "outvoted" => |s| index::elsewhere(s);
        "a tip that is late", "no vote is lost" => |s| index::late(s);
        "it is lost, in any way", "two nodes are enough, one is not" => |s| index::silent(s);
        "answers that are none", "no vote" => |s| index::unreadable(s);
        "it names what ended a withdrawal", "signed without the caller's word" => |s| withdrawals::told_by_index(s);
        "it names what no node has", "503, signed as nodes show it" => |s| withdrawals::misled_by_index(s);
    }
    "The chain" {
        "the last block of finality", "refused before, signed with it" => |s| chain::last_block(s);
        "no block comes", "refused until one does" => |s| chain::still(s);
        "a transaction in no block", "missing" => |s| chain::unconfirmed(s);
        "a transaction that is replaced", "missing for good" => |s| chain::replaced(s);
        "a child pays for the deposit", "signed as without the child" => |s| chain::child_pays(s);
        "the deposit's parent waits", "missing until both are in blocks" => |s| chain::parent_waits(s);
        "a reorg drops the deposit", "missing" => |s| chain::dropped(s);
        "a reorg of 1 before signing", "signed as of the new block" => |s| chain::before(s, 1);
        "a reorg of 2 before signing", "signed as of the new block" => |s| chain::before(s, 2);
        "a reorg of 16 before signing", "signed as of the new block" => |s| chain::before(s, 16);
        "a reorg of 64 before signing", "signed as of the new block" => |s| chain::before(s, 64);
        "a reorg to another position in a block", "signed as of the new block" => |s| chain::repositioned(s);
        "a reorg between any two calls", "signed as of one fork, or not" => |s| chain::during(s);
        "a reorg of 4 after signing", "halted durably, no other chain" => |s| chain::after(s, 4);
        "a reorg of 64 after signing", "halted durably, no other chain" => |s| chain::after(s, 64);
        "the same in another block after signing", "halted durably, no other chain" => |s| chain::elsewhere(s);
        "a chain that begins anew", "halted durably, no other chain" => |s| chain::restarted(s);
        "one provider on another fork, then each", "outvoted, then 503" => |s| chain::forked(s);
        "heights without a block", "signed as elsewhere" => |s| chain::skipped(s);
        "the chain's word for final", "nothing is final above it" => |s| chain::tagged(s);
    }
    "Deposits" {
        "plain", "minted exactly" => |s| deposits::read(s, DepositKind::Plain, Rule::Exact);
        "of a token", "minted exactly" => |s| deposits::read(s, DepositKind::Token, Rule::Exact);
        "one unit, one off", "minted exactly" => |s| deposits::read(s, DepositKind::Units, Rule::Exact);
        "amounts that no float has", "minted exactly" => |s| deposits::read(s, DepositKind::Edges, Rule::Exact);
        "less than nodes pass on", "minted exactly" => |s| deposits::read(s, DepositKind::Unrelayed, Rule::Exact);
        "several in one transaction", "minted exactly" => |s| deposits::read(s, DepositKind::Several, Rule::Exact);
        "one unit, or nothing, beside it", "minted exactly" => |s| deposits::read(s, DepositKind::Beside, Rule::Exact);
        "every kind of payer", "minted exactly" => |s| deposits::read(s, DepositKind::Payers, Rule::Exact);
        "through somebody's contract", "minted exactly" => |s| deposits::read(s, DepositKind::InnerCall, Rule::Exact);
        "more behind the id", "minted exactly" => |s| deposits::read(s, DepositKind::LongText, Rule::Exact);
        "among thousands of events", "minted exactly" => |s| deposits::read(s, DepositKind::Crowded, Rule::Exact);
        "the payer's account closed", "minted exactly" => |s| deposits::read(s, DepositKind::ClosedPayer, Rule::Exact);
        "accounts named by a table", "minted exactly" => |s| deposits::read(s, DepositKind::Tables, Rule::Exact);
        "no id, or zero", "no order's" => |s| deposits::read(s, DepositKind::NoId, Rule::NoOrder);
        "text that is no id", "no order's" => |s| deposits::read(s, DepositKind::NotAnId, Rule::NoOrder);
        "an id where it does not count", "no order's" => |s| deposits::read(s, DepositKind::ElsewhereNamed, Rule::NoOrder);
        "another shape", "no order's" => |s| deposits::read(s, DepositKind::OddShape, Rule::NoOrder);
        "two ids", "no order's" => |s| deposits::read(s, DepositKind::TwoIds, Rule::NoOrder);
        "two depositors", "no order's" => |s| deposits::read(s, DepositKind::TwoDepositors, Rule::NoOrder);
        "a fee on the way", "what arrived, no more" => |s| deposits::read(s, DepositKind::FeeOnTransfer, Rule::FirstOrder);
        "a currency that calls its maker", "what arrived, no more" => |s| deposits::read(s, DepositKind::Calling, Rule::FirstOrder);
        "a worthless currency", "as that currency" => |s| deposits::read(s, DepositKind::Worthless, Rule::FirstOrder);
        "a block without a time", "a time from elsewhere, or not signed" => |s| deposits::read(s, DepositKind::NoTime, Rule::FirstOrder);
        "two depositories", "not the second's" => |s| deposits::read(s, DepositKind::TwoDepositories, Rule::FirstOrder);
        "another emitter", "not signed" => |s| deposits::read(s, DepositKind::LookAlike, Rule::Unsigned);
        "said, and nothing moved", "not signed" => |s| deposits::read(s, DepositKind::EventAlone, Rule::Unsigned);
        "moved to somebody's own account", "not signed" => |s| deposits::read(s, DepositKind::OwnVault, Rule::Unsigned);
        "amounts that are hidden", "not signed" => |s| deposits::read(s, DepositKind::Hidden, Rule::Unsigned);
        "the depository's account closed", "not signed" => |s| deposits::read(s, DepositKind::ClosedVault, Rule::Unsigned);
        "failed", "not signed" => |s| deposits::read(s, DepositKind::Failed, Rule::Unsigned);
        "of nothing", "not signed" => |s| deposits::read(s, DepositKind::Nothing, Rule::Unsigned);
        "the depository pays itself", "not signed" => |s| deposits::read(s, DepositKind::FromDepository, Rule::Unsigned);
        "the depository calls itself", "not signed" => |s| deposits::read(s, DepositKind::SelfCall, Rule::Unsigned);
        "more than an execution carries", "not signed" => |s| deposits::read(s, DepositKind::TooMany, Rule::Unsigned);
        "money that a block made", "not signed" => |s| deposits::read(s, DepositKind::Coinbase, Rule::Unsigned);
    }
    "Fills and refunds" {
        "a fill", "moved exactly" => |s| payments::filled(s);
        "in two parts", "moved if they are enough" => |s| payments::split(s);
        "in two ways", "refused" => |s| payments::refused(s, PaymentKind::TwoWays, "FILL_INSUFFICIENT");
        "in two transactions", "refused" => |s| amounts::two_transactions(s);
        "short by one unit", "refused" => |s| payments::short(s);
        "names another order", "refused" => |s| payments::refused(s, PaymentKind::NamesOther, "ORDER_NOT_REFERENCED");
        "names no order", "refused" => |s| payments::refused(s, PaymentKind::NamesNone, "ORDER_NOT_REFERENCED");
        "more around the id", "refused" => |s| payments::refused(s, PaymentKind::NamesLoosely, "ORDER_NOT_REFERENCED");
        "named by another than its payer", "refused" => |s| payments::refused(s, PaymentKind::NamedByAnother, "ORDER_NOT_REFERENCED");
        "names two orders", "refused for both" => |s| payments::names_both(s);
        "in another currency", "refused" => |s| payments::refused(s, PaymentKind::OtherCurrency, "FILL_INSUFFICIENT");
        "failed", "refused" => |s| payments::refused(s, PaymentKind::Failed, "TRANSACTION_REVERTED");
        "of another's money", "refused" => |s| payments::refused(s, PaymentKind::OfAnother, "FILL_INSUFFICIENT");
        "out of a depository", "refused" => |s| payments::refused(s, PaymentKind::OutOfDepository, "FILL_INSUFFICIENT");
        "to its own payer", "refused" => |s| payments::to_itself(s);
        "in the last second, and one later", "signed, and refused" => |s| payments::deadline(s);
        "on another chain", "refused" => |s| payments::other_chain(s);
        "one payment for two deposits", "one is signed" => |s| payments::twice(s);
        "the same claim again", "the same signature" => |s| payments::repeated(s);
        "the deposit as its own fill", "refused" => |s| payments::own_deposit(s);
        "the deposit as its own refund", "refused" => |s| payments::own_refund(s);
        "signed by another than its solver", "refused" => |s| payments::unsigned(s);
        "another order's deposit", "refused" => |s| payments::other_deposit(s);
        "a deposit of one unit", "refused without the solver's word" => |s| amounts::one_unit(s);
        "a deposit of nothing", "refused" => |s| amounts::nothing(s);
        "a deposit one unit off", "moved exactly" => |s| amounts::one_off(s);
        "one unit, or nothing, beside the deposit", "the deposit alone is moved" => |s| amounts::beside(s);
        "a deposit that is not final", "refused until it is" => |s| payments::early_deposit(s);
        "a deposit that another named", "refused" => |s| payments::named_by_other(s);
        "calls out of order, missing, once for two", "refused" => |s| payments::calls(s);
        "a contract that is not listed", "refused" => |s| payments::unlisted(s);
        "a reorg before signing", "missing, then signed when it is back" => |s| payments::dropped(s);
        "a reorg after signing", "halted durably, no other chain" => |s| payments::undone(s);
        "fill and refund both claimed", "the first is signed" => |s| payments::both(s);
        "a refund short by one unit", "refused" => |s| payments::partial(s);
        "a refund of a stranger's", "refused without the solver's word" => |s| payments::by_stranger(s);
    }
    "Withdrawals" {
        "executed", "burned exactly" => |s| withdrawals::executed(s);
        "executed, and asked for long after", "burned exactly" => |s| withdrawals::late(s);
        "executed twice", "burned once" => |s| withdrawals::twice(s);
        "not executed yet", "pending" => |s| withdrawals::pending(s);
        "in a block that is not final", "pending until it is" => |s| withdrawals::early(s);
        "failed", "pending" => |s| withdrawals::unproven(s, ExecutionKind::Failed);
        "another than the depository says so", "pending" => |s| withdrawals::unproven(s, ExecutionKind::LookAlike);
        "it can be executed no more", "returned exactly" => |s| withdrawals::expired(s);
        "in its last second, and one later", "pending, then returned" => |s| withdrawals::last_second(s);
        "both ends shown, in any order", "the first is signed" => |s| withdrawals::both(s);
        "a reorg before signing", "pending again" => |s| withdrawals::dropped(s);
        "a reorg after signing", "halted durably, no other chain" => |s| withdrawals::undone(s);
        "a reorg between any two calls", "halted if it was signed" => |s| withdrawals::during(s);
        "one provider says that it is executed", "outvoted, set aside" => |s| withdrawals::lied(s, false);
        "one provider says that it is not", "outvoted, set aside" => |s| withdrawals::lied(s, true);
        "providers are down", "two are enough, one is not" => |s| withdrawals::lost(s);
        "to another recipient than asked", "refused" => |s| withdrawals::other_recipient(s);
        "in another currency than asked", "refused" => |s| withdrawals::other_currency(s);
        "of another amount than recorded", "pending" => |s| withdrawals::other_amount(s);
        "not recorded, or recorded otherwise", "pending, refused" => |s| withdrawals::unrecorded(s);
        "of nothing", "refused" => |s| withdrawals::of_nothing(s);
        "its execution proves no payment", "refused" => |s| withdrawals::unsound(s);
        "bytes that are none", "refused" => |s| withdrawals::no_bytes(s);
        "out of another depository", "not signed" => |s| withdrawals::foreign(s);
        "asked for on another chain", "refused" => |s| withdrawals::other_chain(s);
        "a transaction that executes nothing", "refused" => |s| withdrawals::named(s);
        "another's transaction, or one that failed", "refused" => |s| withdrawals::named_other(s);
    }
    "Owners' signatures" {
        "in each form that counts", "moved exactly" => |s| owners::signed(s);
        "truncated", "refused" => |s| owners::truncated(s);
        "longer", "refused" => |s| owners::longer(s);
        "of another message", "refused" => |s| owners::other_message(s);
        "of another account", "refused" => |s| owners::other_account(s);
        "of another family", "refused" => |s| owners::other_family(s);
        "the greater s of the two", "its own account's, or refused" => |s| owners::formed(s, OwnerForm::HighS, true);
        "a transaction for a message", "refused" => |s| owners::formed(s, OwnerForm::Transaction, false);
        "in the form of another kind of account", "refused" => |s| owners::formed(s, OwnerForm::OtherKind, false);
    }
];
