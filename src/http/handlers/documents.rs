//! Handlers for single documents and for lists of ids.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, TryStreamExt};

use super::pages::{ENVELOPE_BYTES, PAGE_DEFAULT, PAGE_MAX};
use super::several;
use super::verdict_answer::{Wanted, page_bytes, told};
use crate::collections::{
    CheckOptions, Collection, CollectionError, Cursor, DocumentsPage, ListedJob, PrepareOptions, Purpose,
};
use crate::http::answer::{Answer, scarce};
use crate::http::audited::Audited;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::dto::document::{
    self, Deleted, DocumentPage, DocumentRecord, DocumentWithText, FoundDocuments, LabelCount, LabelPage,
};
use crate::http::dto::job::JobBody;
use crate::http::dto::statistics::StatisticsPage;
use crate::http::dto::verdict::VerdictBody;
use crate::http::error::Problem;
use crate::http::options;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::{DocumentBody, JsonText, Subject, Target, Targets};
use crate::http::stages::{Stage, Stages};
use crate::http::state::AppState;
use crate::types::{DocId, Document, InvalidLabel, Job, Label, ScopeTerm, StoredText, Verdict, json_bytes};

/// How many records are read concurrently.
const READS_AT_ONCE: usize = 16;
/// The memory that is reserved at first for an answer with a text of unknown length, in bytes of JSON.
const TEXT_BYTES_USUAL: usize = 64 * 1024;

/// `POST …/check`
pub async fn check(
    State(state): State<AppState>,
    caller: Caller,
    Targets { own: collection, others }: Targets,
    mut stages: Stages,
    subject: Subject,
) -> Result<Answer<VerdictBody>, Problem> {
    if let Some(asked) = others.asked(&collection, 1) {
        return Box::pin(several::check(&state, &caller, &asked, stages, subject)).await;
    }
    let Subject { id, payload_digest, query, content } = subject;
    let options = CheckOptions { payload_digest, ..options::check_options(&query, &caller)? };
    stages.end(Stage::Extract);
    let mut prepared = content.prepare(&collection, Purpose::Check, false).await?;
    let page = prepared.take_page();
    stages.end(Stage::Sign);
    let explain = options.explain;
    let mut room = state.answer_room(Wanted::of_check(&options).bytes_max())?;
    let (content, bytes_max) = (prepared.content(), room.json_bytes_max().saturating_sub(page_bytes(&page)));
    let verdict = collection.check_within(id, prepared, options, bytes_max).await?;
    stages.decided(verdict.times);
    Audited::of_check(&state, &caller, &collection).checked(&verdict, content);
    let verdict = Verdict { page, ..verdict };
    room.is_made(verdict.bytes());
    Ok(told(&collection, &caller, &stages, explain, verdict.into(), room))
}

/// `POST …/documents`
pub async fn insert(
    State(state): State<AppState>,
    caller: Caller,
    Targets { own: collection, others }: Targets,
    mut stages: Stages,
    body: DocumentBody,
) -> Result<Answer<VerdictBody>, Problem> {
    if let Some(asked) = others.asked(&collection, 1) {
        return Box::pin(several::insert(&state, &caller, &asked, stages, body)).await;
    }
    let DocumentBody { document, query, when_full, mut room } = body;
    let asked = options::insert_options(&query, &caller)?;
    let options = asked.options();
    let id = document.required_id()?;
    state.sources().take(collection.name(), asked.source(&document.attached))?;
    body::fit_content(&mut room, &document.content, &collection, Purpose::Insert)?;
    let prepare = PrepareOptions { when_full, ranks: false, purpose: Purpose::Insert };
    stages.end(Stage::Extract);
    let mut prepared = collection.prepare_with(document.content, prepare).await?;
    let page = prepared.take_page();
    let attached = asked.attached(document.attached, page.as_deref())?;
    stages.end(Stage::Sign);
    let mut answer_room = state.answer_room(Wanted::of_insert(options, &attached).bytes_max())?;
    let bytes_max = answer_room.json_bytes_max().saturating_sub(page_bytes(&page));
    let content = prepared.content();
    let ticket = collection.insert_within(id, attached, prepared, options, bytes_max).await?;
    answer_room.is_made(ticket.json_bytes() + page_bytes(&page));
    stages.decided(ticket.lookup_times());
    let verdict = Audited::of(&state, &caller, &collection).inserted(ticket, content).await?;
    stages.end(Stage::Commit);
    let verdict = Verdict { page, ..verdict };
    Ok(told(&collection, &caller, &stages, options.explain, verdict.into(), answer_room))
}

