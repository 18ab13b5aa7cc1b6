//! The fastest server that axum allows: it parses the same JSON as hapax and answers a constant. `/sink` does not even
//! read the body, and so shows how much the load generator can send. Usage: hapax-compare-bare ADDRESS

mod server;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Deserialize)]
struct Document {
    #[expect(dead_code, reason = "it is parsed like the text")]
    id: Option<String>,
    text: String,
}

const ANSWER: &str = r#"{"verdict":"unique","complete":true,"collection":"default","stored":false,"matches":[]}"#;

fn main() -> std::io::Result<()> {
    let router = Router::new()
        .route("/v1/collections/{collection}/{verb}", post(document))
        .route("/sink", post(async |_: Bytes| answer()));
    server::serve(router)
}

async fn document(Json(document): Json<Document>) -> impl IntoResponse {
    std::hint::black_box(document.text);
    answer()
}

fn answer() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], ANSWER)
}
