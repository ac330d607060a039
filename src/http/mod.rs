//! HTTP: sockets, limits, keys, routing, bodies, and the one mapping of errors to answers.
//!
//! The module depends on no claim, chain or store. An API is a static table of [`Route`]s over a state of its own.
//! [`Router`] joins the tables of one listener, a [`Surface`] adds the gate and the form of errors, and [`serve`]
//! answers requests until its shutdown token is cancelled. A process may serve several surfaces.

mod addresses;
pub mod auth;
mod body;
pub mod codes;
pub mod error;
pub mod forwarded;
mod framing;
pub mod limit;
mod line;
mod meters;
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

/// Ignores poisoning: no panic under these locks leaves an invariant broken.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
