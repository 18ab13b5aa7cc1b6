//! The files that an import writes: a line for each verdict, and the lines of the documents that are stored. Chunks are
//! answered in any order, but are written in the order of the input: each connection waits for its turn. So at most one
//! chunk for each connection is in memory.

use std::fs::{File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::answer::Answer;
use super::resume::{Progress, StateFile, VERDICTS};
use super::verdict_file::VerdictFile;
use crate::cli::files::{are_one, one_file};
use crate::cli::line_file::LineFile;
use crate::cli::placed::{ErrorLine, PlaceFields, Unreadable, placed};
use crate::input::{Chunk, Fields};

pub(super) const KEPT: &str = "--kept";

/// How often the state of the import is written.
const SAVED_EVERY: Duration = Duration::from_secs(1);

/// The answer to one document: its line, and the fields of the line if it could be read.
pub(super) type Answered = (String, Option<Answer>);

/// The files of one import, and the chunk whose turn it is.
pub(super) struct Outputs {
    turn: Mutex<Turn>,
    moved: Condvar,
}

struct Turn {
    next: u64,
    /// Whether a thread has panicked, so that its chunk will never be written.
    abandoned: bool,
    verdicts: Option<VerdictFile>,
    kept: Option<LineFile>,
    state: Option<StateFile>,
    /// Whether all chunks so far have all their lines.
    is_whole: bool,
    /// When the state was last written.
    saved: Instant,
}

impl Outputs {
    /// Creates the output files whose paths were given. `state`: the file with the state of the import, and how far the
    /// import has come if it is resumed.
    pub(super) fn create(
        verdicts: Option<&Path>,
        kept: Option<&Path>,
        (state, resumed): (Option<StateFile>, Option<Progress>),
    ) -> Result<Self> {
        let open = |path: Option<&Path>| path.map(Opened::new).transpose();
        let (verdicts, kept) = (open(verdicts)?, open(kept)?);
        // Two paths may lead to the same file. This can be checked only when the file exists.
        if let (Some(verdicts), Some(kept)) = (&verdicts, &kept)
            && are_one(&verdicts.data, &kept.data)
        {
            return Err(one_file(VERDICTS, (KEPT, &kept.path)));
        }
        verdicts.iter().chain(&kept).try_for_each(Opened::lock)?;
        let next = resumed.as_ref().map_or(0, |resumed| resumed.chunks);
        // The files are emptied after this, so they always have at least the lines that the state counts.
        if let Some(state) = state.as_ref().filter(|_| resumed.is_none()) {
            state.write(Progress::begun(kept.is_some()))?;
        }
        let (verdicts, kept) = match resumed {
            None => (
                verdicts.map(|opened| opened.emptied(VerdictFile::new)).transpose()?,
                kept.map(|opened| opened.emptied(LineFile::new)).transpose()?,
            ),
            Some(Progress { verdicts_bytes, kept_bytes, has_header, .. }) => (
                verdicts.map(|opened| opened.cut_to(verdicts_bytes, false).map(VerdictFile::Lines)).transpose()?,
                kept.zip(kept_bytes).map(|(opened, bytes)| opened.cut_to(bytes, has_header)).transpose()?,
            ),
        };
        let turn = Turn { next, abandoned: false, verdicts, kept, state, is_whole: true, saved: Instant::now() };
        Ok(Self { turn: Mutex::new(turn), moved: Condvar::new() })
    }

    /// The number of chunks that are written.
    pub(super) fn chunks(&self) -> u64 {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Whether the import can be resumed.
    pub(super) fn has_state(&self) -> bool {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).state.is_some()
    }

    /// Returns the turn of a chunk. The turn ends when the result is dropped.
    pub(super) fn turn_of(&self, number: u64) -> TurnOf<'_> {
        TurnOf { outputs: self, number }
    }

    /// Finishes the files. Lines that were written before an error can still be read. If the import is not complete, its
    /// state stays.
    pub(super) fn finish(self, is_complete: bool) -> Result<()> {
        let mut turn = self.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        if turn.is_whole {
            turn.save(turn.next)?;
        }
        turn.verdicts.map_or(Ok(()), VerdictFile::finish)?;
        turn.kept.map_or(Ok(()), |kept| kept.finish().map(drop))?;
        turn.state.filter(|_| is_complete).map_or(Ok(()), |state| state.remove())
    }

    fn wait(&self, number: u64) -> MutexGuard<'_, Turn> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let early = |turn: &mut Turn| turn.next < number && !turn.abandoned;
        self.moved.wait_while(turn, early).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of one chunk.
pub(super) struct TurnOf<'a> {
    outputs: &'a Outputs,
    number: u64,
}

