//! The server's stop, as a bulk request hears of it.

use futures::future::BoxFuture;

use crate::http::error::{Code, Problem};
use crate::http::state::AppState;

/// Resolves when the request's lines have to end.
pub(super) struct Shutdown(BoxFuture<'static, ()>);

impl Shutdown {
    /// Of a request; a duplex one may have no end of its own.
    pub(super) fn new(state: &AppState, duplex: bool) -> Self {
        let (draining, drain_timeout) = (state.draining().clone(), state.limits().drain_timeout);
        Self(Box::pin(async move {
            draining.cancelled().await;
            // A bounded request may still end by itself; an endless one will not.
            if !duplex {
                tokio::time::sleep(drain_timeout / 2).await;
            }
        }))
    }

    /// What comes by itself in time.
    pub(super) async fn unless<T>(&mut self, given: impl Future<Output = T>) -> Result<T, Problem> {
        tokio::select! {
            // First, because what is to be decoded is always ready.
            biased;
            () = &mut self.0 => {
                Err(Problem::new(Code::ShuttingDown, "the server is going down; later lines were not read"))
            }
            given = given => Ok(given),
        }
    }
}
