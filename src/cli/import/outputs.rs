//! The files that an import writes: a line for each verdict, and the lines of the documents that are stored. Chunks are
//! answered in any order, but are written in the order of the input: each connection waits for its turn. So at most one
//! chunk for each connection is in memory.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::answer::Answer;
use crate::cli::files::{are_one, one_file};
use crate::cli::line_file::LineFile;
use crate::cli::placed::{ErrorLine, PlaceFields, Unreadable, placed};
use crate::input::{Chunk, Fields};

pub(super) const VERDICTS: &str = "--verdicts";
pub(super) const KEPT: &str = "--kept";

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
    verdicts: Option<LineFile>,
    kept: Option<LineFile>,
}

impl Outputs {
    /// Creates the output files whose paths were given.
    pub(super) fn create(verdicts: Option<&Path>, kept: Option<&Path>) -> Result<Self> {
        let open = |path: Option<&Path>| path.map(Opened::new).transpose();
        let (verdicts, kept) = (open(verdicts)?, open(kept)?);
        // Two paths may lead to the same file. This can be checked only when the file exists.
        if let (Some(verdicts), Some(kept)) = (&verdicts, &kept)
            && are_one(&verdicts.data, &kept.data)
        {
            return Err(one_file(VERDICTS, (KEPT, &kept.path)));
        }
        let sink = |opened: Option<Opened>| opened.map(Opened::emptied).transpose();
        let turn = Turn { next: 0, abandoned: false, verdicts: sink(verdicts)?, kept: sink(kept)? };
        Ok(Self { turn: Mutex::new(turn), moved: Condvar::new() })
    }

    /// Returns the turn of a chunk. The turn ends when the result is dropped.
    pub(super) fn turn_of(&self, number: u64) -> TurnOf<'_> {
        TurnOf { outputs: self, number }
    }

    /// Finishes the files. Lines that were written before an error can still be read.
    pub(super) fn finish(self) -> Result<()> {
        let turn = self.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        for sink in [turn.verdicts, turn.kept].into_iter().flatten() {
            sink.finish()?;
        }
        Ok(())
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
                Ok(fields) => turn.verdict(placed(&fields, &PlaceFields::of(origin)).as_bytes())?,
                Err(_) => turn.verdict(&unreadable(origin, Unreadable::answer()))?,
            }
            if answer.as_ref().is_some_and(|answer| answer.stored) {
                turn.keep(chunk.original(at))?;
            }
        }
        for (failed, reason) in failures {
            turn.verdict(&unreadable(failed, reason.into()))?;
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
    fn verdict(&mut self, line: &[u8]) -> Result<()> {
        self.verdicts.as_mut().map_or(Ok(()), |sink| sink.line(line))
    }

    fn keep(&mut self, line: &[u8]) -> Result<()> {
        self.kept.as_mut().map_or(Ok(()), |sink| sink.line(line))
    }
}

fn unreadable(origin: &crate::input::Origin, error: Unreadable) -> Vec<u8> {
    serde_json::to_vec(&ErrorLine::new(PlaceFields::of(origin), error)).expect("strings are JSON")
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

    /// Empties the file, unless it is a pipe or a device, and returns it as a file of lines.
    fn emptied(self) -> Result<LineFile> {
        let emptied = if self.data.is_file() { self.file.set_len(0) } else { Ok(()) };
        emptied.with_context(|| format!("cannot write {}", self.path.display()))?;
        LineFile::new(self.file, &self.path)
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
            let refused = Outputs::create(Some(&file), Some(&dir.path().join(other)));
            assert!(refused.is_err_and(|error| error.to_string().ends_with("two different files")), "{other}");
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, "old").unwrap();
        Outputs::create(Some(&file), Some(Path::new("/dev/null"))).unwrap().finish().unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"");
        Outputs::create(Some(Path::new("/dev/null")), Some(Path::new("/dev/null"))).unwrap();
    }
}
