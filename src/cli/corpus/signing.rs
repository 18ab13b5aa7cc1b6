//! Files -> signed documents, or whatever else is made of documents, chunk by chunk, in the order of the files. One thread
//! reads, and others sign, while the caller decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use anyhow::{Result, anyhow, bail};
use rayon::prelude::*;

use super::order::Order;
use super::rank::Rank;
use crate::cli::files::read_all;
use crate::cli::placed::Unreadable;
use crate::cli::retry::LOOK_EVERY;
use crate::corpus::{CorpusSigner, SignedDocument};
use crate::http::Caller;
use crate::http::dto::document::{Invalid, from_json};
use crate::http::error::{Code, Problem};
use crate::input::{Chunk, Fields, Origin, Wanted};
use crate::types::DocId;

/// The error of a run that a signal has ended.
pub(in crate::cli) const INTERRUPTED: &str = "interrupted; there is no output";
/// How many chunks may wait between two threads.
const CHUNKS_WAITING: usize = 2;

/// The signed documents of a chunk.
pub(in crate::cli) struct SignedChunk {
    /// The number of its file.
    file: usize,
    chunk: Chunk,
    documents: Vec<Document>,
    /// The documents that cannot be compared, with the reasons.
    refused: Vec<(Origin, Unreadable)>,
}

/// A document of a file.
pub(in crate::cli) struct Document {
    /// The number of its file.
    pub file: usize,
    pub origin: Origin,
    pub id: Option<DocId>,
    pub rank: Rank,
    pub signed: SignedDocument,
    /// Its place in the chunk.
    pub at: usize,
}

impl SignedChunk {
    fn new(file: usize, chunk: Chunk, signer: &CorpusSigner, order: &Order) -> Self {
        let sign = |(at, line): (usize, &Vec<u8>)| {
            let text = std::str::from_utf8(line).expect("lines are made of UTF-8");
            let origin = chunk.origins[at].clone();
            let (id, content) = comparable(text);
            let signed = from_json(&content, Invalid::Refuse, &Caller::anyone())
                .and_then(|document| signer.sign(document.content).map_err(Problem::from));
            let refused = |code, detail| (origin.clone(), Unreadable::new(code, detail));
            let signed = signed.map_err(|problem| refused(problem.code.as_str(), problem.detail))?;
            let rank = order.rank(signed.bytes(), chunk.ranked(at));
            let rank = rank.map_err(|detail| refused(Code::InvalidValue.as_str(), detail))?;
            Ok(Document { file, origin, id, rank, signed, at })
        };
        let signed: Vec<_> = chunk.lines.par_iter().enumerate().map(sign).collect();
        let (mut documents, mut refused) = (Vec::with_capacity(signed.len()), Vec::new());
        for signed in signed {
            match signed {
                Ok(document) => documents.push(document),
                Err(reason) => refused.push(reason),
            }
        }
        Self { file, chunk, documents, refused }
    }

    pub(in crate::cli) fn file(&self) -> usize {
        self.file
    }

    /// The chunk that was read.
    pub(in crate::cli) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(in crate::cli) fn take_documents(&mut self) -> Vec<Document> {
        std::mem::take(&mut self.documents)
    }

    /// Returns the lines from which no document was made, and the documents that cannot be compared.
    pub(in crate::cli) fn failures(&self) -> impl Iterator<Item = (&Origin, Unreadable)> {
        let unreadable = self.chunk.failures.iter().map(|(origin, reason)| (origin, Unreadable::from(reason)));
        unreadable.chain(self.refused.iter().map(|(origin, reason)| (origin, reason.clone())))
    }
}

/// Returns the id of a document, and the fields with its content. All other fields are only copied, so they may have any
/// values.
pub(in crate::cli) fn comparable(line: &str) -> (Option<DocId>, String) {
    let fields: Fields<'_> = serde_json::from_str(line).expect("a document is an object");
    let id = fields.get("id").and_then(|id| serde_json::from_str::<String>(id).ok());
    let is_array = |value: &str| value.starts_with('[');
    let names: &[&str] = match () {
        () if fields.get("text").is_some() => &["text"],
        () if fields.get("html").is_some() => &["html"],
        () if fields.get("set").is_some_and(is_array) => &["set"],
        () => &["signature", "fingerprint", "content_hash", "shingles"],
    };
    let given = names.iter().filter_map(|name| Some(format!("\"{name}\":{}", fields.get(name)?)));
    (id.and_then(|id| DocId::new(id).ok()), format!("{{{}}}", given.collect::<Vec<_>>().join(",")))
}

/// Passes the documents of all files to `take`.
pub(in crate::cli) fn each_signed(
    files: &[PathBuf],
    wanted: &Wanted,
    (signer, order): (&CorpusSigner, &Order),
    stop: &Arc<AtomicBool>,
    take: impl FnMut(SignedChunk) -> Result<()>,
) -> Result<()> {
    let (signer, order) = (signer.clone(), order.clone());
    let sign = move |file, chunk| SignedChunk::new(file, chunk, &signer, &order);
    each_made(files, wanted, sign, stop, take)
}

/// Makes something of each chunk of all files, and passes it to `take`, in the order of the files.
pub(in crate::cli) fn each_made<T: Send + 'static>(
    files: &[PathBuf],
    wanted: &Wanted,
    make: impl Fn(usize, Chunk) -> T + Send + 'static,
    stop: &Arc<AtomicBool>,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let (give_read, take_read) = sync_channel::<(usize, Chunk)>(CHUNKS_WAITING);
    let (give_made, take_made) = sync_channel(CHUNKS_WAITING);
    let (files, wanted) = (files.to_vec(), wanted.clone());
    let reader =
        std::thread::spawn(move || read_all(&files, &wanted, |file, chunk| give_read.send((file, chunk)).is_ok()));
    let making = std::thread::spawn(move || {
        for (file, chunk) in take_read {
            if give_made.send(make(file, chunk)).is_err() {
                break;
            }
        }
    });
    // After an error, the reader may still wait for input. Its thread is not joined, but ends with the process.
    loop {
        match take_made.recv_timeout(LOOK_EVERY) {
            _ if stop.load(Ordering::Relaxed) => bail!("{INTERRUPTED}"),
            Ok(made) => take(made)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    making.join().map_err(|_| anyhow!("a document could not be processed"))?;
    match reader.join().expect("the reader does not panic") {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
