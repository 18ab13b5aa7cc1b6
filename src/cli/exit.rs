//! How a verb ended.

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// 0: done, nothing to report.
    Fine,
    /// 1: done; duplicates or damage were found, or documents failed, or the server is not ready.
    Found,
}
