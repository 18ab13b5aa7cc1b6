//! The audit log: one line of JSON for each decision, in files of bounded size. It never contains a text or metadata.
//! In: decisions. Out: lines in files, and the reader of these files. It must not know HTTP, or how a decision is made.

mod decision;
mod error;
mod files;
mod filter;
mod line;
mod log;
mod moment;
mod queue;
mod read;
mod search;
mod settings;
mod writer;

pub use decision::{Decided, Decision};
pub use error::AuditError;
pub use filter::Filter;
pub use line::{AuditLine, AuditMatch, OPS};
pub use log::AuditLog;
pub use moment::{MOMENT_FORMS, moment};
pub use read::{LINE_BYTES_MAX, ReadLine, files, lines};
pub use search::{FoundLines, LinePlace, PageLimits, search};
pub use settings::AuditSettings;
