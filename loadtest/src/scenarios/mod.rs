//! One file for each scenario: the load, and the conditions that must hold under it.

pub(crate) mod bulk;
pub(crate) mod check;
pub(crate) mod cold;
pub(crate) mod durable;
pub(crate) mod hostile;
pub(crate) mod hot;
pub(crate) mod insert;
pub(crate) mod latency;
pub(crate) mod mixed;
pub(crate) mod overload;
pub(crate) mod sink;
pub(crate) mod soak;
pub(crate) mod tour;

mod companion;
mod import;
mod operator;