/// `GET …/documents`: the document of `?id=`, or a page of all documents.
pub async fn read(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
    quota: Quota,
) -> Result<Response, Problem> {
    quota.take_documents(1)?;
    let with_text = query.choice("with", &[("none", false), ("text", true)])?;
    // `limit` is allowed together with an `id`, because generated clients always send the default. It is then checked,
    // but has no effect.
    let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    if let Some(id) = query.id()? {
        if let Some(of_pages) = ["cursor", "label"].into_iter().find(|name| query.get(name).is_some()) {
            return Err(Problem::invalid(of_pages, "cannot be combined with `id`; it is only for lists of documents"));
        }
        if with_text {
            return read_with_text(&state, &collection, id).await;
        }
        let document = collection.document(&id).await?;
        let document = document.ok_or(CollectionError::NoSuchDocument { id })?;
        return Ok(Json(DocumentRecord::from(document)).into_response());
    }
    if with_text {
        return Err(Problem::invalid("with", "`text` needs an `id`; lists of documents have no texts"));
    }
    let after = query.get("cursor").map(Cursor::parse).transpose()?;
    let labelled = |text: &str| Ok(ScopeTerm { label: Label::parse(text)?, lacks: false });
    let scope = options::scope(&query, "label", labelled)?.map(Arc::new);
    let mut room = state.answer_room(limit * Document::BYTES_MAX)?;
    let DocumentsPage { documents, next } =
        collection.documents_within(scope, after, limit, room.json_bytes_max()).await?;
    room.is_made(ENVELOPE_BYTES + documents.iter().map(Document::bytes).sum::<usize>());
    quota.charge_rest(documents.len() as u64);
    let next_cursor = next.map(|next| next.to_string());
    let documents = documents.into_iter().map(DocumentRecord::from).collect();
    Ok(Answer::new(DocumentPage { documents, next_cursor }, room).into_response())
}

/// `GET …/labels`: the labels that documents have, and how many documents have each label.
pub async fn labels(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
) -> Result<Answer<LabelPage>, Problem> {
    let LabelsAsked { name, after, limit } = LabelsAsked::of(&query)?;
    let mut room = state.answer_room(limit * LabelCount::BYTES_MAX)?;
    // Reads one label more than the page shows, to find out whether there is another page.
    let labels = collection.labels(name, after.as_ref(), limit + 1)?;
    let next_cursor = labels.get(limit).map(|_| labels[limit - 1].0.as_str().to_owned());
    let counted: Vec<LabelCount> =
        labels.iter().take(limit).map(|(label, documents)| LabelCount::new(label, *documents)).collect();
    room.is_made(ENVELOPE_BYTES + counted.len() * LabelCount::BYTES_MAX);
    Ok(Answer::new(LabelPage { labels: counted, next_cursor }, room))
}

/// `GET …/statistics`: how often each outcome of an insertion occurred, for all documents and for each label.
pub async fn statistics(
    State(state): State<AppState>,
    Target(collection): Target,
    query: Query,
) -> Result<Answer<StatisticsPage>, Problem> {
    let LabelsAsked { name, after, limit } = LabelsAsked::of(&query)?;
    let mut room = state.answer_room(limit * StatisticsPage::LABEL_BYTES_MAX)?;
    let labels = collection.label_statistics(name, after.as_ref(), limit + 1)?;
    room.is_made(ENVELOPE_BYTES + labels.len().min(limit) * StatisticsPage::LABEL_BYTES_MAX);
    Ok(Answer::new(StatisticsPage::new(collection.statistics()?, labels, limit), room))
}

/// The parameters of a page of labels or statistics.
struct LabelsAsked<'a> {
    name: Option<&'a str>,
    after: Option<Label>,
    limit: usize,
}

impl<'a> LabelsAsked<'a> {
    fn of(query: &'a Query) -> Result<Self, Problem> {
        let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
        let after = query.get("cursor").map(Label::parse).transpose();
        let after = after.map_err(|_| Problem::invalid("cursor", "is not a cursor from a page of labels"))?;
        let name = query.get("name");
        if name.is_some_and(|name| !Label::is_name(name)) {
            return Err(Problem::invalid("name", InvalidLabel::Name.to_string()));
        }
        Ok(Self { name, after, limit })
    }
}

/// Answers with a document and its text. At first, reserves enough memory for most texts. If the text is longer, its
/// length is known after the first attempt, and the second attempt reserves that much.
async fn read_with_text(state: &AppState, collection: &Collection, id: DocId) -> Result<Response, Problem> {
    let mut wanted = TEXT_BYTES_USUAL;
    loop {
        let mut room = state.answer_room(wanted)?;
        let found = collection.document_with_text(&id, room.json_bytes_max()).await?;
        let (document, text) = found.ok_or_else(|| CollectionError::NoSuchDocument { id: id.clone() })?;
        let text = match text {
            StoredText::Whole(text) => Some(text),
            StoredText::Absent => None,
            StoredText::TooLong { bytes } => {
                wanted = more(bytes, wanted, state.whole_answer_bytes_max())?;
                continue;
            }
        };
        room.is_made(document.bytes() + text.as_deref().map_or(0, json_bytes));
        return Ok(Answer::new(DocumentWithText { record: document.into(), text }, room).into_response());
    }
}

