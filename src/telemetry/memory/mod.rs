//! The memory of this process: how much it may take, how much it takes, and how the allocator returns what is no longer
//! needed. It must not know what the memory is for.

mod allocator;
mod bound;
mod system;

pub use bound::{Bound, Refused};
pub use system::{Available, Source, available};
