//! Requests of this process -> the answers of the routes, without sockets. Knows nothing of connections: there is no
//! client whose address, key or pace would matter.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::Response;
use tokio::sync::mpsc::Sender;
use tower::ServiceExt as _;

use super::caller::Caller;
use super::error::Problem;
use super::handlers::bulk;
use super::many::{DocumentWork, Group, GroupAnswers, start_groups};
use super::notes::Notes;
use super::query::Query;
use super::request::Targets;
use super::router::router;
use super::routes::ROUTES;
use super::state::AppState;

/// The routes of a server that only its own process asks.
pub struct InProcess {
    state: AppState,
    router: Router,
}

/// The media type of a body.
#[derive(Clone, Copy, Debug)]
pub enum BodyType {
    Json,
    Lines,
}

/// A whole answer.
#[derive(Debug)]
pub struct WholeAnswer {
    pub status: u16,
    pub text: String,
    /// How long to wait before the same request is sent again, if it was refused.
    pub retry_after: Option<Duration>,
}

impl InProcess {
    pub fn new(state: AppState) -> Self {
        Self { router: router(state.clone()), state }
    }

    /// Answers a request. `target` is a path with its query, percent-encoded.
    pub async fn ask(&self, method: Method, target: &str, of_type: BodyType, body: Vec<u8>) -> WholeAnswer {
        let of_type = match of_type {
            BodyType::Json => "application/json",
            BodyType::Lines => "application/x-ndjson",
        };
        let request = Request::builder().method(method).uri(target).header(CONTENT_TYPE, of_type);
        let request = request.body(Body::from(body)).expect("the target is percent-encoded");
        let Ok(answer) = self.router.clone().oneshot(request).await;
        whole(answer).await
    }

    /// Begins the work of one bulk request, whose lines are given in groups.
    pub async fn groups(&self, target: &str) -> Result<(Sender<Group>, GroupAnswers), WholeAnswer> {
        match self.work(target).await {
            Ok(work) => Ok(start_groups(work, &self.state)),
            Err(problem) => Err(whole(problem.render(Response::default(), "")).await),
        }
    }

    async fn work(&self, target: &str) -> Result<DocumentWork, Problem> {
        let request = Request::builder().uri(target).body(()).expect("the target is percent-encoded");
        let (mut parts, ()) = request.into_parts();
        let route = ROUTES.iter().find(|route| route.streams && route.method == Method::POST);
        let allowed = route.expect("there is a bulk route").query;
        let query = Query::parse(parts.uri.query().unwrap_or_default(), allowed)?;
        query.clone().attach(&mut parts.extensions);
        Notes::attached(&mut parts.extensions).allow(Caller::anyone());
        let targets = Targets::from_request_parts(&mut parts, &self.state).await?;
        bulk::work(&self.state, Caller::anyone(), targets, &query)
    }
}

async fn whole(answer: Response) -> WholeAnswer {
    let status = answer.status().as_u16();
    let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    WholeAnswer { status, text, retry_after: retry_after.map(Duration::from_secs) }
}
