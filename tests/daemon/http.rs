//! The HTTP layer over real sockets: what hostile callers get, and how connections end.

mod charts;
mod crowds;
mod hostile;
mod keys;
mod lifetime;
mod pages;
mod rig;
mod sockets;
mod surfaces;
