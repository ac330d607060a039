//! A row of whatever kind, with what its name says.

use alloy::primitives::{Address, B256, Bytes, U256};

use super::{
    KINDS, RowError, attempt,
    candle::{self, Candle},
    claim::Claim,
    consumption,
    cursor::Cursor,
    dead::Dead,
    delivery::{self, Delivery},
    entry::Entry,
    event, facts,
    halt::Halt,
    history, integrator, lane, large,
    lease::Lease,
    listed, mark, open, order,
    outlay::Outlay,
    parked::Parked,
    pause::Paused,
    quote, request, reservation,
    settlement::Settlement,
    sighting, signature, slot, summary, transaction, version,
    void::Void,
    watch, witness,
};
use crate::{
    integrator::Integrator,
    request::{Request, event::Event, fact::Facts, summary::Summary},
    store::Key,
};

/// A row that could be read. Names are without the kind.
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
    Sighting(String, sighting::Row),
    Transaction(transaction::Row),
    Open(B256),
    Claim(B256, Box<Claim>),
    Lane(String, lane::Lane),
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
    Witness(Box<witness::Either>),
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
    /// The row under `key`, by the decoder of its kind.
    pub fn decode(key: &Key, value: &[u8]) -> Result<Self, RowError> {
        let kind = KINDS.iter().find(|(kind, _)| *kind == key.kind);
        let (_, kind) = kind.ok_or_else(|| RowError::new("foreign", "unknown kind"))?;
        let name = Name(kind, &key.name);
        match key.kind {
            super::ENTRY => Ok(Self::Entry(name.text()?, Entry::decode(value)?.into())),
            super::SIGNATURE => name.signature(value),
            super::CONSUMPTION => {
                let (what, by) = (name.text()?, consumption::decode(value)?);
                Ok(Self::Consumption { what, by })
            }
            super::SLOT => {
                let (slot, holder) = (name.text()?, slot::decode(value)?);
                Ok(Self::Slot { slot, holder })
            }
            super::WATCH => {
                let (chain, _) = name.split()?;
                let watch = watch::decode(&chain, key, value)?;
                Ok(Self::Watch(chain, watch))
            }
            super::VOID => name.void(value),
            super::HALT => Ok(Self::Halt(name.text()?, Halt::decode(value)?)),
            _ => Self::trading(key, name, value),
        }
    }

    /// Rows of requests, of the index and of the solver.
    fn trading(key: &Key, name: Name<'_>, value: &[u8]) -> Result<Self, RowError> {
        match key.kind {
            super::REQUEST => Ok(Self::Request(name.word()?, request::decode(value)?.into())),
            super::ORDER => {
                let (order, request) = (name.word()?, order::decode(value)?);
                Ok(Self::Order { order, request })
            }
            super::FACTS => Ok(Self::Facts(name.word()?, facts::decode(value)?.into())),
            super::CURSOR => Ok(Self::Cursor(name.text()?, Cursor::decode(value)?)),
            super::SIGHTING => {
                let (network, _) = name.split()?;
                let row = sighting::decode(&network, key, value)?;
                Ok(Self::Sighting(network, row))
            }
            super::TRANSACTION => Ok(Self::Transaction(transaction::row(key, value)?)),
            super::OPEN => Ok(Self::Open(open::decode(key, value)?)),
            super::CLAIM => Ok(Self::Claim(name.word()?, Claim::decode(value)?.into())),
            super::LANE => Ok(Self::Lane(name.text()?, lane::Lane::decode(value)?)),
            super::ATTEMPT => name.attempt(value),
            super::RESOURCE => name.resource(value),
            super::RESERVATION => name.reservation(value),
            super::LEASE => Ok(Self::Lease(name.text()?, Lease::decode(value)?)),
            super::SETTLEMENT => {
                let ((request, deposit), settlement) = (name.words()?, Settlement::decode(value)?);
                Ok(Self::Settlement {
                    request,
                    deposit,
                    settlement: settlement.into(),
                })
            }
            super::PARKED => {
                let ((request, deposit), parked) = (name.words()?, Parked::decode(value)?);
                Ok(Self::Parked {
                    request,
                    deposit,
                    parked: parked.into(),
                })
            }
            super::PAUSE => Ok(Self::Paused(name.text()?, Paused::decode(value)?)),
            super::OUTLAY => Ok(Self::Outlay(name.word()?, Outlay::decode(value)?)),
            super::CANDLE => Ok(Self::Candles(candle::page(key)?, candle::decode(value)?)),
            _ => Self::told(key, name, value),
        }
    }

    /// Rows of those who are told.
    fn told(key: &Key, name: Name<'_>, value: &[u8]) -> Result<Self, RowError> {
        match key.kind {
            super::EVENT => {
                let (number, event) = event::row(key, value)?;
                Ok(Self::Event(number, event.into()))
            }
            super::INTEGRATOR => {
                let integrator = integrator::decode(value)?;
                Ok(Self::Integrator(name.text()?, integrator.into()))
            }
            super::WITNESS => Ok(Self::Witness(witness::either(key, value)?.into())),
            super::SUMMARY => Ok(Self::Summary(name.word()?, summary::decode(value)?.into())),
            super::LISTED => Ok(Self::Listed(listed::decode(key, value)?)),
            super::QUOTE => Ok(Self::Quote(name.word()?, quote::decode(value)?.into())),
            super::LARGE => Ok(Self::Large(name.word()?, large::Large::decode(value)?)),
            super::DELIVERY => {
                let ((label, number), delivery) = (name.delivered()?, Delivery::decode(value)?);
                Ok(Self::Delivery {
                    label,
                    number,
                    delivery,
                })
            }
            super::DEAD => {
                let ((label, number), dead) = (name.delivered()?, Dead::decode(value)?);
                Ok(Self::Dead {
                    label,
                    number,
                    dead,
                })
            }
            super::MARK => Ok(Self::Mark(name.text()?, mark::decode(value)?)),
            super::HISTORY => {
                let (request, number) = history::row(key, value)?;
                Ok(Self::History { request, number })
            }
            super::VERSION => Ok(Self::Version(name.text()?, version::decode(value)?)),
            _ => Err(RowError::new(name.0, "no decoder")),
        }
    }
}

