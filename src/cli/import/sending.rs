//! The documents of an import -> bulk requests on several connections, and the counts and output files that their
//! answers become. Knows nothing of arguments.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use indicatif::ProgressBar;

use super::outputs::{Answered, Outputs, TurnOf};
use super::tally::Tally;
use crate::cli::api::Api;
use crate::cli::bulk::{self, BulkError, Order};
use crate::cli::exit::ExitStatus;
use crate::cli::files::read_all_joined;
use crate::cli::progress;
use crate::cli::retry::{LOOK_EVERY, Patience};
use crate::input::{Chunk, Wanted};

/// One import. All connections share it.
pub(super) struct Import<'a> {
    api: &'a dyn Api,
    path: String,
    order: Order,
    bar: &'a ProgressBar,
    begun: Instant,
    outputs: Option<Outputs>,
    tally: Mutex<Tally>,
    /// The error that ends the import.
    error: Mutex<Option<anyhow::Error>>,
    /// How long to wait for a server that does not answer.
    patience: Duration,
    /// Set by SIGINT or SIGTERM.
    interrupted: Arc<AtomicBool>,
}

impl<'a> Import<'a> {
    /// An import by requests to `path`. Nothing is sent yet.
    pub(super) fn new(
        api: &'a dyn Api,
        (path, order): (String, Order),
        bar: &'a ProgressBar,
        outputs: Option<Outputs>,
        patience: Duration,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        Self {
            api,
            path,
            order,
            bar,
            begun: Instant::now(),
            outputs,
            tally: Mutex::default(),
            error: Mutex::default(),
            patience,
            interrupted,
        }
    }

    /// The path of the requests, with the query.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Reads all files and sends their documents on this many connections.
    pub(super) fn send(&self, files: &[PathBuf], wanted: &Wanted, connections: u32) {
        self.read(files, wanted, connections as usize, |take| {
            let take = Mutex::new(take);
            std::thread::scope(|scope| {
                for _ in 0..connections {
                    scope.spawn(|| self.send_chunks(&take));
                }
            });
        });
    }

    /// Reads all files and passes their chunks to `work`, while at most `ahead` chunks wait. So memory stays bounded, and
    /// `work` need not wait for the reader.
    pub(super) fn read(
        &self,
        files: &[PathBuf],
        wanted: &Wanted,
        ahead: usize,
        work: impl FnOnce(Receiver<(u64, Chunk)>),
    ) {
        let (give, take) = sync_channel(ahead);
        let first = self.outputs.as_ref().map_or(0, Outputs::chunks);
        let reader = read_beside(files.to_vec(), wanted.clone(), first, give);
        work(take);
        // After a failure, the reader may still be waiting for input. Its thread is not joined, but ends with the
        // process.
        if !self.has_failed()
            && let Some(error) = reader.join().expect("the reader does not panic")
        {
            self.fail(error);
        }
    }

    /// Sends chunks on one connection, until there are no chunks left, or until an error on any connection ends the
    /// import.
    fn send_chunks(&self, take: &Mutex<Receiver<(u64, Chunk)>>) {
        while let Some((number, chunk)) = self.next_chunk(|| locked(take).recv_timeout(LOOK_EVERY)) {
            let turn = self.turn_of(number);
            let mut answers = self.begin_chunk(&chunk);
            self.send_chunk(&chunk, &mut answers);
            self.done(turn, &chunk, &answers);
        }
    }

