//! The note of a running copy in the list of collections. The copy renews it again and again. If it is killed, the
//! servers see that the note stays as it is, and remove the data (`dropping.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::super::catalogue::{Catalogue, Listed};
use super::super::patience::patiently;
use super::error::FillError;

/// The time between two renewals.
const RENEWAL: Duration = Duration::from_secs(5);
/// A copy that has not renewed its note for so long gives up. Servers count it as dead ten seconds later.
const LATE: Duration = Duration::from_secs(20);

/// The note of this copy. It is renewed until it is dropped.
pub(super) struct Note {
    renewed: Arc<Mutex<Renewed>>,
    _task: AbortOnDropHandle<()>,
}

struct Renewed {
    at: Instant,
    /// Whether the note is gone.
    is_gone: bool,
}

impl Note {
    /// Writes the note, and begins to renew it.
    pub(super) async fn begin(catalogue: Catalogue, listed: Listed) -> Result<Self, FillError> {
        let (begun, first) = (Instant::now(), listed.to_copy_note(0));
        if !patiently(async || catalogue.note_copy(listed.number, "", &first).await).await? {
            return Err(FillError::Late);
        }
        let renewed = Arc::new(Mutex::new(Renewed { at: begun, is_gone: false }));
        let task = tokio::spawn(renew(catalogue, listed, Arc::clone(&renewed)));
        Ok(Self { renewed, _task: AbortOnDropHandle::new(task) })
    }

    /// Returns an error if servers may count the copy as dead.
    pub(super) fn check(&self) -> Result<(), FillError> {
        let renewed = self.renewed.lock();
        if renewed.is_gone || renewed.at.elapsed() >= LATE { Err(FillError::Late) } else { Ok(()) }
    }
}

async fn renew(catalogue: Catalogue, listed: Listed, renewed: Arc<Mutex<Renewed>>) {
    let mut from = listed.to_copy_note(0);
    for times in 1.. {
        let to = listed.to_copy_note(times);
        loop {
            tokio::time::sleep(RENEWAL).await;
            let begun = Instant::now();
            match catalogue.note_copy(listed.number, &from, &to).await {
                Ok(true) => {
                    renewed.lock().at = begun;
                    break;
                }
                Ok(false) => {
                    renewed.lock().is_gone = true;
                    return;
                }
                // It may have been written. The next time, this value is expected, too.
                Err(_) => {}
            }
        }
        from = to;
    }
}