/// Returns how much memory to reserve for an answer that needs `bytes`, after the memory that was reserved for `wanted`
/// bytes was too small.
fn more(bytes: usize, wanted: usize, max: usize) -> Result<usize, Problem> {
    match bytes {
        _ if bytes > max => Err(Problem::invalid(
            "with",
            format!(
                "must be `none`, because the text is too long: the answer would have at least {bytes} bytes, but may \
                 have at most {max}; raise `server.answer_bytes_max` and `server.answers_bytes_max`"
            ),
        )),
        // Memory is scarce, so less than `wanted` was reserved.
        _ if bytes <= wanted => Err(scarce()),
        _ => Ok(bytes),
    }
}

/// `DELETE …/documents`: the document of `?id=`, or all documents with the label of `?label=`.
pub async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Target(collection): Target,
    query: Query,
    quota: Quota,
) -> Result<Response, Problem> {
    let audited = Audited::of(&state, &caller, &collection);
    let id = query.id()?;
    let labels: Vec<&str> = query.all("label").collect();
    match (id, labels.as_slice()) {
        (Some(id), []) => {
            quota.take_documents(1)?;
            let ticket = collection.delete(id.clone()).await?;
            let was_there = audited.deleted(ticket, &id).await?;
            Ok(Json(Deleted { deleted: was_there.into() }).into_response())
        }
        (None, [label]) => {
            caller.require_all_scores("a deletion by label")?;
            let label = Label::parse(label).map_err(|error| Problem::invalid("label", error.to_string()))?;
            quota.take_documents(1)?;
            let ticket = collection.delete_labelled(label).await?;
            let deletion = audited.label_deleted(ticket).await?;
            quota.charge_rest(deletion.documents);
            let job =
                JobBody::new(collection.name().clone(), ListedJob { job: Job::DeleteLabel(deletion), waits: None });
            Ok((StatusCode::ACCEPTED, [(LOCATION, job.path())], Json(job)).into_response())
        }
        (None, []) => Err(Problem::invalid("id", "is required, or `label` to delete all documents with a label")),
        (None, _) => {
            Err(Problem::invalid("label", "is given more than once; documents are deleted by one label at a time"))
        }
        (Some(_), _) => Err(Problem::invalid("label", "cannot be combined with `id`")),
    }
}

/// `POST …/documents/get`
pub async fn get_many(
    State(state): State<AppState>,
    Target(collection): Target,
    quota: Quota,
    body: JsonText,
) -> Result<Answer<FoundDocuments>, Problem> {
    let ids = ids(&state, &quota, body).await?;
    let asked = ids.len();
    let mut room = state.answer_room(ENVELOPE_BYTES + asked * Document::BYTES_MAX)?;
    let read = |id: DocId| {
        let collection = collection.clone();
        async move {
            let document = collection.document(&id).await?;
            Ok::<_, Problem>((id, document))
        }
    };
    let mut found = FoundDocuments { documents: Vec::new(), missing: Vec::new(), omitted: None };
    let (mut bytes, mut answered) = (ENVELOPE_BYTES, 0);
    let mut records = futures::stream::iter(ids).map(read).buffered(READS_AT_ONCE);
    while let Some((id, document)) = records.try_next().await? {
        bytes += document.as_ref().map_or_else(|| 3 + id.json_bytes(), Document::bytes);
        if answered > 0 && bytes > room.json_bytes_max() {
            break;
        }
        answered += 1;
        match document {
            Some(document) => found.documents.push(document.into()),
            None => found.missing.push(id.as_str().to_owned()),
        }
    }
    found.omitted = Some(asked - answered).filter(|&omitted| omitted > 0).map(|omitted| omitted as u64);
    room.is_made(bytes);
    Ok(Answer::new(found, room))
}

/// `POST …/documents/delete`
pub async fn delete_many(
    State(state): State<AppState>,
    caller: Caller,
    Target(collection): Target,
    quota: Quota,
    body: JsonText,
) -> Result<Json<Deleted>, Problem> {
    // The deletions are decided one after another, and are made durable together.
    let audited = Audited::of(&state, &caller, &collection);
    let (mut answers, mut refused) = (Vec::new(), None);
    for id in ids(&state, &quota, body).await? {
        // Lets other tasks run. Without this, a thousand deletions that do not have to wait would block the thread.
        tokio::task::consume_budget().await;
        match collection.delete(id.clone()).await {
            Ok(ticket) => answers.push(audited.deleted(ticket, &id)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let mut deleted = 0;
    for answer in answers {
        match answer.await {
            Ok(was_there) => deleted += u64::from(was_there),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        None => Ok(Json(Deleted { deleted })),
        Some(error) if deleted == 0 => Err(error.into()),
        Some(error) => {
            let problem = Problem::from(error);
            let detail = format!("{}; {deleted} of the ids were deleted before that", problem.detail);
            Err(Problem { detail, ..problem })
        }
    }
}

/// Reads the ids. Each id counts as a document.
async fn ids(state: &AppState, quota: &Quota, body: JsonText) -> Result<Vec<DocId>, Problem> {
    let max = state.limits().batch_documents_max;
    let ids = body.parse(state, move |text| document::ids(text, max)).await?;
    quota.take_documents(ids.len())?;
    Ok(ids)
}