    /// Returns the next chunk; `None` if there is none left, or if the import has failed or was interrupted.
    pub(super) fn next_chunk(
        &self,
        receive: impl Fn() -> Result<(u64, Chunk), RecvTimeoutError>,
    ) -> Option<(u64, Chunk)> {
        while !self.has_failed() {
            match receive() {
                Ok(next) => return Some(next),
                Err(RecvTimeoutError::Timeout) => self.look_for_interruption(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Returns the turn of a chunk in the output files, if there are any.
    pub(super) fn turn_of(&self, number: u64) -> Option<TurnOf<'_>> {
        self.outputs.as_ref().map(|outputs| outputs.turn_of(number))
    }

    /// Counts the parts of a chunk that are no documents. Returns places for the answers, if they will be written to a
    /// file.
    pub(super) fn begin_chunk(&self, chunk: &Chunk) -> Vec<Option<Answered>> {
        let mut tally = locked(&self.tally);
        for (origin, reason) in &chunk.failures {
            tally.unreadable(origin, reason);
        }
        tally.read(chunk.text_bytes, chunk.skipped);
        let mut answers = Vec::new();
        if self.outputs.is_some() {
            answers.resize_with(chunk.origins.len(), || None);
        }
        answers
    }

    /// Counts the answer to one document of a chunk.
    pub(super) fn answered(&self, chunk: &Chunk, place: usize, line: &str, answers: &mut [Option<Answered>]) {
        let answer = serde_json::from_str(line).ok();
        locked(&self.tally).answer(&chunk.origins[place], answer.as_ref());
        if let Some(slot) = answers.get_mut(place) {
            *slot = Some((line.to_owned(), answer));
        }
    }

    /// Writes the answers to a chunk.
    pub(super) fn done(&self, turn: Option<TurnOf<'_>>, chunk: &Chunk, answers: &[Option<Answered>]) {
        self.look_for_interruption();
        if let Some(turn) = turn
            && let Err(error) = turn.write(chunk, answers)
        {
            self.fail(error);
        }
        self.bar.inc(chunk.input_bytes);
        self.bar.set_message(progress::documents(locked(&self.tally).documents(), self.begun));
    }

    /// Sends a chunk and counts the answers.
    pub(super) fn send_chunk(&self, chunk: &Chunk, answers: &mut [Option<Answered>]) {
        let patience = Patience::new(self.patience, Some(&*self.interrupted));
        let sent = bulk::send(self.api, &self.path, chunk, self.order, patience, |place, line| {
            self.answered(chunk, place, line, answers);
        });
        if let Err(error) = sent {
            self.stop(error);
        }
    }

    /// Ends the import, because no more chunks can be sent.
    pub(super) fn stop(&self, error: BulkError) {
        let full = matches!(error, BulkError::Full { .. });
        let again = "the import stopped; make room and run it again: stored documents stay as they are";
        let error = anyhow!(error);
        self.fail(if full { error.context(again) } else { error });
    }

    /// Finishes the output files, and reports the results.
    pub(super) fn finish(self) -> Result<ExitStatus> {
        let is_complete = locked(&self.error).is_none();
        if let Some(Err(error)) = self.outputs.map(|outputs| outputs.finish(is_complete)) {
            locked(&self.error).get_or_insert(error);
        }
        let tally = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        let error = self.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        tally.write_failures(&mut std::io::stderr().lock())?;
        // If a file or the collection does not exist, nothing was sent, and the error alone is enough.
        if error.is_none() || tally.documents() > 0 {
            let written = tally.write_summary(self.begun.elapsed(), &mut std::io::stdout().lock());
            // The reader of the summary may have closed the pipe early. The documents stay stored.
            if let Err(error) = written
                && error.kind() != std::io::ErrorKind::BrokenPipe
            {
                return Err(error).context("cannot write the summary");
            }
        }
        match error {
            Some(error) => Err(error),
            None if tally.failed() > 0 => Ok(ExitStatus::Found),
            None => Ok(ExitStatus::Fine),
        }
    }

    /// Ends the import if it was interrupted. Chunks that are being sent are still sent completely, and files are
    /// finished.
    pub(super) fn look_for_interruption(&self) {
        if self.interrupted.load(Ordering::Relaxed) && !self.has_failed() {
            self.fail(match self.outputs.as_ref().is_some_and(Outputs::has_state) {
                true => anyhow!("interrupted; run the import again with --resume to continue"),
                false => anyhow!("interrupted; stored documents stay stored, so run the import again to continue"),
            });
        }
    }

    pub(super) fn fail(&self, error: anyhow::Error) {
        locked(&self.error).get_or_insert(error);
    }

    pub(super) fn has_failed(&self) -> bool {
        locked(&self.error).is_some()
    }
}

/// Reads all files on a thread of its own, until the receiver of the chunks is dropped. The chunks before `first` are left
/// out. Returns the error that ended the reading of a file.
fn read_beside(
    files: Vec<PathBuf>,
    wanted: Wanted,
    first: u64,
    give: SyncSender<(u64, Chunk)>,
) -> JoinHandle<Option<anyhow::Error>> {
    std::thread::spawn(move || {
        let mut numbers = 0..;
        read_all_joined(&files, &wanted, |chunk| {
            let number = numbers.next().expect("they do not end");
            number < first || give.send((number, chunk)).is_ok()
        })
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
