//! Handlers that show jobs.

use axum::Json;
use axum::extract::RawPathParams;

use crate::http::caller::Caller;
use crate::http::dto::job::{JobBody, JobList, job_name};
use crate::http::error::{Code, Problem};
use crate::http::query::Query;
use crate::http::request::OpenCollections;
use crate::types::CollectionName;

const JOBS_DEFAULT: usize = 100;
const JOBS_MAX: usize = 1000;

/// `GET /v1/jobs`: those of the open collections that the key may use, the newest first.
pub async fn list(
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    query: Query,
) -> Result<Json<JobList>, Problem> {
    let limit = query.integer("limit", JOBS_DEFAULT, 1..=JOBS_MAX)?;
    let states = [("all", None), ("running", Some(true)), ("done", Some(false))];
    let running = query.choice("state", &states)?;
    let open = match query.get("collection") {
        Some(name) => {
            let name = CollectionName::new(name)?;
            caller.require_use(&name)?;
            vec![collections.get(&name).await?]
        }
        None => collections.open_ones(),
    };
    let mut found = Vec::new();
    for collection in open.iter().filter(|collection| caller.may_use(collection.name())) {
        let deletions = collection.label_deletions().into_iter();
        let asked = deletions.filter(|deletion| running.is_none_or(|running| deletion.ended.is_none() == running));
        found.extend(asked.map(|deletion| (collection.name().clone(), deletion)));
    }
    found.sort_by(|(a, x), (b, y)| y.accepted.cmp(&x.accepted).then_with(|| a.cmp(b)).then(y.number.cmp(&x.number)));
    let jobs = found.into_iter().take(limit).map(|(name, deletion)| JobBody::new(name, deletion));
    Ok(Json(JobList { jobs: jobs.collect() }))
}

/// `GET /v1/jobs/{job}`
pub async fn read(
    caller: Caller,
    OpenCollections(collections): OpenCollections,
    params: RawPathParams,
) -> Result<Json<JobBody>, Problem> {
    let job = params.iter().find(|(name, _)| *name == "job").map_or("", |(_, value)| value);
    let (name, number) = job_name(job)?;
    caller.require_use(&name)?;
    let collection = collections.get(&name).await?;
    let found = collection.label_deletions().into_iter().find(|deletion| deletion.number == number);
    let found = found.ok_or_else(|| {
        let detail = format!("there is no job `{job}`; a collection lists the last 100 jobs that have ended");
        Problem::new(Code::JobNotFound, detail)
    })?;
    Ok(Json(JobBody::new(name, found)))
}
