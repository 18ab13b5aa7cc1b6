//! Groups of lines of this process -> their answers, in the same order.
//! Documents are parsed, signed, decided and answered as in a bulk request, but each stage works on a whole group. With a
//! task for each document, an import of documents of 2 KB takes 43 µs of processor time a document; with groups of 64, it
//! takes 31 µs. Documents are decided in the order of the lines. There are no limits for clients. Memory is bounded by
//! the number of groups, and by the size of a group, which the caller chooses.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::task::AbortOnDropHandle;

use super::answer_line::AnswerLine;
use super::states::{DecidedInTurn, Ready};
use super::work::{DocumentWork, LineBounds};
use crate::cpu;
use crate::http::state::AppState;

/// The most groups whose decisions may wait for the disk. They share transactions, and further groups are decided while a
/// transaction is written.
const DECIDED_MAX: usize = 112;

/// A line: the JSON of one document.
pub type Line = Bytes;
/// The lines of a group.
pub type Group = Vec<Line>;

/// The answer to one line.
#[derive(Debug)]
pub struct Answered {
    /// The answer as a line of JSON.
    pub line: String,
    /// The status of the document's error and its code, if it failed.
    pub failed: Option<(u16, &'static str)>,
}

/// The answers to groups, in the order of the groups.
pub struct GroupAnswers(Receiver<AbortOnDropHandle<Vec<Answered>>>);

impl GroupAnswers {
    /// Returns the answers to the next group, once they are durable; `None` after the last group.
    pub async fn next(&mut self) -> Option<Vec<Answered>> {
        let task = self.0.recv().await?;
        Some(task.await.expect("the work on a group does not panic"))
    }
}

/// Starts the work on groups. It ends when the sender is dropped, or when the answers are dropped.
pub(crate) fn start_groups(work: DocumentWork, state: &AppState) -> (Sender<Group>, GroupAnswers) {
    let limits = state.limits();
    let answer_bytes_max = work.answer_bytes_max().min(limits.answer_bytes_max);
    let bounds = LineBounds { line_bytes_max: limits.bulk_line_bytes_max, answer_bytes_max };
    let ahead = 2 * cpu::cores();
    let (give, groups) = channel(1);
    let (prepared, preparing) = channel(ahead);
    let (decided, answers) = channel(DECIDED_MAX);
    let work = Arc::new(work);
    tokio::spawn(prepare_all(Arc::clone(&work), groups, prepared, bounds));
    tokio::spawn(decide_all(work, preparing, decided, answer_bytes_max));
    (give, GroupAnswers(answers))
}

async fn prepare_all(
    work: Arc<DocumentWork>,
    mut groups: Receiver<Group>,
    prepared: Sender<AbortOnDropHandle<Vec<Ready>>>,
    bounds: LineBounds,
) {
    while let Some(group) = groups.recv().await {
        let task = tokio::spawn(Arc::clone(&work).prepare_group(group, bounds));
        if prepared.send(AbortOnDropHandle::new(task)).await.is_err() {
            return;
        }
    }
}

async fn decide_all(
    work: Arc<DocumentWork>,
    mut preparing: Receiver<AbortOnDropHandle<Vec<Ready>>>,
    decided: Sender<AbortOnDropHandle<Vec<Answered>>>,
    bytes_max: usize,
) {
    let mut first = 1;
    while let Some(task) = preparing.recv().await {
        let group = task.await.expect("the work on a group does not panic");
        let waiting = work.decide_group(group, bytes_max).await;
        let next = first + waiting.len() as u64;
        let task = tokio::spawn(answer_all(Arc::clone(&work), waiting, first));
        first = next;
        if decided.send(AbortOnDropHandle::new(task)).await.is_err() {
            return;
        }
    }
}

/// Waits until the decisions of a group are durable, and writes their answers.
async fn answer_all(work: Arc<DocumentWork>, group: Vec<DecidedInTurn>, first: u64) -> Vec<Answered> {
    let mut answers = Vec::with_capacity(group.len());
    for (DecidedInTurn { waiting, .. }, line) in group.into_iter().zip(first..) {
        // Without a server there is no request, so there is no request id.
        let line = AnswerLine::of(line, waiting.await, work.collection().name(), "");
        let failed = line.failed();
        let mut text = Vec::with_capacity(512);
        line.write(&mut text).expect("memory takes everything, and an answer is always JSON");
        answers.push(Answered { line: String::from_utf8(text).expect("JSON is UTF-8"), failed });
    }
    answers
}
