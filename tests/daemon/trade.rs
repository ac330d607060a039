//! Trading on a real chain: deposits are found, transactions are sent and followed, accounts are
//! read, through a provider that may lie.

mod accounts;
mod inspect;
mod rig;
mod scan;
mod write;
