//! A file of lines that is written. It is compressed if its name ends in .gz or .zst. Records of a table follow its
//! header.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use flate2::write::GzEncoder;

use crate::input::{Chunk, TableHeader};

/// The level at which zstd compresses. It is zstd's default.
const ZSTD_LEVEL: i32 = 3;

/// A file of lines.
pub(super) struct LineFile {
    /// The name for messages.
    name: String,
    /// `None` only while one compressed part ends and the next one begins.
    file: Option<Compressed>,
    compression: Compression,
    /// The header of the chunks that were begun: `None` if there were none, and `Some(None)` if they were no tables.
    header: Option<Option<Arc<TableHeader>>>,
    /// Whether the file had a header when it was opened.
    had_header: bool,
}

#[derive(Clone, Copy)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

enum Compressed {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Compressed {
    fn new(file: BufWriter<File>, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::Plain(file),
            Compression::Gzip => Self::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?),
        })
    }

    fn finish(self) -> io::Result<BufWriter<File>> {
        match self {
            Self::Plain(file) => Ok(file),
            Self::Gzip(file) => file.finish(),
            Self::Zstd(file) => file.finish(),
        }
    }
}

impl LineFile {
    /// Writes lines to a file that is open and empty. `path` is its name, which decides about the compression.
    pub(super) fn new(file: File, path: &Path) -> Result<Self> {
        let compression = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            _ => Compression::None,
        };
        let name = path.display().to_string();
        let file = Compressed::new(BufWriter::new(file), compression);
        let file = Some(file.with_context(|| format!("cannot write {name}"))?);
        Ok(Self { name, file, compression, header: None, had_header: false })
    }

    /// Goes on with a file that is open. It is cut to the length that [`checkpoint`](Self::checkpoint) returned. `had_header`:
    /// whether it has the header of a table.
    pub(super) fn continued(mut file: File, path: &Path, bytes: u64, had_header: bool) -> Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        let found = file.metadata().with_context(cannot)?.len();
        if found < bytes {
            bail!("{} has {found} bytes, but had {bytes} when the import was interrupted", path.display());
        }
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).with_context(cannot)?;
        Ok(Self { had_header, ..Self::new(file, path)? })
    }

    /// Writes everything to the disk, so that the file can be read as it is. Returns its length in bytes.
    pub(super) fn checkpoint(&mut self) -> Result<u64> {
        let file = self.file.take().expect("it is open").finish();
        let written = file.and_then(|mut file| {
            file.flush()?;
            file.get_ref().sync_data()?;
            let bytes = file.get_ref().metadata()?.len();
            self.file = Some(Compressed::new(file, self.compression)?);
            Ok(bytes)
        });
        written.with_context(|| format!("cannot write {}", self.name))
    }

    /// Whether the file has the header of a table.
    pub(super) fn has_header(&self) -> bool {
        self.had_header || self.header.as_ref().is_some_and(Option::is_some)
    }

    /// Prepares for the original parts of a chunk: writes the header of a table, unless it is written.
    pub(super) fn begin(&mut self, chunk: &Chunk) -> Result<()> {
        match &self.header {
            Some(header) if *header == chunk.header => return Ok(()),
            // A chunk without documents may come from an empty file of any format.
            Some(_) if chunk.lines.is_empty() => return Ok(()),
            Some(_) => {
                bail!("{}: one file cannot have records of CSV with different headers, or other lines too", self.name)
            }
            None => {}
        }
        if let Some(header) = chunk.header.as_ref().filter(|_| !self.had_header) {
            self.line(header.line())?;
        }
        self.header = Some(chunk.header.clone());
        Ok(())
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        let file: &mut dyn Write = match self.file.as_mut().expect("it is open") {
            Compressed::Plain(file) => file,
            Compressed::Gzip(file) => file,
            Compressed::Zstd(file) => file,
        };
        let written = file.write_all(line).and_then(|()| file.write_all(b"\n"));
        written.with_context(|| format!("cannot write {}", self.name))
    }

    /// Writes the end of the file, and returns it.
    pub(super) fn finish(self) -> Result<File> {
        let file = self.file.expect("it is open").finish();
        let finished = file.and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        finished.with_context(|| format!("cannot write {}", self.name))
    }
}
