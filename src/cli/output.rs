//! Decides whether an error came from a file or from the output. An error of a request to a server does not count, even
//! if its cause is an error of the same kind.

use std::io;

use anyhow::Result;

use super::exit::ExitStatus;

/// Returns whether the reader of a pipe has closed it, as `head` does when it has read enough.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    is_of_files(error, io::ErrorKind::BrokenPipe)
}

/// Returns the result of a verb that may write to a pipe. If its reader has read enough, as `head` does, that is no failure.
pub(super) fn unless_read_enough(is_on_stdout: bool, done: Result<ExitStatus>) -> Result<ExitStatus> {
    match done {
        Err(error) if is_on_stdout && is_broken_pipe(&error) => Ok(ExitStatus::Fine),
        done => done,
    }
}

/// Returns whether an error of this kind came from a file or from the output, with or without a context.
pub(super) fn is_of_files(error: &anyhow::Error, kind: io::ErrorKind) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == kind)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot reach the server")]
    struct OfRequest(#[source] io::Error);

    #[test]
    fn only_errors_of_files_and_output_count() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&pipe().into()));
        let read = Err::<(), _>(pipe()).context("cannot read x").unwrap_err();
        assert!(is_broken_pipe(&read) && !is_of_files(&read, io::ErrorKind::NotFound));
        assert!(!is_broken_pipe(&OfRequest(pipe()).into()));
    }
}
