//! Reports the progress of the server's start and stop to the service manager, if there is one (`NOTIFY_SOCKET`, as
//! with systemd's `Type=notify`). In: the steps of a server. Out: datagrams. A thread sends them, because a service
//! manager that hangs must not block the server. Without a service manager, nothing happens.

use std::fmt::Write;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use sd_notify::NotifyState;

use crate::collections::Opening;

/// The time between two checks of the progress of the start.
const LOOK: Duration = Duration::from_secs(1);
/// How long the service manager is asked to wait for the next report on a start or a stop.
const MORE_TIME: Duration = Duration::from_secs(120);
/// The most reports that wait for the service manager. Further reports are dropped.
const QUEUE_MAX: usize = 64;

/// The service manager.
#[derive(Clone)]
pub(super) struct ServiceManager(Option<SyncSender<String>>);

impl ServiceManager {
    /// Returns the service manager that the environment names.
    pub(super) fn of_environment() -> Self {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Self(None);
        }
        let (sender, reports) = sync_channel::<String>(QUEUE_MAX);
        let send = move || {
            for report in reports {
                if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&report)]) {
                    tracing::warn!(%error, "cannot notify the service manager (NOTIFY_SOCKET)");
                }
            }
        };
        let thread = std::thread::Builder::new().name("hapax-notify".to_owned()).spawn(send);
        thread.expect("the system can start one more thread");
        Self(Some(sender))
    }

    /// Reports that the server is ready.
    pub(super) fn ready(&self, documents: &str) {
        self.tell(&[NotifyState::Ready, NotifyState::Status(&format!("ready, {documents}"))]);
    }

    /// Reports that the server stops, and that open requests have this long to end.
    pub(super) fn stopping(&self, drain: Duration) {
        let status = NotifyState::Status("stopping: finishing open requests");
        self.tell(&[NotifyState::Stopping, status, more_time(drain + MORE_TIME)]);
    }

    /// Reports that open requests have ended, and the data is being closed.
    pub(super) fn closing(&self) {
        self.tell(&[NotifyState::Status("stopping: closing the data"), more_time(MORE_TIME)]);
    }

    /// Reports the progress of the start, until the future is dropped. As long as there is progress, the start has no
    /// time limit.
    pub(super) async fn report(&self, opening: &Opening) {
        let (mut looks, mut told) = (tokio::time::interval(LOOK), 0.0);
        loop {
            looks.tick().await;
            let share = opening.share();
            if share > told {
                told = share;
                let status = format!("opening the collections: {:.0} % done", share * 100.0);
                self.tell(&[NotifyState::Status(&status), more_time(MORE_TIME)]);
            }
        }
    }

    /// Reports that the process is alive, twice in the time that the service manager allows. Each report goes through
    /// the queue of the async threads, so the reports stop if these threads are blocked.
    pub(super) async fn keep_alive(self) {
        let Some(time) = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()) else { return };
        let mut beats = tokio::time::interval(time / 2);
        loop {
            beats.tick().await;
            let manager = self.clone();
            if tokio::spawn(async move { manager.tell(&[NotifyState::Watchdog]) }).await.is_err() {
                return;
            }
        }
    }

    fn tell(&self, states: &[NotifyState<'_>]) {
        let Some(sender) = &self.0 else { return };
        let mut report = String::new();
        for state in states {
            // Writing to a string cannot fail.
            let _ = writeln!(report, "{state}");
        }
        if sender.try_send(report).is_err() {
            tracing::warn!("the service manager does not read the reports of this server (NOTIFY_SOCKET)");
        }
    }
}

fn more_time(time: Duration) -> NotifyState<'static> {
    NotifyState::ExtendTimeoutUsec(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}
