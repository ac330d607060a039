//! JSON as callers send it: the scalars of bodies and queries, and what is said of a value that is none
//! of them. Pure. It knows no route and no claim: the oracle, the integrator API and the quotes read with it.

mod fault;
mod scalar;
pub mod schema;

pub use fault::{Cause, Fault, short};
pub use scalar::{Digits, Flag, MAX_NUMBER, Number, Text, number};
