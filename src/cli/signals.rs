//! The signals that stop a server.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a shell calls "ended by SIGINT": the status of a stop that did not wait.
const EXIT_INTERRUPTED: i32 = 130;

/// SIGINT and SIGTERM.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From here on they end the process no more.
    pub(super) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Returns when one comes.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// The next one ends the process at once. Acknowledged writes are on disk; only requests under way are lost.
    pub(super) fn exit_at_next(mut self) {
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(EXIT_INTERRUPTED);
        });
    }
}
