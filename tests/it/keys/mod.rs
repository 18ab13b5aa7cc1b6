//! Named keys: the rights of each key, the file with the keys, and how keys end.

mod audit;
mod broken;
mod coarse;
mod ending;
pub mod file;
mod limits;
mod revoking;
mod scopes;
