//! Settings: compiled-in defaults < file < environment < flags. Input: these four. Output: a [`Config`] with valid
//! values only, or an error that names the key. It must never know how the settings are used.

mod addresses;
mod api_key;
mod checked;
mod default_collection;
mod error;
pub mod hosts;
mod http_limits;
mod load;
mod memory;
mod ranges;
mod raw;
mod redis;
mod secrets;
mod server;
mod show;
mod sources;
mod tls;
mod warnings;

pub use addresses::{AddressLimits, Addresses, TrustedProxies};
pub use api_key::ApiKey;
pub use checked::{Config, LogSettings};
pub use error::ConfigError;
pub use http_limits::HttpLimits;
pub use load::{Loaded, ProbeAddress, defaults, load, probe_address};
pub use memory::too_many_connections;
pub use secrets::read_secret;
pub use server::Server;
pub use sources::Sources;
pub use tls::Tls;
pub use warnings::{certificate_ends, keys_end, warnings};
