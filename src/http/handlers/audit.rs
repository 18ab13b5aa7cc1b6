//! The handler that searches the audit log.

use axum::extract::State;
use tokio_util::sync::CancellationToken;

use super::pages::{ENVELOPE_BYTES, PAGE_DEFAULT, PAGE_MAX};
use crate::audit::{Filter, LINE_BYTES_MAX, LinePlace, MOMENT_FORMS, OPS, PageLimits, moment};
use crate::http::answer::Answer;
use crate::http::dto::audit::DecisionPage;
use crate::http::error::{Code, Problem};
use crate::http::query::{Query, choice};
use crate::http::state::AppState;
use crate::types::VerdictKind;

/// The memory that is reserved for a line, in bytes of JSON. Most lines are much shorter.
const LINE_BYTES_USUAL: usize = 8 * 1024;

/// `GET /v1/audit`: the newest decisions that meet all conditions.
pub async fn search(State(state): State<AppState>, query: Query) -> Result<Answer<DecisionPage>, Problem> {
    let Some(log) = state.audit() else {
        return Err(Problem::new(Code::AuditOff, "this server has no audit log; set `audit.dir` and restart it"));
    };
    let filter = filter(&query)?;
    let lines = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    let before = query.get("cursor").map(|text| {
        LinePlace::parse(text).ok_or_else(|| Problem::invalid("cursor", "is not a cursor from a page of this kind"))
    });
    let before = before.transpose()?;
    let mut room = state.answer_room(2 * (LINE_BYTES_MAX + lines * LINE_BYTES_USUAL))?;
    let limits = PageLimits { lines, bytes: room.json_bytes_max() };
    let dir = log.dir().to_owned();
    // A search may read for seconds, so one runs at a time, on a thread of its own. It ends when the client leaves.
    let turn = state.admission().audit_turn().await;
    let left = CancellationToken::new();
    let _here = left.clone().drop_guard();
    let work = move || {
        let _turn = turn;
        crate::audit::search(&dir, &filter, before.as_ref(), limits, || !left.is_cancelled())
    };
    let failed = |cause: &dyn std::fmt::Display| Problem::internal(&format!("reading the audit log: {cause}"));
    let found = tokio::task::spawn_blocking(work).await.map_err(|error| failed(&error))?;
    let page = DecisionPage::new(found.map_err(|error| failed(&error))?);
    room.is_made(ENVELOPE_BYTES + page.bytes());
    Ok(Answer::new(page, room))
}

fn filter(query: &Query) -> Result<Filter, Problem> {
    let text = |name: &str| query.get(name).map(str::to_owned);
    let one_of = |name: &str, words: [&'static str; 4]| {
        let known = words.map(|word| (word, word));
        query.get(name).map(|text| choice(name, text, &known).map(str::to_owned)).transpose()
    };
    let at = |name: &str| {
        let read = |text| moment(text).ok_or_else(|| Problem::invalid(name, MOMENT_FORMS));
        query.get(name).map(read).transpose()
    };
    Ok(Filter {
        collection: text("collection"),
        id: text("id"),
        matched: text("matched"),
        key: text("key"),
        verdict: one_of("verdict", VerdictKind::ALL.map(VerdictKind::as_str))?,
        op: one_of("op", OPS)?,
        request_id: text("request_id"),
        since: at("since")?,
        until: at("until")?,
    })
}
