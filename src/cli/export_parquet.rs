//! `hapax export --parquet`: writes a collection of a data directory as a file of signatures, which can be loaded
//! again.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::ProgressBar;

use crate::collections::offline::StoredCollection;
use crate::load::ParquetWriter;
use crate::types::Seq;

/// The number of rows that are read at once.
const ROWS: usize = 4096;

/// Writes every document to `path`; `-` is stdout.
pub(super) fn write(stored: &StoredCollection, path: &Path, bar: &ProgressBar) -> Result<()> {
    let unwritable = || format!("cannot write {}", path.display());
    let out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stdout())
    } else {
        Box::new(File::create(path).with_context(unwritable)?)
    };
    let mut writer = ParquetWriter::new(BufWriter::new(out), &stored.file_settings())?;
    let mut last = Seq(0);
    loop {
        let rows = stored.rows(last, ROWS)?;
        let Some(row) = rows.last() else { break };
        last = row.record.seq;
        writer.write(&rows).with_context(unwritable)?;
        bar.inc(rows.len() as u64);
    }
    writer.finish().with_context(unwritable)?.flush().with_context(unwritable)
}