impl TurnOf<'_> {
    /// Waits until the earlier chunks are written, and then writes the lines of this chunk. A document without an
    /// answer is left out.
    pub(super) fn write(&self, chunk: &Chunk, answers: &[Option<Answered>]) -> Result<()> {
        let mut turn = self.outputs.wait(self.number);
        if turn.is_whole && answers.iter().any(Option::is_none) {
            turn.save(self.number)?;
            turn.is_whole = false;
        }
        if let Some(kept) = &mut turn.kept {
            kept.begin(chunk)?;
        }
        let mut failures = chunk.failures.iter().peekable();
        for (at, (origin, answer)) in chunk.origins.iter().zip(answers).enumerate() {
            while let Some((failed, reason)) = failures.next_if(|(failed, _)| failed.number() < origin.number()) {
                turn.verdict(&unreadable(failed, reason.into()))?;
            }
            let Some((line, answer)) = answer else { continue };
            match serde_json::from_str::<Fields<'_>>(line) {
                Ok(fields) => {
                    let place = PlaceFields::of(origin);
                    let is_error = fields.get("error").is_some();
                    let place = if is_error { place.with_offset(origin) } else { place };
                    turn.verdict(placed(&fields, &place).as_bytes())?;
                }
                Err(_) => turn.verdict(&unreadable(origin, Unreadable::answer()))?,
            }
            if answer.as_ref().is_some_and(|answer| answer.stored) {
                turn.keep(chunk.original(at))?;
            }
        }
        for (failed, reason) in failures {
            turn.verdict(&unreadable(failed, reason.into()))?;
        }
        if turn.is_whole && turn.saved.elapsed() >= SAVED_EVERY {
            turn.save(self.number + 1)?;
        }
        Ok(())
    }
}

impl Drop for TurnOf<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.outputs.turn.lock().unwrap_or_else(PoisonError::into_inner).abandoned = true;
        } else {
            let mut turn = self.outputs.wait(self.number);
            turn.next = turn.next.max(self.number + 1);
        }
        self.outputs.moved.notify_all();
    }
}

impl Turn {
    /// Writes to the state that the lines of the first `chunks` chunks are on disk.
    fn save(&mut self, chunks: u64) -> Result<()> {
        let verdicts = self.verdicts.as_mut().and_then(VerdictFile::lines);
        let (Some(state), Some(verdicts)) = (&self.state, verdicts) else { return Ok(()) };
        let has_header = self.kept.as_ref().is_some_and(LineFile::has_header);
        let kept_bytes = self.kept.as_mut().map(LineFile::checkpoint).transpose()?;
        state.write(Progress { chunks, verdicts_bytes: verdicts.checkpoint()?, kept_bytes, has_header })?;
        self.saved = Instant::now();
        Ok(())
    }

    fn verdict(&mut self, line: &[u8]) -> Result<()> {
        self.verdicts.as_mut().map_or(Ok(()), |sink| sink.line(line))
    }

    fn keep(&mut self, line: &[u8]) -> Result<()> {
        self.kept.as_mut().map_or(Ok(()), |sink| sink.line(line))
    }
}

fn unreadable(origin: &crate::input::Origin, error: Unreadable) -> Vec<u8> {
    serde_json::to_vec(&ErrorLine::new(PlaceFields::of(origin).with_offset(origin), error)).expect("strings are JSON")
}

/// A file that is open for writing, but still has its old content.
struct Opened {
    path: PathBuf,
    file: File,
    data: Metadata,
}

impl Opened {
    fn new(path: &Path) -> Result<Self> {
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let opened = file.and_then(|file| Ok(Self { path: path.to_owned(), data: file.metadata()?, file }));
        opened.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Refuses a file that another import is writing. The lock ends with the process, also if it is killed. If a file
    /// system has no locks, the file is used without one.
    fn lock(&self) -> Result<()> {
        if self.data.is_file() && matches!(self.file.try_lock(), Err(TryLockError::WouldBlock)) {
            let path = self.path.display();
            bail!("{path}: another import is writing this file; wait until it ends, or name another file");
        }
        Ok(())
    }

    /// Empties the file, unless it is a pipe or a device, and returns what `make` makes of it.
    fn emptied<T>(self, make: impl FnOnce(File, &Path) -> Result<T>) -> Result<T> {
        let emptied = if self.data.is_file() { self.file.set_len(0) } else { Ok(()) };
        emptied.with_context(|| format!("cannot write {}", self.path.display()))?;
        make(self.file, &self.path)
    }

    /// Cuts the file to its length at an interruption.
    fn cut_to(self, bytes: u64, has_header: bool) -> Result<LineFile> {
        LineFile::continued(self.file, &self.path, bytes, has_header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // This test is for a bug: two handles on the same file overwrote each other's lines.
    #[test]
    fn two_names_of_one_new_file_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new.jsonl");
        std::os::unix::fs::symlink("new.jsonl", dir.path().join("link.jsonl")).unwrap();
        for other in ["./new.jsonl", "link.jsonl"] {
            let refused = Outputs::create(Some(&file), Some(&dir.path().join(other)), (None, None));
            assert!(refused.is_err_and(|error| error.to_string().ends_with("two different files")), "{other}");
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, "old").unwrap();
        Outputs::create(Some(&file), Some(Path::new("/dev/null")), (None, None)).unwrap().finish(true).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"");
        Outputs::create(Some(Path::new("/dev/null")), Some(Path::new("/dev/null")), (None, None)).unwrap();
    }
}
