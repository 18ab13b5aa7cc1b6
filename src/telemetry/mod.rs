//! Metrics and logs.
//! In: settings. Out: an installed recorder and log subscriber, and the names of all metrics. It must not know the code
//! that is measured, or the text of any document.

mod bounded;
pub mod buckets;
#[cfg(test)]
mod log_lines;
pub mod logs;
pub mod memory;
pub mod names;
pub mod recorder;
pub mod request;
mod striped;
pub mod trace;

pub(crate) use bounded::{AUDIT, REFUSED};
#[cfg(test)]
pub(crate) use log_lines::LogLines;
