//! The keys of clients: the rights of each key, the file that contains the hashes of the keys, and the keys that are
//! valid now. In: a text that a client shows. Out: its key, or nothing. Knows nothing of HTTP.

mod edit;
mod file;
mod key;
mod life;
mod ring;
mod scope;
mod watch;

pub use edit::{IfMissing, NewKey, add, revoke, revoke_id};
pub use file::{KeysError, parse};
pub use key::{CONFIGURED, Key, KeyDigest, KeyLimits, Pattern, Scores};
pub use life::{is_soon, next_to_end};
pub use ring::{KeyRing, Shown};
pub use scope::{Scope, Scopes};
pub use watch::{KeysFile, ring};
