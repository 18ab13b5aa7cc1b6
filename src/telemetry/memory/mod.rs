//! The memory of this process: its limit, its use, and how the allocator returns memory that is no longer needed. It
//! must not know the purpose of the memory.

mod allocator;
mod bound;
mod system;

pub use bound::{Bound, Refused};
pub use system::{Available, Source, available};
