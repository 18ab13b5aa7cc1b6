//! The documents of an import -> one stream of lines to a data directory that this process serves itself. While the
//! answers to one chunk wait for the disk, the next chunks are signed and decided. So documents are decided in the order
//! of the input. Knows nothing of how a document is stored.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::mpsc::{Sender, channel};

use super::outputs::Answered;
use super::sending::Import;
use crate::cli::bulk::{AnswerLines, BulkError};
use crate::cli::in_process::OwnServer;
use crate::cli::retry::{LOOK_EVERY, line_may_pass};
use crate::input::Chunk;

/// The most chunks that wait: for the reader, for the stream, and for their answers.
pub(super) const AHEAD: usize = 2;

type Numbered = (u64, Chunk);

/// Streams all chunks to `server`, until there are none left, or until an error ends the import.
pub(super) fn stream(import: &Import<'_>, server: &OwnServer, take: Receiver<Numbered>) {
    let (pieces, lines) = channel(AHEAD);
    let (give, fed) = sync_channel(AHEAD);
    // The limits on one request are for clients.
    let answer = match server.stream(&format!("{}&duplex=true", import.path), lines) {
        Ok(answer) => answer,
        Err(error) => return import.stop(error.into()),
    };
    let lines = AnswerLines::new(import.api.name(), answer);
    std::thread::scope(|scope| {
        scope.spawn(move || feed(import, &take, &pieces, &give));
        if let Err(error) = answer_all(import, lines, &fed) {
            import.stop(error);
        }
        // This ends the feeder, if it waits.
        drop(fed);
    });
}

/// Gives the lines of each chunk to the stream, and then the chunk to those who wait for its answers.
fn feed(import: &Import<'_>, take: &Receiver<Numbered>, pieces: &Sender<Vec<u8>>, give: &SyncSender<Numbered>) {
    while let Some((number, chunk)) = import.next_chunk(|| take.recv_timeout(LOOK_EVERY)) {
        let mut lines = Vec::with_capacity(chunk.lines.iter().map(|line| line.len() + 1).sum());
        for line in &chunk.lines {
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        if give.send((number, chunk)).is_err() || !lines.is_empty() && pieces.blocking_send(lines).is_err() {
            return;
        }
    }
}

/// Counts and writes the answers to all chunks.
fn answer_all(
    import: &Import<'_>,
    mut lines: AnswerLines<'_, impl std::io::Read>,
    fed: &Receiver<Numbered>,
) -> Result<(), BulkError> {
    let mut first = 1;
    for (number, chunk) in fed {
        let turn = import.turn_of(number);
        let mut answers = import.begun(&chunk);
        let answered = answer_chunk(import, &mut lines, first, &chunk, &mut answers);
        first += chunk.lines.len();
        import.done(turn, &chunk, &answers);
        answered?;
    }
    match lines.next()? {
        None => Ok(()),
        Some((_, line, _)) => {
            Err(BulkError::Foreign { url: import.api.name().to_owned(), line: line.chars().take(120).collect() })
        }
    }
}

/// Counts the answers to a chunk, whose first line has the number `first` in the stream. Documents that were refused only
/// for now are sent again.
fn answer_chunk(
    import: &Import<'_>,
    lines: &mut AnswerLines<'_, impl std::io::Read>,
    first: usize,
    chunk: &Chunk,
    answers: &mut [Option<Answered>],
) -> Result<(), BulkError> {
    let mut refused = Vec::new();
    for place in 0..chunk.lines.len() {
        let Some((number, line, status)) = lines.next()? else {
            return Err(BulkError::Truncated { url: import.api.name().to_owned(), reason: None, passing: false });
        };
        debug_assert_eq!(number, first + place, "answers have the order of the lines");
        if status.is_some_and(line_may_pass) {
            refused.push(place);
        } else {
            import.answered(chunk, place, line, answers);
        }
    }
    if !refused.is_empty() {
        let mut again = Chunk::default();
        again.lines = refused.iter().map(|&place| chunk.lines[place].clone()).collect();
        again.origins = refused.iter().map(|&place| chunk.origins[place].clone()).collect();
        let mut late = Vec::new();
        late.resize_with(if answers.is_empty() { 0 } else { refused.len() }, || None);
        import.send_chunk(&again, &mut late);
        for (place, answer) in refused.into_iter().zip(late) {
            answers[place] = answer;
        }
    }
    Ok(())
}
