//! Decides which signals stop a server or a long command (SIGINT and SIGTERM), and which do not (SIGHUP and SIGXFSZ).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::{register, register_conditional_shutdown};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The status that a shell uses for a process that SIGINT ended. It means that work was not finished.
const EXIT_INTERRUPTED: i32 = 130;

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
                     are read only at the start"
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

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error. By default, such a write ends the process.
pub(super) fn survive_file_limit() -> Result<()> {
    register(SIGXFSZ, Arc::default()).map(drop).context("cannot listen for signals")
}

/// Returns a flag that the next SIGINT or SIGTERM sets. The signal after that ends the process at once.
pub(super) fn interruption() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&flag))
            .and_then(|_| register(signal, Arc::clone(&flag)))
            .context("cannot listen for signals")?;
    }
    Ok(flag)
}
