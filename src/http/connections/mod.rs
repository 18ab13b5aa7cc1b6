//! Connections: their places, their time limits, and the requests on them.

mod activity;
mod connection;
mod counted;
mod places;
mod signal;
mod socket;
mod traffic;
mod wire;

pub(super) use activity::Activity;
pub(super) use connection::Serving;
pub use places::sockets_max;
pub(super) use places::{ConnectionPlace, Places};
