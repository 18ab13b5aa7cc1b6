//! A body of JSON lines -> an answer of JSON lines, which begins while the request is still arriving.
//! Reading, working and writing run concurrently. Answers that the client does not read are kept up to a limit. At the
//! limit, the server stops reading. If the client then reads nothing for a while, the server ends the stream with a
//! `fatal` line. An answer is complete only if it ends with a `summary` line.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use tokio::io::AsyncRead;

use super::answer_line::AnswerLine;
use super::source::LineSource;
use super::states::DocumentAnswer;
use super::work::DocumentWork;
use super::writer::{LineWriter, answers};
use crate::http::body::Window;
use crate::http::dto::summary::Summary;
use crate::http::error::{Code, Problem};
use crate::http::leftover;
use crate::http::quota::Quota;
use crate::http::state::AppState;
use crate::http::stream_place::StreamPlace;
use crate::telemetry::request::carried;

/// For this long after the key was revoked, the server may still answer lines that it has already read. Together with
/// the time until the server notices the revocation, this is less than 5 s.
const REVOKED_GRACE: Duration = Duration::from_secs(2);

pub(crate) struct Bulk {
    /// The work to do for each line.
    pub(crate) work: DocumentWork,
    /// Whether the limits on bytes and lines are removed.
    pub(crate) duplex: bool,
    /// The request's id, for the problems in the answer.
    pub(crate) request_id: String,
    /// The request's place among the bulk requests.
    pub(crate) place: StreamPlace,
    /// The memory reserved for the request's decoder.
    pub(crate) window: Window,
    /// The client's quota. The stream waits until the quota allows more work.
    pub(crate) quota: Quota,
}

/// Starts the work. The answer's body ends when the work is done.
pub(crate) fn start(bulk: Bulk, state: &AppState, reader: Box<dyn AsyncRead + Send + Unpin>) -> Body {
    let limits = state.limits();
    let (writer, body) =
        answers(limits.bulk_answer_buffer_bytes_max, limits.bulk_stall_timeout, limits.answer_bytes_per_second_min);
    let (state, threads) = (state.clone(), state.stream_threads());
    let run = async move {
        tokio::select! {
            // The client has closed the connection: decisions that were made stay valid, and no further documents are
            // begun.
            () = writer.gone() => tracing::debug!("bulk client closed the connection"),
            () = run(bulk, &state, reader, &writer) => {}
        }
    };
    threads.spawn(carried(run));
    body
}

async fn run(bulk: Bulk, state: &AppState, reader: Box<dyn AsyncRead + Send + Unpin>, writer: &LineWriter) {
    let Bulk { work, duplex, request_id, place, window, quota } = bulk;
    let caller = work.caller().clone();
    let mut source = LineSource::new(state, reader, duplex, &work, window, quota);
    let mut done = Done::default();
    let cut = async {
        let problem = caller.end().await;
        // Lines that were read before the revocation may be answered in this time.
        tokio::time::sleep(REVOKED_GRACE).await;
        problem
    };
    let ended = tokio::select! {
        ended = answer_all(work, &mut source, writer, &request_id, &mut done) => ended,
        problem = cut => Err(problem),
    };
    let stalled = ended.as_ref().is_err_and(|problem| problem.code == Code::Stalled);
    match ended.err().or_else(|| source.fatal()) {
        Some(problem) => {
            writer.push(&AnswerLine::Fatal { line: done.last_line, error: problem.into_body(&request_id) }, None);
            // Closing with unread bytes would reset the connection, and the `fatal` line might be lost.
            let courtesy = if stalled { state.limits().bulk_stall_timeout } else { leftover::TIME_MAX };
            let _ = tokio::time::timeout(courtesy, source.throw_away()).await;
        }
        None => writer.push(&AnswerLine::Summary { lines: source.lines(), summary: done.summary }, None),
    }
    drop(place);
}

/// The answers that were made so far.
#[derive(Default)]
struct Done {
    summary: Summary,
    last_line: u64,
}

/// Answers lines until they end, or until the client has not read the answers for too long.
async fn answer_all(
    work: DocumentWork,
    source: &mut LineSource,
    writer: &LineWriter,
    request_id: &str,
    done: &mut Done,
) -> Result<(), Problem> {
    let (collection, scores) = (work.collection().clone(), work.scores());
    let (begun, mut answered) = (AtomicU64::new(0), 0);
    let inputs = futures::stream::unfold(source, async |source| {
        let input = source.next().await?;
        begun.fetch_add(1, Ordering::Relaxed);
        Some((input, source))
    });
    let mut answers = std::pin::pin!(work.answers(inputs));
    while let Some((line, answer, room)) = writer.until(answers.next()).await {
        answered += 1;
        match &answer {
            DocumentAnswer::Verdict(verdict) => done.summary.verdict(verdict.verdict()),
            DocumentAnswer::Deleted { was_there, .. } => done.summary.deletion(*was_there),
            DocumentAnswer::Failed { .. } => done.summary.error(),
        }
        let answer = AnswerLine::of(line, answer, collection.name(), request_id).seen_with(scores);
        done.last_line = line;
        // If the client may be waiting for this answer before it sends more, the answer is sent at once.
        let last = begun.load(Ordering::Relaxed) == answered;
        if writer.write(&answer, room, last).await.is_err() {
            let detail = "the client did not read the answers; lines after this one were not answered";
            return Err(Problem::new(Code::Stalled, detail));
        }
    }
    Ok(())
}
