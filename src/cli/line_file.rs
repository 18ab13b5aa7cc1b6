//! A file of lines that is written. It is compressed if its name ends in .gz or .zst. Records of a table follow its
//! header.

use std::fs::File;
use std::io::{self, BufWriter, Write};
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
    file: Compressed,
    /// The header of the chunks that were begun: `None` if there were none, and `Some(None)` if they were no tables.
    header: Option<Option<Arc<TableHeader>>>,
}

enum Compressed {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl LineFile {
    /// Writes lines to a file that is open and empty. `path` is its name, which decides about the compression.
    pub(super) fn new(file: File, path: &Path) -> Result<Self> {
        let (file, name) = (BufWriter::new(file), path.display().to_string());
        let file = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Compressed::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Some("zst") => {
                let encoder = zstd::stream::write::Encoder::new(file, ZSTD_LEVEL);
                Compressed::Zstd(encoder.with_context(|| format!("cannot write {name}"))?)
            }
            _ => Compressed::Plain(file),
        };
        Ok(Self { name, file, header: None })
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
        if let Some(header) = &chunk.header {
            self.line(header.line())?;
        }
        self.header = Some(chunk.header.clone());
        Ok(())
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        let file: &mut dyn Write = match &mut self.file {
            Compressed::Plain(file) => file,
            Compressed::Gzip(file) => file,
            Compressed::Zstd(file) => file,
        };
        let written = file.write_all(line).and_then(|()| file.write_all(b"\n"));
        written.with_context(|| format!("cannot write {}", self.name))
    }

    /// Writes the end of the file, and returns it.
    pub(super) fn finish(self) -> Result<File> {
        let file = match self.file {
            Compressed::Plain(file) => Ok(file),
            Compressed::Gzip(file) => file.finish(),
            Compressed::Zstd(file) => file.finish(),
        };
        let finished = file.and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        finished.with_context(|| format!("cannot write {}", self.name))
    }
}
