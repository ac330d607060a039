//! HTTP: sockets, limits, keys, routing, bodies, and the one mapping of errors to answers.
//!
//! It knows no claim, chain or store. An API is a static table of [`Route`]s over a state of its
//! own; [`Router`] joins the tables of one listener, a [`Surface`] adds whom it lets in and how it
//! says no, and [`serve`] answers with it until told to end. A process may serve several.

pub mod auth;
mod body;
pub mod codes;
mod crowd;
pub mod error;
pub mod forwarded;
mod framing;
pub mod limit;
mod line;
pub mod openapi;
mod page;
pub mod parse;
pub mod plain;
mod request;
pub mod router;
pub mod server;
pub mod service;
mod socket;
pub mod surface;
pub mod system;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use crate::json::{Digits, Flag, Number, Text};
pub use auth::{Gate, Keys, Known};
pub use body::Body;
pub use error::{ApiError, Errors};
pub use limit::KeyLabel;
pub use openapi::About;
pub use request::{Request, Response};
pub use router::{Access, Docs, Handler, Query, Route, Router, Shape, Terms};
pub use server::serve;
pub use service::App;
pub use socket::{End, Socket, Utf8Bytes};
pub use surface::{Each, Limits, Surface, any_origin};
pub use system::{ChainReadiness, Readiness, System};

/// A panic while it was held leaves nothing half done here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
