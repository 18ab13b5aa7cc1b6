//! The service over HTTP. Requests come in, answers go out. All work between is a call to the floor below.
//! Knows nothing of files or hashing.

pub mod dto;
pub mod error;

mod access;
mod admin_action;
mod admission;
mod admit;
mod answer;
mod beginning;
mod body;
mod boot;
mod caller;
mod client_address;
mod coarse;
mod connections;
pub mod deadline;
mod early;
mod gate;
pub mod handlers;
pub mod json;
mod leftover;
mod limiting;
mod listener;
mod many;
mod media_type;
mod observe;
mod options;
mod pace;
pub mod query;
mod quota;
mod refusals;
mod request;
mod request_id;
mod requires;
mod router;
mod routes;
mod run_queue;
mod sending;
mod serve;
mod state;
mod stream_place;
mod stream_threads;
mod turn;

pub use access::Access;
pub use boot::Boot;
pub use caller::Caller;
pub use connections::sockets_max;
pub use handlers::OPENAPI;
pub use listener::Listener;
pub use requires::Requires;
pub use router::router;
pub use routes::{ROUTES, Route};
pub use serve::{PROBE_CONNECTIONS_MAX, serve, serve_probes};
pub use state::{AppState, Wiring};
