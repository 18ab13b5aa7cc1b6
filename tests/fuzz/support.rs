//! A server without sockets, for the targets that send it requests. The wiring is that of the tests.

#![allow(dead_code)]

#[path = "../it/support/library.rs"]
mod library;
#[path = "../it/support/local.rs"]
mod local;

use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use hapax::input::{Chunk, Wanted, read};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// The longest body that the server takes. Inputs can be longer.
pub const BYTES_MAX: usize = 4096;
/// The longest line of a bulk request that the server takes.
pub const LINE_BYTES_MAX: usize = 1024;
/// The most lines in a bulk request.
pub const LINES_MAX: u64 = 100;

/// The collections of all servers. They stay open until the process ends: if they were leaked with `mem::forget`,
/// AddressSanitizer would report them.
static OPEN: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());

/// A server with an empty collection.
pub struct Service {
    runtime: Runtime,
    router: Router,
    _dir: library::Dir,
}

impl Service {
    /// Makes a server that lives as long as the process.
    pub fn new() -> Self {
        let dir = library::dir();
        let setup = local::Setup::new(&dir).limits(|limits| {
            limits.body_bytes_max = BYTES_MAX;
            limits.text_body_bytes_max = BYTES_MAX as u64;
            limits.bulk_body_bytes_max = BYTES_MAX as u64;
            limits.bulk_line_bytes_max = LINE_BYTES_MAX;
            limits.bulk_lines_max = LINES_MAX;
        });
        let (state, collections) = setup.wire();
        OPEN.lock().unwrap().push(Box::new(collections));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, router: hapax::http::router(state), _dir: dir }
    }

    /// Posts a body in these pieces. Returns the status and the body of the answer.
    pub fn post(&self, target: &str, headers: &[(&str, &str)], pieces: Vec<Vec<u8>>) -> (u16, Vec<u8>) {
        let mut request = Request::builder().method("POST").uri(target).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Body::from_stream(futures::stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)));
        let router = self.router.clone();
        self.runtime.block_on(async {
            let answer = async {
                let response = router.oneshot(request.body(body).unwrap()).await.unwrap();
                (response.status().as_u16(), to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
            };
            tokio::time::timeout(Duration::from_secs(60), answer).await.expect("an answer")
        })
    }
}

/// Reads a file that is in memory, and passes its chunks to `take`. Returns whether the file was read to its end.
pub fn read_file(name: &str, bytes: &[u8], wanted: &Wanted, mut take: impl FnMut(Chunk)) -> bool {
    let read = read(Box::new(Cursor::new(bytes.to_vec())), name, 20, wanted, &mut |chunk| {
        for (_, reason) in &chunk.failures {
            assert!(reason.to_string().len() < 1000, "{reason}");
        }
        take(chunk);
        true
    });
    if let Err(error) = &read {
        assert!(error.to_string().len() < 4000, "{error}");
    }
    read.is_ok()
}

/// Cuts a body into pieces of about this length.
pub fn pieces(body: &[u8], len: u8) -> Vec<Vec<u8>> {
    body.chunks(usize::from(len) * 4 + 1).map(<[u8]>::to_vec).collect()
}

/// Removes what differs between two answers to the same request.
pub fn comparable(answer: &[u8]) -> Value {
    let mut answer: Value = serde_json::from_slice(answer).expect("an answer is JSON");
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("request_id");
    }
    answer
}
