//! Handlers that begin merges, and show and stop jobs.

use std::cmp::Reverse;

use axum::Json;
use axum::extract::{RawPathParams, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};

use super::pages::{ENVELOPE_BYTES, PAGE_DEFAULT, PAGE_MAX};
use crate::collections::{Collection, ListedJob};
use crate::http::answer::{Answer, scarce};
use crate::http::audited::Audited;
use crate::http::caller::Caller;
use crate::http::dto::job::{JobBody, JobList, MergeInput, ReportPage, job_name, merge_input};
use crate::http::error::{Code, Problem};
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::{JsonText, OpenCollections, Target};
use crate::http::state::AppState;
use crate::keys::Scope;
use crate::types::{CollectionName, ID_JSON_BYTES_MAX, Job, OnExisting, Seq, fitting};

/// An upper bound on the size of a job as JSON, in bytes. A job has its label or the names of its collections, and may
/// have the reason why it waits.
const JOB_BYTES: usize = 2048;
/// The most bytes that a merge report takes as JSON, not counting the ids in it.
const REPORT_BYTES: usize = 512;

/// `POST /v1/collections/{collection}/merge`: 202 once the merge is on disk.
pub async fn merge(
    State(state): State<AppState>,
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    Target(collection): Target,
    quota: Quota,
    body: JsonText,
) -> Result<Response, Problem> {
    let MergeInput { from, on_duplicate, on_existing } = body.parse(&state, merge_input).await?;
    caller.require_for(Scope::Read, "a merge")?;
    if on_existing == OnExisting::Replace {
        caller.require_for(Scope::Delete, "`on_existing` = `replace`")?;
    }
    caller.require_use(&from)?;
    let from = collections.get(&from).await?;
    quota.take_documents(1)?;
    let audited = Audited::of(&state, &caller, &collection);
    let merge = audited.merge_begun(collection.merge(&from, on_duplicate, on_existing)?).await?;
    // If the merge has already merged documents, it was running before this request, and was counted when it began.
    if merge.merged() == 0 {
        quota.charge_rest(merge.source.documents);
    }
    let job = JobBody::new(collection.name().clone(), ListedJob { job: Job::Merge(merge), waits: None });
    Ok((StatusCode::ACCEPTED, [(LOCATION, job.path())], Json(job)).into_response())
}

/// `GET /v1/jobs`: the jobs of the open collections that the key may use, the newest first.
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    query: Query,
) -> Result<Answer<JobList>, Problem> {
    let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    let room = state.answer_room(limit * JOB_BYTES)?;
    let running = query.choice("state", &[("all", None), ("running", Some(true)), ("ended", Some(false))])?;
    let open = match query.get("collection") {
        Some(name) => {
            let name = CollectionName::new(name)?;
            caller.require_use(&name)?;
            vec![collections.get(&name).await?]
        }
        None => collections.open_ones(),
    };
    let mut found: Vec<(CollectionName, ListedJob)> = Vec::new();
    for collection in open.iter().filter(|collection| caller.may_use(collection.name())) {
        let jobs = collection.jobs()?.into_iter();
        let asked = jobs
            .filter(|listed| is_shown(&caller, &listed.job))
            .filter(|listed| running.is_none_or(|running| listed.job.is_running() == running));
        found.extend(asked.map(|job| (collection.name().clone(), job)));
    }
    found.sort_by_cached_key(|(name, ListedJob { job, .. })| (Reverse((job.accepted(), job.number())), name.clone()));
    found.truncate(limit);
    if found.len() * JOB_BYTES > room.json_bytes_max() {
        return Err(scarce());
    }
    let jobs = found.into_iter().map(|(name, listed)| JobBody::new(name, listed)).collect();
    Ok(Answer::new(JobList { jobs }, room))
}

/// Returns whether the key may see a job of a collection that it may use. A merge also names the collection that it
/// reads, so the key must be allowed to use that collection too.
fn is_shown(caller: &Caller, job: &Job) -> bool {
    match job {
        Job::Merge(merge) => caller.may_use(&merge.source.name),
        Job::DeleteLabel(_) => true,
    }
}

/// `GET /v1/jobs/{job}`
pub async fn read(
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    params: RawPathParams,
) -> Result<Json<JobBody>, Problem> {
    let (name, number) = named(&caller, &params)?;
    let listed = job_of(&caller, &collections.get(&name).await?, number)?;
    Ok(Json(JobBody::new(name, listed)))
}

/// `DELETE /v1/jobs/{job}`: returns the job, which has ended or will end soon.
pub async fn stop(
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    params: RawPathParams,
) -> Result<Json<JobBody>, Problem> {
    let (name, number) = named(&caller, &params)?;
    let collection = collections.get(&name).await?;
    if !matches!(job_of(&caller, &collection, number)?.job, Job::Merge(_)) {
        return Err(Problem::invalid("job", "must be a merge; a deletion by label cannot be stopped"));
    }
    collection.stop_merge(number).await;
    Ok(Json(JobBody::new(name, job_of(&caller, &collection, number)?)))
}

/// `GET /v1/jobs/{job}/reports`: the outcome of a merge for each document.
pub async fn reports(
    State(state): State<AppState>,
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    params: RawPathParams,
    query: Query,
    quota: Quota,
) -> Result<Answer<ReportPage>, Problem> {
    let (name, number) = named(&caller, &params)?;
    let collection = collections.get(&name).await?;
    let limit = query.integer("limit", PAGE_DEFAULT, 1..=PAGE_MAX)?;
    let no_cursor = |_| Problem::invalid("cursor", "is not a cursor from a page of reports");
    let after = query.get("cursor").map_or(Ok(0), str::parse).map_err(no_cursor)?;
    let after = i64::try_from(after).map_or(Seq(i64::MAX as u64), |_: i64| Seq(after));
    quota.take_documents(1)?;
    if !matches!(job_of(&caller, &collection, number)?.job, Job::Merge(_)) {
        return Err(Problem::invalid("job", "must be a merge; other jobs have no reports"));
    }
    let mut room = state.answer_room(limit * (REPORT_BYTES + 3 * ID_JSON_BYTES_MAX))?;
    let mut reports = collection.merge_reports(number, after, limit).await?;
    let bytes = |(_, report): &(Seq, String)| report.len() + 1;
    let fit = fitting(&reports, room.json_bytes_max().saturating_sub(ENVELOPE_BYTES), bytes);
    let more = reports.len() == limit || fit < reports.len();
    reports.truncate(fit);
    quota.charge_rest(reports.len() as u64);
    room.is_made(ENVELOPE_BYTES + reports.iter().map(bytes).sum::<usize>());
    Ok(Answer::new(ReportPage::new(reports, more), room))
}

fn named(caller: &Caller, params: &RawPathParams) -> Result<(CollectionName, Seq), Problem> {
    let job = params.iter().find(|(name, _)| *name == "job").map_or("", |(_, value)| value);
    let (name, number) = job_name(job)?;
    caller.require_use(&name)?;
    Ok((name, number))
}

fn job_of(caller: &Caller, collection: &Collection, number: Seq) -> Result<ListedJob, Problem> {
    let is_it = |listed: &ListedJob| listed.job.number() == number && is_shown(caller, &listed.job);
    let found = collection.jobs()?.into_iter().find(is_it);
    found.ok_or_else(|| {
        let detail = format!(
            "there is no job `{}.{}`; a collection keeps the last 100 jobs that have ended",
            collection.name(),
            number.0
        );
        Problem::new(Code::JobNotFound, detail)
    })
}
