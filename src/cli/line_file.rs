//! A file of lines that is written. It is compressed if its name ends in .gz or .zst.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::write::GzEncoder;

/// The level at which zstd compresses. It is zstd's default.
const ZSTD_LEVEL: i32 = 3;

/// A file of lines.
pub(super) struct LineFile {
    /// The name for messages.
    name: String,
    file: Compressed,
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
        Ok(Self { name, file })
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
