//! Decides whether the rest of a long body is read. The pool for long work signs long bodies. If this pool has too much
//! to do, the body is refused. In: the number of bytes that have arrived or were announced. Out: nothing, or 503.

use crate::cpu::{Admitted, CpuPool, Refused};

/// A text longer than this is signed by the pool for long work.
pub(in crate::http) const LONG_BYTES_MIN: usize = 16 * 1024;

/// The check of one body. It asks the pool for long work at most once whether the pool accepts the work.
pub(super) struct LongWork {
    cpu: CpuPool,
    admitted: Option<Admitted>,
}

impl LongWork {
    pub(super) fn new(cpu: &CpuPool) -> Self {
        Self { cpu: cpu.clone(), admitted: None }
    }

    /// Records that the body has at least this many bytes. Returns an error if the pool refuses the work.
    pub(super) fn of(&mut self, bytes: u64) -> Result<(), Refused> {
        if self.admitted.is_none() && bytes > LONG_BYTES_MIN as u64 {
            self.admitted = Some(self.cpu.admit()?);
        }
        Ok(())
    }
}
