//! A row of any kind, with the parts of its name.

use alloy::primitives::{Address, B256, Bytes, U256};

use super::{
    RowError, account, attempt,
    candle::{self, Candle},
    claim::Claim,
    cursor::Cursor,
    dead::Dead,
    delivery::{self, Delivery},
    deposit_tx,
    entry::Entry,
    halt::Halt,
    kind, large,
    lease::Lease,
    listed,
    outlay::Outlay,
    parked::Parked,
    pause::Paused,
    reservation,
    settlement::Settlement,
    signature, transaction, tx_details,
    void::Void,
    watch,
};
use crate::{
    integrator::Integrator,
    request::{Request, event::Event, fact::Facts, summary::Summary},
    store::Key,
};

/// A decoded row. Names are without the kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    Entry(String, Box<Entry>),
    Signature {
        digest: B256,
        signer: Address,
        signature: [u8; 65],
    },
    Consumption {
        what: String,
        by: String,
    },
    Slot {
        slot: String,
        holder: String,
    },
    Watch(String, watch::Watch),
    Void {
        statement: String,
        count: u32,
        void: Box<Void>,
    },
    Halt(String, Halt),
    Request(B256, Box<Request>),
    Order {
        order: B256,
        request: B256,
    },
    Facts(B256, Box<Facts>),
    Cursor(String, Cursor),
    DepositTx(String, deposit_tx::Row),
    Transaction(transaction::Row),
    Open(B256),
    Claim(B256, Box<Claim>),
    Account(String, account::Account),
    Attempt {
        lane: String,
        id: Bytes,
        attempt: Box<attempt::Attempt>,
    },
    Resource {
        lane: String,
        resource: Bytes,
        holder: Bytes,
    },
    Reservation {
        lane: String,
        attempt: Bytes,
        amount: U256,
    },
    Lease(String, Lease),
    Settlement {
        request: B256,
        deposit: B256,
        settlement: Box<Settlement>,
    },
    Parked {
        request: B256,
        deposit: B256,
        parked: Box<Parked>,
    },
    Paused(String, Paused),
    Outlay(B256, Outlay),
    Candles(candle::Page, Vec<Candle>),
    Event(u64, Box<Event>),
    Integrator(String, Box<Integrator>),
    TxDetails(Box<tx_details::Either>),
    Summary(B256, Box<Summary>),
    Listed(listed::Listed),
    Quote(B256, Box<Request>),
    Large(B256, large::Large),
    Delivery {
        label: String,
        number: u64,
        delivery: Delivery,
    },
    Dead {
        label: String,
        number: u64,
        dead: Dead,
    },
    Mark(String, u64),
    History {
        request: B256,
        number: u64,
    },
    Version(String, u64),
}

impl Row {
    /// Decodes the row under `key` with the decoder of its kind.
    pub fn decode(key: &Key, value: &[u8]) -> Result<Self, RowError> {
        let known = kind(key.kind).ok_or_else(|| RowError::new("foreign", "unknown kind"))?;
        (known.decode)(Name(known.name, &key.name), key, value)
    }
}

/// The name of a row, and the name of its kind.
#[derive(Clone, Copy)]
pub(super) struct Name<'a>(&'static str, &'a [u8]);

impl<'a> Name<'a> {
    fn wrong(self) -> RowError {
        RowError::new(self.0, "its name is not one of this kind")
    }

    fn utf8(self, bytes: &[u8]) -> Result<String, RowError> {
        let text = std::str::from_utf8(bytes).map_err(|_| self.wrong())?;
        (!text.is_empty())
            .then(|| text.to_owned())
            .ok_or_else(|| self.wrong())
    }

    pub(super) fn text(self) -> Result<String, RowError> {
        self.utf8(self.1)
    }

    pub(super) fn word(self) -> Result<B256, RowError> {
        B256::try_from(self.1).map_err(|_| self.wrong())
    }

