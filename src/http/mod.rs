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
mod guide;
pub mod limit;
mod line;
pub mod openapi;
pub mod page;
pub mod parse;
pub mod plain;
mod reply;
pub mod request;
pub mod router;
pub mod server;
pub mod service;
pub mod socket;
pub mod surface;
pub mod system;
mod toll;

pub use crate::json::{Digits, Flag, Number, Text};
pub use auth::{Gate, KeyLabel, Keys, Known};
pub use error::{ApiError, Errors};
pub use openapi::About;
pub use reply::Body;
pub use request::{Request, Response};
pub use router::{Access, Docs, Handler, Query, Route, Router, Shape, Terms};
pub use server::{Each, Limits, serve};
pub use service::App;
pub use socket::{End, Socket, Utf8Bytes};
pub use surface::{Surface, any_origin};
pub use system::{ChainReadiness, Readiness, System};
