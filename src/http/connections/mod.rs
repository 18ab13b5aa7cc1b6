//! Connections: their places, their time limits, and the requests on them. These files decide the time limits:
//! - the head of a request, and the wait for the next request: `activity.rs`
//! - a write that makes no progress: `socket.rs`
//! - an HTTP/2 client that does not answer pings: `connection.rs`
//! - an answer that is read too slowly: `../sending.rs` (a bulk answer: `../many/writer.rs`)
//! - a body that arrives too slowly: `../body/patience.rs`

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
