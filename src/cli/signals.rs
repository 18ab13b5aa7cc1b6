//! The signals that stop a server, and SIGHUP, which does not stop it.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The status that a shell uses for a process that SIGINT ended. It means that work was not finished.
pub(super) const EXIT_INTERRUPTED: i32 = 130;

/// SIGINT, SIGTERM and SIGHUP.
pub(super) struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on, these signals no longer end the process.
    pub(super) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let [hangup, interrupt, terminate] =
            [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()].map(listen);
        Ok(Self { hangup: hangup?, interrupt: interrupt?, terminate: terminate? })
    }

    /// Waits for a signal that stops the server. Many servers read their settings again at SIGHUP. This one does not,
    /// and the log says so.
    pub(super) async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => tracing::warn!(
                    "SIGHUP does nothing: files of keys and certificates are read again when they change, and settings \
                     are read at the start"
                ),
            }
        }
    }

    /// Makes the next signal end the process at once. Acknowledged writes are on disk; only open requests are lost.
    pub(super) fn exit_at_next(mut self) {
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(EXIT_INTERRUPTED);
        });
    }
}
