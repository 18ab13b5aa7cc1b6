//! A server that can be written in an afternoon: gaoya's index behind a lock, in axum. It reads documents from stdin
//! before the first request, as one line of JSON each. Nothing is durable. Usage: hapax-compare-gaoya ADDRESS <
//! documents
//!
//! It uses gaoya well: the spec of hapax's default (words of five, 31 bands of 8 rows), two-byte slots, ids as numbers,
//! and a fast hasher.

mod server;

use std::io::BufRead;
use std::sync::{Arc, RwLock};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher16, SmallVecContainer};
use gaoya::text::whitespace_split;
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BANDS: usize = 31;
const ROWS: usize = 8;
const THRESHOLD: f64 = 0.8;
const WORDS: usize = 5;

#[derive(Deserialize)]
struct Document {
    id: Option<String>,
    text: String,
}

#[derive(Serialize)]
struct Match {
    id: String,
    similarity: f64,
}

#[derive(Serialize)]
struct Verdict {
    verdict: &'static str,
    stored: bool,
    matches: Vec<Match>,
}

struct Stored {
    index: MinHashIndex<u16, u32, SmallVecContainer<u32, 4>>,
    ids: Vec<String>,
}

struct Service {
    hasher: MinHasher16<ahash::RandomState>,
    stored: RwLock<Stored>,
}

impl Service {
    fn sign(&self, text: &str) -> Vec<u16> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&lower).collect();
        self.hasher.create_signature(words.windows(WORDS))
    }

    fn check(&self, signature: &[u16]) -> Vec<Match> {
        let stored = self.stored.read().expect("not poisoned");
        let found = stored.index.query_owned_return_similarity(signature);
        found
            .into_iter()
            .take(10)
            .map(|(number, similarity)| Match { id: stored.ids[number as usize].clone(), similarity })
            .collect()
    }

    fn insert(&self, id: String, signature: Vec<u16>) {
        let mut stored = self.stored.write().expect("not poisoned");
        let number = stored.ids.len() as u32;
        stored.ids.push(id);
        stored.index.insert(number, signature);
    }
}

fn main() -> std::io::Result<()> {
    let hasher = MinHasher16::new_with_hasher(BANDS * ROWS, ahash::RandomState::with_seeds(1, 2, 3, 4));
    let stored = Stored { index: MinHashIndex::new_index(BANDS, ROWS, THRESHOLD), ids: Vec::new() };
    let service = Arc::new(Service { hasher, stored: RwLock::new(stored) });
    for line in std::io::stdin().lock().lines() {
        let document: Document = serde_json::from_str(&line?)?;
        let signature = service.sign(&document.text);
        service.insert(document.id.unwrap_or_default(), signature);
    }
    let router = Router::new()
        .route("/v1/collections/{collection}/check", post(check))
        .route("/v1/collections/{collection}/documents", post(insert))
        .with_state(service);
    server::serve(router)
}

async fn check(State(service): State<Arc<Service>>, Json(document): Json<Document>) -> Json<Verdict> {
    Json(verdict(service.check(&service.sign(&document.text)), false))
}

async fn insert(
    State(service): State<Arc<Service>>,
    Json(document): Json<Document>,
) -> Result<Json<Verdict>, StatusCode> {
    let id = document.id.ok_or(StatusCode::UNPROCESSABLE_ENTITY)?;
    let signature = service.sign(&document.text);
    let found = service.check(&signature);
    let stored = found.is_empty();
    if stored {
        service.insert(id, signature);
    }
    Ok(Json(verdict(found, stored)))
}

fn verdict(matches: Vec<Match>, stored: bool) -> Verdict {
    Verdict { verdict: if matches.is_empty() { "unique" } else { "near_duplicate" }, stored, matches }
}
