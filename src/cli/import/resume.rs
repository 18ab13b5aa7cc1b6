//! How far an import has come -> a file next to the verdicts, and back. After a crash, the import goes on from there: the
//! output files are cut to the length that they had, and the chunks before are left out. Chunks depend only on the input
//! files and on the arguments, so both must be the same.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cli::corpus::table::is_table;
use crate::cli::files::read_once;

/// The end of the name of the state file.
const SUFFIX: &str = ".resume";
pub(super) const VERDICTS: &str = "--verdicts";

/// An import, as far as its chunks depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The version of hapax, which decides about the size of chunks.
    version: String,
    /// The request that is sent.
    request: String,
    /// The form of the lines.
    form: String,
    kept: Option<PathBuf>,
    /// The files, with their sizes and the times of their last changes.
    files: Vec<(PathBuf, u64, i64, i64)>,
}

/// How far an import has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The chunks whose documents all have their lines in the output files.
    pub chunks: u64,
    /// The lengths of the output files.
    pub verdicts_bytes: u64,
    pub kept_bytes: Option<u64>,
    /// Whether the file of the kept lines has the header of a table.
    pub has_header: bool,
}

impl Progress {
    /// An import whose output files are empty.
    pub(super) fn begun(has_kept: bool) -> Self {
        Self { chunks: 0, verdicts_bytes: 0, kept_bytes: has_kept.then_some(0), has_header: false }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct State {
    job: Job,
    progress: Progress,
}

/// The state file of an import.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    job: Job,
}

impl Job {
    pub(super) fn new(files: &[PathBuf], request: &str, form: String, kept: Option<&Path>) -> io::Result<Self> {
        let state = |path: &PathBuf| {
            let data: Metadata = path.metadata()?;
            Ok((path.clone(), data.len(), data.mtime(), data.mtime_nsec()))
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            request: request.to_owned(),
            form,
            kept: kept.map(Path::to_owned),
            files: files.iter().map(state).collect::<io::Result<_>>()?,
        })
    }
}

impl StateFile {
    pub(super) fn new(verdicts: &Path, job: Job) -> Self {
        Self { path: state_of(verdicts), job }
    }

    /// Removes the state next to a file of verdicts, if there is one.
    pub(super) fn remove_of(verdicts: &Path) -> Result<()> {
        remove(&state_of(verdicts))
    }

    /// Returns how far the import has come. `None`: it has not begun.
    pub(super) fn read(&self, verdicts: &Path) -> Result<Option<Progress>> {
        let path = self.path.display();
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if verdicts.metadata().is_ok_and(|data| data.len() > 0) {
                    bail!(
                        "--resume: there is nothing to resume: {path} does not exist, so the import of {} was complete",
                        verdicts.display()
                    );
                }
                return Ok(None);
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        };
        let State { job, progress } = serde_json::from_slice(&text).with_context(|| {
            format!("--resume: {path} is damaged; import again without --resume: stored documents stay as they are")
        })?;
        if job != self.job {
            bail!(
                "--resume: {path} belongs to an import with {}; give the same files and options, or import again \
                 without --resume",
                self.difference(&job)
            );
        }
        let lengths =
            [(Some(verdicts), Some(progress.verdicts_bytes)), (self.job.kept.as_deref(), progress.kept_bytes)];
        for (output, bytes) in lengths.into_iter().filter_map(|(output, bytes)| output.zip(bytes)) {
            let found = output.metadata().map_or(0, |data| data.len());
            if found < bytes {
                bail!(
                    "--resume: {} has {found} bytes, but had {bytes} when the import was interrupted; put the file back, or \
                     import again without --resume: stored documents stay as they are",
                    output.display()
                );
            }
        }
        Ok(Some(progress))
    }

    /// Names the first part in which another import differs.
    fn difference(&self, other: &Job) -> String {
        let Job { version, request, form, kept, files } = &self.job;
        match () {
            () if *version != other.version => format!("hapax {}", other.version),
            () if *files != other.files => {
                let differs = other.files.iter().find(|file| !files.contains(file));
                differs.map_or("fewer files".to_owned(), |(path, ..)| format!("another state of {}", path.display()))
            }
            () if *request != other.request => format!("other options: {}", other.request),
            () if *form != other.form => format!("other fields: {}", other.form),
            () => {
                let kept = kept.as_ref().or(other.kept.as_ref()).expect("one has it");
                format!("another --kept than {}", kept.display())
            }
        }
    }

    /// Writes how far the import has come. The output files must be on disk by then.
    pub(super) fn write(&self, progress: Progress) -> Result<()> {
        let state = State { job: self.job.clone(), progress };
        let unfinished = self.path.with_extension("resume-new");
        let cannot = || format!("cannot write {}", self.path.display());
        let text = serde_json::to_vec(&state).expect("the state is JSON");
        let written = fs::write(&unfinished, text).and_then(|()| File::open(&unfinished)?.sync_all());
        written.and_then(|()| fs::rename(&unfinished, &self.path)).with_context(cannot)
    }

    /// Removes the file, because the import is complete.
    pub(super) fn remove(&self) -> Result<()> {
        remove(&self.path)
    }
}

/// The path of the state next to a file of verdicts.
fn state_of(verdicts: &Path) -> PathBuf {
    let mut name = verdicts.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Checks that an import can be resumed: its files can be read again, and its outputs can be cut.
pub(super) fn check(files: &[PathBuf], verdicts: Option<&Path>, kept: Option<&Path>) -> Result<()> {
    let Some(verdicts) = verdicts else {
        bail!("--resume needs --verdicts: the file next to the verdicts says how far the import has come");
    };
    if let Some(file) = read_once(files) {
        bail!("--resume: {} cannot be read again from a place in it", file.display());
    }
    if is_table(verdicts) {
        bail!(
            "--resume: {} cannot be a Parquet file, because such a file cannot be continued; name a file of lines",
            verdicts.display()
        );
    }
    for output in [Some(verdicts), kept].into_iter().flatten() {
        if output.metadata().is_ok_and(|data| !data.is_file()) {
            bail!("--resume: {} is not a regular file", output.display());
        }
    }
    Ok(())
}
