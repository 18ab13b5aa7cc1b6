//! The limits of clients: of each key name and of each address without a valid key. The source of a document (its label
//! `source`) is limited, too. Before work on a request begins, the request takes units from its client's
//! [`Share`](share::Share). `bucket.rs` decides whether a unit is left. If none is left, the answer is 429. Work that
//! has begun waits instead. `docs/rate-limits.md` has the rules.

mod addresses;
mod bounded;
mod bucket;
mod fields;
mod key_shares;
mod limit_names;
mod meters;
#[expect(clippy::module_inception, reason = "the handle is the module's main item")]
mod quota;
mod share;
mod shares;
mod sources;

pub(super) use fields::{RATE_LIMIT, RATE_LIMIT_POLICY, write as write_fields};
pub(super) use quota::{Arriving, Quota};
pub(super) use share::{Place, Share};
pub(super) use shares::Shares;
pub(super) use sources::Sources;