    /// The text before the first zero byte, and the bytes after it.
    fn split(self) -> Result<(String, &'a [u8]), RowError> {
        let zero = self.1.iter().position(|byte| *byte == 0);
        let zero = zero.ok_or_else(|| self.wrong())?;
        Ok((self.utf8(&self.1[..zero])?, &self.1[zero + 1..]))
    }

    pub(super) fn watch(self, key: &Key, value: &[u8]) -> Result<Row, RowError> {
        let (chain, _) = self.split()?;
        let watch = watch::decode(&chain, key, value)?;
        Ok(Row::Watch(chain, watch))
    }

    pub(super) fn deposit_tx(self, key: &Key, value: &[u8]) -> Result<Row, RowError> {
        let (network, _) = self.split()?;
        let row = deposit_tx::decode(&network, key, value)?;
        Ok(Row::DepositTx(network, row))
    }

    fn deposit(self) -> Result<(B256, B256), RowError> {
        super::words(self.1).ok_or_else(|| self.wrong())
    }

    pub(super) fn settlement(self, value: &[u8]) -> Result<Row, RowError> {
        let ((request, deposit), settlement) = (self.deposit()?, Settlement::decode(value)?.into());
        Ok(Row::Settlement {
            request,
            deposit,
            settlement,
        })
    }

    pub(super) fn parked(self, value: &[u8]) -> Result<Row, RowError> {
        let ((request, deposit), parked) = (self.deposit()?, Parked::decode(value)?.into());
        Ok(Row::Parked {
            request,
            deposit,
            parked,
        })
    }

    fn event(self) -> Result<(String, u64), RowError> {
        let (label, number) = delivery::parts(self.1).ok_or_else(|| self.wrong())?;
        Ok((label.to_owned(), number))
    }

    pub(super) fn delivery(self, value: &[u8]) -> Result<Row, RowError> {
        let ((label, number), delivery) = (self.event()?, Delivery::decode(value)?);
        Ok(Row::Delivery {
            label,
            number,
            delivery,
        })
    }

    pub(super) fn dead(self, value: &[u8]) -> Result<Row, RowError> {
        let ((label, number), dead) = (self.event()?, Dead::decode(value)?);
        Ok(Row::Dead {
            label,
            number,
            dead,
        })
    }

    pub(super) fn signature(self, value: &[u8]) -> Result<Row, RowError> {
        let (digest, signer) = self.1.split_first_chunk::<32>().ok_or(self.wrong())?;
        Ok(Row::Signature {
            digest: B256::from(*digest),
            signer: Address::try_from(signer).map_err(|_| self.wrong())?,
            signature: signature::decode(value)?,
        })
    }

    pub(super) fn void(self, value: &[u8]) -> Result<Row, RowError> {
        let (statement, count) = self.1.split_last_chunk::<4>().ok_or(self.wrong())?;
        let statement = statement.strip_suffix(&[0]).ok_or(self.wrong())?;
        Ok(Row::Void {
            statement: self.utf8(statement)?,
            count: u32::from_be_bytes(*count),
            void: Void::decode(value)?.into(),
        })
    }

    /// A lane's name, and the bytes after its zero byte.
    fn of_lane(self) -> Result<(String, Bytes), RowError> {
        let (lane, rest) = self.split()?;
        match rest.is_empty() {
            true => Err(self.wrong()),
            false => Ok((lane, Bytes::copy_from_slice(rest))),
        }
    }

    pub(super) fn attempt(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, id) = self.of_lane()?;
        let attempt = attempt::Attempt::decode(value)?.into();
        Ok(Row::Attempt { lane, id, attempt })
    }

    pub(super) fn resource(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, resource) = self.of_lane()?;
        let holder = attempt::held_by(value)?;
        Ok(Row::Resource {
            lane,
            resource,
            holder,
        })
    }

    pub(super) fn reservation(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, rest) = self.split()?;
        // The hex of a currency has no zero byte; an id may have some.
        let (_, attempt) = Name(self.0, rest).of_lane()?;
        Ok(Row::Reservation {
            lane,
            attempt,
            amount: reservation::decode(value)?,
        })
    }
}
