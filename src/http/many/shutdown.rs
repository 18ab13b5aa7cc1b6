//! Tells a bulk request to stop reading when the server stops, or when the request's key is no longer valid.

use futures::future::BoxFuture;

use crate::http::caller::Caller;
use crate::http::error::{Code, Problem};
use crate::http::state::AppState;

/// Resolves when the request must stop reading lines.
pub(super) struct Shutdown(BoxFuture<'static, Problem>);

impl Shutdown {
    /// Makes the signal for one request. A duplex request may never end by itself.
    pub(super) fn new(state: &AppState, caller: Caller, duplex: bool) -> Self {
        let (draining, drain_timeout) = (state.draining().clone(), state.limits().drain_timeout);
        let stop = async move {
            draining.cancelled().await;
            // A request that is not duplex may end by itself in this time. A duplex request will not.
            if !duplex {
                tokio::time::sleep(drain_timeout / 2).await;
            }
        };
        Self(Box::pin(async move {
            tokio::select! {
                problem = caller.end() => problem,
                () = stop => Problem::new(Code::ShuttingDown, "the server is shutting down; later lines were not read"),
            }
        }))
    }

    /// Waits for `given`, unless the request must stop first.
    pub(super) async fn unless<T>(&mut self, given: impl Future<Output = T>) -> Result<T, Problem> {
        tokio::select! {
            // The reason to stop is polled first. So the request stops even if `given` is ready at every call.
            biased;
            problem = &mut self.0 => Err(problem),
            given = given => Ok(given),
        }
    }
}
