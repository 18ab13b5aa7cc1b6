//! Checks the files of a certificate each second, and renews an acceptor when they have changed.
//! Only the contents are compared, not the times of changes, because Kubernetes swaps symbolic links. Two files cannot
//! be replaced at the same moment, and may be half written when they are read. So the last matching pair stays in use
//! until another pair matches.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::MissedTickBehavior;

use super::acceptor::Acceptor;
use super::certificate::Certificate;
use super::error::CertificateError;
use super::files::{CertificateFiles, Contents};
use crate::telemetry::names;

/// The time between two checks.
const LOOK: Duration = Duration::from_secs(1);
/// A single check may find a new certificate with the old key. That is not worth a line in the log.
const FAILURES_TOLERATED: u32 = 1;
/// A certificate that expires sooner than this causes a warning.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Renews `acceptor` until the future is dropped. `certificate` is the one that the acceptor has now.
pub async fn watch(files: CertificateFiles, certificate: Certificate, acceptor: Acceptor) {
    let mut watched = Watched::new(files, certificate);
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let looked = tokio::task::spawn_blocking(move || {
            let renewed = watched.look();
            watched.tell_life(Timestamp::now());
            (watched, renewed)
        });
        // The task fails only if it panics or the runtime ends.
        let Ok((back, renewed)) = looked.await else { return };
        watched = back;
        if renewed {
            acceptor.renew(&watched.certificate);
        }
    }
}

/// The files, and the last certificate from them.
struct Watched {
    files: CertificateFiles,
    certificate: Certificate,
    /// The contents of the last matching pair of files.
    seen: Option<Contents>,
    /// The number of checks in a row at which the files did not match.
    failures: u32,
    life: Life,
}

/// How long a certificate will still be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Long,
    EndsSoon,
    Over,
}

impl Life {
    /// Returns how long a certificate that ends at `expires` is still valid.
    pub fn at(now: Timestamp, expires: Timestamp) -> Self {
        match expires.duration_since(now) {
            left if left.is_negative() => Self::Over,
            left if left < SOON => Self::EndsSoon,
            _ => Self::Long,
        }
    }
}

impl Watched {
    fn new(files: CertificateFiles, certificate: Certificate) -> Self {
        Self { files, certificate, seen: None, failures: 0, life: Life::Long }
    }

    /// Checks the files once. Returns whether they have another certificate than before.
    fn look(&mut self) -> bool {
        let contents = match self.files.read() {
            Ok(contents) if self.failures == 0 && self.seen.as_ref() == Some(&contents) => return false,
            Ok(contents) => contents,
            Err(error) => return self.fail(&error),
        };
        let certificate = match Certificate::new(&self.files, &contents) {
            Ok(certificate) => certificate,
            Err(error) => return self.fail(&error),
        };
        self.seen = Some(contents);
        let told = std::mem::take(&mut self.failures) > FAILURES_TOLERATED;
        // Both pairs have keys that belong to their certificates. So if the certificates are the same, the keys are the
        // same too.
        let renewed = !certificate.is_same(&self.certificate);
        if renewed {
            tracing::info!(expires = %certificate.expires(), "the TLS certificate was renewed");
            self.life = Life::Long;
        } else if told {
            tracing::info!("the TLS files can be used again; the certificate is the same");
        }
        self.certificate = certificate;
        renewed
    }

    fn fail(&mut self, error: &CertificateError) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures > FAILURES_TOLERATED {
            metrics::counter!(names::TLS_RELOAD_ERRORS).increment(1);
        }
        if self.failures == FAILURES_TOLERATED + 1 {
            tracing::error!(%error, "cannot use the TLS files; the last certificate stays in use");
        }
        false
    }

    /// Reports how long the certificate is valid: as a metric, and in the log when its end is near.
    fn tell_life(&mut self, now: Timestamp) {
        let expires = self.certificate.expires();
        metrics::gauge!(names::TLS_CERTIFICATE_EXPIRY).set(expires.as_second() as f64);
        let life = Life::at(now, expires);
        if life == self.life {
            return;
        }
        self.life = life;
        match life {
            Life::Long => {}
            Life::EndsSoon => tracing::warn!(%expires, "the TLS certificate expires soon"),
            Life::Over => tracing::error!(%expires, "the TLS certificate has expired; clients refuse it"),
        }
    }
}
