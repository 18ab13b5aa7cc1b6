//! Checks or inserts a single document, for requests that ask several collections (`?collections=`). The handlers of
//! single documents call this file.

use super::verdict_answer::{Wanted, page_bytes, told};
use crate::collections::{AskedCollections, CheckOptions, PrepareOptions, Purpose};
use crate::http::answer::Answer;
use crate::http::audited::{Audited, AuditedChecks};
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::dto::verdict::VerdictBody;
use crate::http::elsewhere::not_asked;
use crate::http::error::Problem;
use crate::http::options;
use crate::http::request::{DocumentBody, Subject};
use crate::http::stages::{Stage, Stages};
use crate::http::state::AppState;

/// Looks a document up in all collections of the request.
pub(super) async fn check(
    state: &AppState,
    caller: &Caller,
    asked: &AskedCollections,
    mut stages: Stages,
    subject: Subject,
) -> Result<Answer<VerdictBody>, Problem> {
    let Subject { id, payload_digest, query, content } = subject;
    let options = CheckOptions { payload_digest, ..options::check_options(&query, caller)? };
    let explain = options.explain;
    stages.end(Stage::Extract);
    let mut prepared = content.prepare_for_all(asked).await?;
    let page = prepared[0].take_page();
    stages.end(Stage::Sign);
    let mut room = state.answer_room(Wanted::of_check(&options).joint_bytes_max(asked))?;
    let bytes_max = room.json_bytes_max().saturating_sub(page_bytes(&page));
    let audited = AuditedChecks::of(state, caller, asked);
    let said = |at, verdict: &_, content| audited.checked(at, verdict, content);
    let mut joint = asked.check(id, prepared, options, bytes_max, said).await?;
    stages.decided(joint.verdict().times);
    joint.verdict_mut().page = page;
    room.is_made(joint.bytes());
    Ok(told(asked.own(), caller, &stages, explain, joint, room))
}

/// Inserts a document into the collection of the path, and then looks it up in the other collections.
pub(super) async fn insert(
    state: &AppState,
    caller: &Caller,
    asked: &AskedCollections,
    mut stages: Stages,
    body: DocumentBody,
) -> Result<Answer<VerdictBody>, Problem> {
    let DocumentBody { document, query, when_full, mut room } = body;
    let insert = options::insert_options(&query, caller)?;
    let options = insert.options();
    let id = document.required_id()?;
    state.sources().take(asked.own().name(), insert.source(&document.attached))?;
    body::fit_asked_content(&mut room, &document.content, asked, Purpose::Insert)?;
    stages.end(Stage::Extract);
    let prepare = PrepareOptions { when_full, ranks: false, purpose: Purpose::Insert };
    let mut prepared = asked.prepare(document.content, prepare).await?;
    let (others, mut own) = (prepared.split_off(1), prepared.remove(0));
    let page = own.take_page();
    let attached = insert.attached(document.attached, page.as_deref())?;
    stages.end(Stage::Sign);
    let others_options = insert.elsewhere(attached.capture.digest.clone());
    let mut answer_room = state.answer_room(Wanted::of_insert(options, &attached).joint_bytes_max(asked))?;
    let bytes_max = answer_room.json_bytes_max().saturating_sub(page_bytes(&page));
    let content = own.content();
    let ticket = asked.own().insert_within(id, attached, own, options, bytes_max).await?;
    stages.decided(ticket.lookup_times());
    let own_bytes = ticket.json_bytes();
    // The audit log gets the decision even if the client leaves before the other collections are asked.
    let durable = Audited::of(state, caller, asked.own()).inserted(ticket, content);
    let audited = AuditedChecks::of(state, caller, asked);
    let said = |at, verdict: &_, content| audited.checked(at + 1, verdict, content);
    // These lookups do not hold the decision lock. While they run, the write becomes durable.
    let left = bytes_max.saturating_sub(own_bytes);
    let elsewhere = asked.elsewhere(others, others_options, left, said).await;
    answer_room.is_made(own_bytes + page_bytes(&page) + elsewhere.bytes());
    stages.end(Stage::Elsewhere);
    let verdict = durable.await?;
    stages.end(Stage::Commit);
    not_asked(&elsewhere);
    let mut joint = asked.inserted(verdict, elsewhere);
    joint.verdict_mut().page = page;
    Ok(told(asked.own(), caller, &stages, options.explain, joint, answer_room))
}
