//! The documents of an import -> groups of lines for a data directory that this process serves itself. While the answers
//! to one chunk wait for the disk, the next chunks are signed and decided, in the order of the input. Knows nothing of how
//! a document is stored.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::mpsc::Sender;

use super::outputs;
use super::sending::Import;
use crate::cli::bulk::{BulkError, is_full};
use crate::cli::in_process::{OwnAnswers, OwnServer};
use crate::cli::retry::{LOOK_EVERY, line_may_pass};
use crate::http::{Answered, Group, Line};
use crate::input::Chunk;

/// The most chunks that wait: for the reader, and for their answers.
pub(super) const AHEAD: usize = 4;
/// A group ends after this many lines, or when it has this many bytes.
const GROUP_LINES: usize = 64;
const GROUP_BYTES: usize = 256 << 10;

type Numbered = (u64, Chunk);

/// A chunk whose lines were given to the server.
struct Fed {
    number: u64,
    /// The chunk without its lines.
    chunk: Chunk,
    lines: Vec<Line>,
}

/// Stores the documents of all chunks, until there are none left, or until an error ends the import.
pub(super) fn store(import: &Import<'_>, server: &OwnServer, take: Receiver<Numbered>) {
    let (groups, answers) = match server.groups(import.path()) {
        Ok(begun) => begun,
        Err(error) => return import.stop(error.into()),
    };
    let (give, fed) = sync_channel(AHEAD);
    std::thread::scope(|scope| {
        scope.spawn(move || feed(import, &take, &groups, &give));
        let mut answers = Answers { answers, group: Vec::new().into_iter() };
        // The end of this loop ends the thread that feeds, if it waits.
        for Fed { number, mut chunk, lines } in fed {
            let turn = import.turn_of(number);
            let mut written = import.begin_chunk(&chunk);
            let answered = answer_chunk(import, &mut answers, (&chunk, &lines), &mut written);
            if turn.is_some() {
                // The server needs the lines no longer, so they are not copied.
                chunk.lines = lines.into_iter().map(Vec::from).collect();
            }
            import.done(turn, &chunk, &written);
            if let Err(error) = answered {
                return import.stop(error);
            }
        }
    });
}

/// Passes each chunk on to those who wait for its answers, and gives its lines to the server.
fn feed(import: &Import<'_>, take: &Receiver<Numbered>, groups: &Sender<Group>, give: &SyncSender<Fed>) {
    while let Some((number, mut chunk)) = import.next_chunk(|| take.recv_timeout(LOOK_EVERY)) {
        let lines: Vec<_> = chunk.lines.drain(..).map(Line::from).collect();
        if give.send(Fed { number, chunk, lines: lines.clone() }).is_err() {
            return;
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        for line in lines {
            bytes += line.len();
            group.push(line);
            if group.len() == GROUP_LINES || bytes >= GROUP_BYTES {
                if groups.blocking_send(std::mem::take(&mut group)).is_err() {
                    return;
                }
                bytes = 0;
            }
        }
        if !group.is_empty() && groups.blocking_send(group).is_err() {
            return;
        }
    }
}

/// The answers to lines, one by one.
struct Answers<'a> {
    answers: OwnAnswers<'a>,
    group: std::vec::IntoIter<Answered>,
}

impl Answers<'_> {
    fn next(&mut self) -> Answered {
        loop {
            if let Some(answer) = self.group.next() {
                return answer;
            }
            self.group = self.answers.next().expect("each line has an answer").into_iter();
        }
    }
}

/// Counts the answers to a chunk. Documents that were refused only for now are sent again.
fn answer_chunk(
    import: &Import<'_>,
    answers: &mut Answers<'_>,
    (chunk, lines): (&Chunk, &[Line]),
    written: &mut [Option<outputs::Answered>],
) -> Result<(), BulkError> {
    let mut refused = Vec::new();
    for place in 0..lines.len() {
        let Answered { line, failed } = answers.next();
        match failed {
            Some((_, code)) if is_full(code) => return Err(BulkError::full(&line)),
            Some((status, _)) if line_may_pass(status) => refused.push(place),
            _ => import.answered(chunk, place, &line, written),
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let mut again = Chunk::default();
    again.lines = refused.iter().map(|&place| lines[place].to_vec()).collect();
    again.origins = refused.iter().map(|&place| chunk.origins[place].clone()).collect();
    let mut late: Vec<_> = written.iter().take(refused.len()).map(|_| None).collect();
    import.send_chunk(&again, &mut late);
    for (place, answer) in refused.into_iter().zip(late) {
        written[place] = answer;
    }
    Ok(())
}
