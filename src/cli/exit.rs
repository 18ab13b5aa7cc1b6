//! The outcome of a command, as its exit status.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// 0: done, and there is nothing to report.
    Fine,
    /// 1: done, but duplicates or damage were found, documents failed, or the server is not ready.
    Found,
    /// 130: a signal has ended the work before its end.
    Interrupted,
}