/// The name of a row, and what its kind is called.
#[derive(Clone, Copy)]
struct Name<'a>(&'static str, &'a [u8]);

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

    fn text(self) -> Result<String, RowError> {
        self.utf8(self.1)
    }

    fn word(self) -> Result<B256, RowError> {
        B256::try_from(self.1).map_err(|_| self.wrong())
    }

    fn words(self) -> Result<(B256, B256), RowError> {
        super::words(self.1).ok_or_else(|| self.wrong())
    }

    /// The text before the first zero byte, and what is behind it.
    fn split(self) -> Result<(String, &'a [u8]), RowError> {
        let zero = self.1.iter().position(|byte| *byte == 0);
        let zero = zero.ok_or_else(|| self.wrong())?;
        Ok((self.utf8(&self.1[..zero])?, &self.1[zero + 1..]))
    }

    fn delivered(self) -> Result<(String, u64), RowError> {
        let (label, number) = delivery::parts(self.1).ok_or_else(|| self.wrong())?;
        Ok((label.to_owned(), number))
    }

    fn signature(self, value: &[u8]) -> Result<Row, RowError> {
        let (digest, signer) = self.1.split_first_chunk::<32>().ok_or(self.wrong())?;
        Ok(Row::Signature {
            digest: B256::from(*digest),
            signer: Address::try_from(signer).map_err(|_| self.wrong())?,
            signature: signature::decode(value)?,
        })
    }

    fn void(self, value: &[u8]) -> Result<Row, RowError> {
        let (statement, count) = self.1.split_last_chunk::<4>().ok_or(self.wrong())?;
        let statement = statement.strip_suffix(&[0]).ok_or(self.wrong())?;
        Ok(Row::Void {
            statement: self.utf8(statement)?,
            count: u32::from_be_bytes(*count),
            void: Void::decode(value)?.into(),
        })
    }

    /// A lane, and what is behind its zero byte.
    fn of_lane(self) -> Result<(String, Bytes), RowError> {
        let (lane, rest) = self.split()?;
        match rest.is_empty() {
            true => Err(self.wrong()),
            false => Ok((lane, Bytes::copy_from_slice(rest))),
        }
    }

    fn attempt(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, id) = self.of_lane()?;
        let attempt = attempt::Attempt::decode(value)?.into();
        Ok(Row::Attempt { lane, id, attempt })
    }

    fn resource(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, resource) = self.of_lane()?;
        let holder = attempt::held_by(value)?;
        Ok(Row::Resource {
            lane,
            resource,
            holder,
        })
    }

    fn reservation(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, rest) = self.split()?;
        // A currency in hex holds no zero byte, an id may.
        let (_, attempt) = Name(self.0, rest).of_lane()?;
        Ok(Row::Reservation {
            lane,
            attempt,
            amount: reservation::decode(value)?,
        })
    }
}
