//! Decides whether a long body is read on: not if the pool for long work, which would sign it, has too much to do. In:
//! how much has arrived, or was announced. Out: nothing, or 503.

use crate::cpu::{Admitted, CpuPool, Refused};

/// A longer text is signed by the pool for long work.
pub(in crate::http) const LONG_BYTES_MIN: usize = 16 * 1024;

/// Asks the pool once about one body.
pub(super) struct LongWork {
    cpu: CpuPool,
    admitted: Option<Admitted>,
}

impl LongWork {
    pub(super) fn new(cpu: &CpuPool) -> Self {
        Self { cpu: cpu.clone(), admitted: None }
    }

    /// Notes that the body has at least this many bytes.
    pub(super) fn of(&mut self, bytes: u64) -> Result<(), Refused> {
        if self.admitted.is_none() && bytes > LONG_BYTES_MIN as u64 {
            self.admitted = Some(self.cpu.admit()?);
        }
        Ok(())
    }
}
