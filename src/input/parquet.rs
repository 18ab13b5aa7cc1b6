//! A Parquet file -> chunks of documents. The columns that have the name of a field become the fields of
//! a JSON object, which is then treated like a line of JSON Lines. The rows of a file of signatures become documents with
//! signatures. Several row groups are read at the same time, each on a thread of its own. Memory is bounded: a row group
//! with too large pages is left out, and few batches of rows wait.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use arrow_json::writer::EncoderOptions;
use parquet::arrow::ProjectionMask;

use super::chunk::{Chunk, Origin, Place};
use super::gather::{Gather, Part};
use super::line;
use super::lines::LINE_BYTES_MAX;
use super::reason::{InputError, Reason};
use super::row_object::RowObjects;
use super::wanted::Wanted;
use crate::load::{FINGERPRINT, ParquetFile, catching, check_compression, pairs};

/// The first bytes of such a file.
pub(super) const BEGIN: &[u8] = b"PAR1";
/// The most row groups that are read at the same time.
const GROUPS_MAX: usize = 4;
/// How many batches of a row group may wait. Another one is being made.
const BATCHES_WAITING: usize = 2;

/// Whether a file begins like Parquet. The file is at its beginning afterwards.
pub(super) fn is_parquet(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.by_ref().take(BEGIN.len() as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(begin == BEGIN)
}

/// Passes the documents of a file to `give`, until it returns false.
pub(super) fn read(
    file: File,
    name: &Arc<str>,
    wanted: &Wanted,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    let bytes = file.metadata()?.len();
    let opened = open(file, name, wanted)?;
    let mut rows = Rows { gather: Gather::new(give), read: 0, total: opened.rows, bytes };
    let last: Result<_, InputError> = thread::scope(|scope| {
        let mut begun = VecDeque::new();
        let mut groups = opened.groups.iter();
        loop {
            while begun.len() < opened.ahead
                && let Some(group) = groups.next()
            {
                begun.push_back((group, group.begin_reading(&opened, scope)));
            }
            let Some((group, batches)) = begun.pop_front() else { return Ok(Next::Group) };
            // If the rest is not wanted, the batches are dropped here, which ends the threads.
            match rows.add_group(group, name, batches)? {
                Next::Group => {}
                last => return Ok(last),
            }
        }
    });
    let row = rows.read;
    match last? {
        Next::Nothing => Ok(()),
        Next::Group => rows.gather.finish(bytes),
        // The rows before the damage are used like all other rows.
        Next::Damage(detail) => rows.gather.finish(bytes).and(Err(InputError::Row { row, detail })),
    }
}

/// Reads the metadata of a file, as [`read`] does before the first row.
pub(super) fn look_at(file: File, wanted: &Wanted) -> Result<(), InputError> {
    open(file, &"".into(), wanted).map(drop)
}

/// Returns the names of the columns of a file.
pub(super) fn columns(mut file: File) -> Result<Vec<String>, InputError> {
    let file = ParquetFile::open(&mut file, |_| false).map_err(|detail| InputError::DamagedParquet { detail })?;
    Ok(file.schema().fields().iter().map(|field| field.name().clone()).collect())
}

struct Opened<'a> {
    file: ParquetFile,
    name: Arc<str>,
    wanted: &'a Wanted,
    columns: ProjectionMask,
    groups: Vec<Group>,
    rows: u64,
    /// The fingerprint of the spec of the signatures in the file.
    fingerprint: Option<String>,
    /// The number of row groups that are read at the same time.
    ahead: usize,
}

/// A row group.
struct Group {
    number: usize,
    /// The number of its first row.
    begin: u64,
    rows: u64,
}

fn open<'a>(mut file: File, name: &Arc<str>, wanted: &'a Wanted) -> Result<Opened<'a>, InputError> {
    // An original has all columns.
    let is_read = |name: &str| wanted.originals || wanted.reads(name);
    let file = ParquetFile::open(&mut file, is_read).map_err(|detail| InputError::DamagedParquet { detail })?;
    check_compression(file.metadata(), is_read).map_err(InputError::ParquetCompression)?;
    let metadata = file.metadata().file_metadata();
    let fingerprint = pairs(metadata).remove(FINGERPRINT);
    let columns: Vec<_> = file.schema().fields().iter().enumerate().collect();
    let columns = columns.into_iter().filter(|(_, field)| is_read(field.name()));
    let columns = ProjectionMask::roots(metadata.schema_descr(), columns.map(|(at, _)| at));
    let mut end = 0;
    let group = |(number, rows): (usize, i64)| {
        let rows = u64::try_from(rows).unwrap_or_default();
        let begin = end;
        end += rows;
        Group { number, begin, rows }
    };
    let groups = file.metadata().row_groups().iter().map(|group| group.num_rows()).enumerate().map(group).collect();
    let ahead = thread::available_parallelism().map_or(1, usize::from).min(GROUPS_MAX);
    Ok(Opened { name: Arc::clone(name), wanted, columns, groups, rows: end, fingerprint, ahead, file })
}

