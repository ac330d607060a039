//! The HTTP layer over real sockets: what hostile callers get, and how connections end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop where it cannot go on"
)]

#[path = "http/crowds.rs"]
mod crowds;
#[path = "http/figures.rs"]
mod figures;
#[path = "http/hostile.rs"]
mod hostile;
#[path = "http/keys.rs"]
mod keys;
#[path = "http/lifetime.rs"]
mod lifetime;
#[path = "http/pages.rs"]
mod pages;
#[path = "http/rig.rs"]
mod rig;
#[path = "http/sockets.rs"]
mod sockets;
#[path = "http/surfaces.rs"]
mod surfaces;
