//! A body of JSON lines -> a body of JSON lines, while it is still arriving.
//! Reading, working and writing go on side by side. What is not read by the client is kept up to a bound; then
//! reading stops; then, after a while, the stream is ended with a `fatal` line. Without a `summary` line at its
//! end an answer is not complete.

use axum::body::Body;
use futures::StreamExt;
use tokio::io::AsyncRead;
use tracing::Instrument;

use super::answer_line::AnswerLine;
use super::source::LineSource;
use super::work::{DocumentAnswer, DocumentWork};
use super::writer::{LineWriter, answers};
use crate::http::body::Room;
use crate::http::dto::summary::Summary;
use crate::http::dto::verdict::VerdictBody;
use crate::http::error::{Code, Problem};
use crate::http::leftover;
use crate::http::state::AppState;
use crate::http::stream_place::StreamPlace;

pub(crate) struct Bulk {
    /// What is done with each line.
    pub(crate) work: DocumentWork,
    /// Lifts the bounds on bytes and lines.
    pub(crate) duplex: bool,
    /// For the problems in it.
    pub(crate) request_id: String,
    /// Its place among the bulk requests.
    pub(crate) place: StreamPlace,
    /// The room that its decoder takes.
    pub(crate) window: Room,
}

/// Starts the work; the answer's body ends when it is done.
pub(crate) fn start(bulk: Bulk, state: &AppState, reader: Box<dyn AsyncRead + Send + Unpin>) -> Body {
    let limits = state.limits();
    let (writer, body) = answers(limits.bulk_answer_buffer_bytes_max, limits.bulk_stall_timeout);
    let state = state.clone();
    let run = async move {
        tokio::select! {
            // The client has gone: what is decided is kept, the rest is not begun.
            () = writer.gone() => tracing::debug!("bulk client left"),
            () = run(bulk, &state, reader, &writer) => {}
        }
    };
    tokio::spawn(run.in_current_span());
    body
}

async fn run(bulk: Bulk, state: &AppState, reader: Box<dyn AsyncRead + Send + Unpin>, writer: &LineWriter) {
    let Bulk { work, duplex, request_id, place, window } = bulk;
    let collection = work.collection().clone();
    let mut source = LineSource::new(state, reader, duplex, &work, window);
    let mut summary = Summary::default();
    let mut last_line = 0;
    let stalled = {
        let inputs = futures::stream::unfold(&mut source, async |source| Some((source.next().await?, source)));
        let mut answers = std::pin::pin!(work.answers(inputs));
        loop {
            let Some((line, answer, room)) = answers.next().await else { break false };
            last_line = line;
            let line = match answer {
                DocumentAnswer::Verdict(verdict) => {
                    summary.verdict(&verdict);
                    AnswerLine::Verdict { line, verdict: VerdictBody::new(collection.name(), verdict) }
                }
                DocumentAnswer::Deleted { id, was_there } => {
                    summary.deletion(was_there);
                    AnswerLine::Deleted { line, id: id.as_str().to_owned(), deleted: was_there.into() }
                }
                DocumentAnswer::Failed { id, problem } => {
                    summary.error();
                    let id = id.map(|id| id.as_str().to_owned());
                    AnswerLine::Error { line, id, error: problem.into_body(&request_id) }
                }
            };
            if writer.write(&line, room).await.is_err() {
                break true;
            }
        }
    };
    let fatal = if stalled {
        Some(Problem::new(Code::Stalled, "the answers were not read; what follows this line was not answered"))
    } else {
        source.fatal()
    };
    match fatal {
        Some(problem) => {
            writer.push(&AnswerLine::Fatal { line: last_line, error: problem.into_body(&request_id) }, None);
            // Closing on unread bytes would reset the connection, and the line be lost on its way.
            let courtesy = if stalled { state.limits().bulk_stall_timeout } else { leftover::TIME_MAX };
            let _ = tokio::time::timeout(courtesy, source.throw_away()).await;
        }
        None => writer.push(&AnswerLine::Summary { lines: source.lines(), summary }, None),
    }
    drop(place);
}
