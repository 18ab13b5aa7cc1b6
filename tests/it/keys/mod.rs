//! Named keys: what each may do, where they come from, and how they end.

mod coarse;
mod file;
mod limits;
mod scopes;
