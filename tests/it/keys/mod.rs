//! Named keys: the rights of each, where they come from, and how they end.

mod audit;
mod broken;
mod coarse;
mod ending;
pub mod file;
mod limits;
mod revoking;
mod scopes;