/// A row of a batch.
struct Row {
    document: Result<Vec<u8>, Reason>,
    /// The number of bytes of the row as JSON.
    bytes: u64,
    original: Option<Vec<u8>>,
    ranked: Option<Vec<u8>>,
}

/// A batch of rows, or the damage that ends the row group.
type Batch = Result<Vec<Row>, String>;

impl Group {
    /// Begins to read the group on a thread, unless it cannot be read. Returns the reason then.
    fn begin_reading<'scope>(
        &'scope self,
        opened: &'scope Opened<'_>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Receiver<Batch>, Reason> {
        if let Some(Some(reason)) = opened.file.refused().get(self.number) {
            let (rows, number) = (self.rows, self.number);
            let detail = format!("the {rows} rows of row group {number} are left out: {reason}");
            return Err(Reason::other("unreadable_rows", detail));
        }
        let (give, take) = sync_channel(BATCHES_WAITING);
        scope.spawn(move || {
            if let Err(detail) = self.read(opened, &give) {
                // If the rest of the file is not wanted, the receiver is gone, and the damage is not reported.
                let _ = give.send(Err(detail));
            }
        });
        Ok(take)
    }

    fn read(&self, opened: &Opened<'_>, give: &SyncSender<Batch>) -> Result<(), String> {
        let builder = opened.file.builder().with_projection(opened.columns.clone());
        let builder = builder.with_row_groups(vec![self.number]);
        let mut batches = catching(|| builder.build().map_err(|error| error.to_string()))?;
        let (mut row, mut json, options) = (self.begin, Vec::new(), EncoderOptions::default());
        let is_field = |name: &str| opened.wanted.reads(name);
        while let Some(batch) = catching(|| batches.next().transpose().map_err(|error| error.to_string()))? {
            let objects = RowObjects::new(&batch, &options, opened.fingerprint.as_deref(), is_field);
            let mut objects = objects.map_err(|error| error.to_string())?;
            let rows = (0..batch.num_rows()).map(|at| {
                let origin = Origin { file: Arc::clone(&opened.name), place: Place::Row(row) };
                row += 1;
                opened.row(&mut objects, at, &mut json, &origin)
            });
            if give.send(Ok(rows.collect())).is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Opened<'_> {
    fn row(&self, objects: &mut RowObjects<'_>, at: usize, json: &mut Vec<u8>, origin: &Origin) -> Row {
        let mut bytes = 0;
        let document = objects.with_fields(at, json, |fields, written| {
            bytes = written;
            match bytes <= LINE_BYTES_MAX {
                true => line::of_fields(&fields, bytes, &self.wanted.form, origin),
                false => {
                    Err(Reason::other("too_large", format!("the row has {bytes} bytes; the limit is {LINE_BYTES_MAX}")))
                }
            }
        });
        let document = document
            .unwrap_or_else(|wrong| Err(Reason::other("not_utf8", format!("{}: not valid UTF-8", wrong.field))));
        let original = (self.wanted.originals && document.is_ok()).then(|| objects.whole(at));
        let ranked = self.wanted.also.as_ref().filter(|_| document.is_ok()).map(|field| objects.ranked(at, field));
        Row { document, bytes: bytes as u64, original, ranked }
    }
}

/// The rows that are collected into chunks.
struct Rows<'a> {
    gather: Gather<'a>,
    read: u64,
    /// The number of rows of the file.
    total: u64,
    /// The number of bytes of the file.
    bytes: u64,
}

/// What follows a row group.
enum Next {
    Group,
    /// No further chunks are taken.
    Nothing,
    /// The group is damaged, so the rest of the file is not read.
    Damage(String),
}

impl Rows<'_> {
    /// Adds the rows of a group, or the reason why it cannot be read.
    fn add_group(
        &mut self,
        group: &Group,
        name: &Arc<str>,
        batches: Result<Receiver<Batch>, Reason>,
    ) -> Result<Next, InputError> {
        let batches = match batches {
            Ok(batches) => batches,
            Err(reason) => {
                let refused = Row { document: Err(reason), bytes: 0, original: None, ranked: None };
                let is_taken = self.add(refused, name)?;
                self.read = group.begin + group.rows;
                return Ok(if is_taken { Next::Group } else { Next::Nothing });
            }
        };
        for batch in batches {
            match batch {
                Ok(batch) => {
                    for row in batch {
                        if !self.add(row, name)? {
                            return Ok(Next::Nothing);
                        }
                        self.read += 1;
                    }
                }
                Err(detail) => return Ok(Next::Damage(detail)),
            }
        }
        Ok(Next::Group)
    }

    /// Adds a row. Returns false if no further chunks are taken.
    fn add(&mut self, row: Row, name: &Arc<str>) -> Result<bool, InputError> {
        let origin = Origin { file: Arc::clone(name), place: Place::Row(self.read) };
        // The values of a row are spread over the file. So the progress in bytes is computed from the share of the rows
        // that were read.
        let share = self.read as f64 / self.total.max(1) as f64;
        let taken = ((self.bytes as f64 * share) as u64).min(self.bytes);
        let Row { document, bytes, original, ranked } = row;
        let part = Part { origin, document, original: original.as_deref(), ranked, text_bytes: bytes };
        self.gather.add(part, taken)
    }
}
