//! Settings: compiled-in defaults < file < environment < flags.
//! Comes in: those four. Goes out: a [`Config`] whose every value is possible, or one error that names the key.
//! Must never know: how the settings are used.

mod api_key;
mod checked;
mod default_collection;
mod error;
pub mod hosts;
mod http_limits;
mod load;
mod ranges;
mod raw;
mod secrets;
mod server;
mod show;
mod sources;

pub use api_key::ApiKey;
pub use checked::{Config, LogSettings};
pub use error::ConfigError;
pub use http_limits::HttpLimits;
pub use load::{Loaded, addresses, defaults, load};
pub use secrets::read_secret;
pub use server::Server;
pub use sources::Sources;
