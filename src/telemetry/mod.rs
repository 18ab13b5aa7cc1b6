//! What operators see: metrics and logs.
//! Comes in: settings. Goes out: an installed recorder and subscriber, and the names of all metrics.
//! Must never know: what is measured, or a document's text.

mod bounded;
pub mod logs;
pub mod memory;
pub mod names;
pub mod recorder;
