//! Counts what one request allocates, in hapax and in a bare server that parses the same JSON. This is a binary with a
//! single test, because it counts the calls of its own allocator.

#![allow(clippy::print_stdout)] // figures, shown when it fails
#![allow(dead_code, unreachable_pub)] // of the support

#[path = "it/support/library.rs"]
mod library;
#[path = "it/support/local.rs"]
mod local;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;

/// The most allocations of a check that finds nothing, beyond those of the bare server. In an earlier version, a check
/// had 26 more.
const MORE_MAX: u64 = 8;
const WARM_UP: u64 = 300;
const REQUESTS: u64 = 200;
const ROUNDS: u64 = 5;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread is the client's thread.
    static IS_CLIENT: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !IS_CLIENT.get() {
        ALLOCATIONS.fetch_add(1, Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`, which is also that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller passes a pointer and layout from `alloc`, which come from `System`.
        unsafe { System.realloc(ptr, layout, bytes) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller passes a pointer and layout from `alloc`, which come from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(serde::Deserialize)]
struct Document {
    text: String,
}

async fn bare(Json(document): Json<Document>) -> Json<&'static str> {
    std::hint::black_box(document.text);
    Json("unique")
}

/// Starts the bare server, which runs until the process ends.
fn start_bare() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, Router::new().route("/{*path}", post(bare))).await.unwrap();
        });
    });
    address
}

/// Returns the allocations of one request: the fewest of several rounds, because other threads may work meanwhile.
fn allocations(address: SocketAddr, target: &str) -> u64 {
    let words: Vec<String> = (0..300).map(|word| format!("word{word}")).collect();
    let body = json!({ "text": words.join(" ") }).to_string();
    let head = format!(
        "POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = head + &body;
    let mut stream = TcpStream::connect(address).unwrap();
    let mut ask = |times: u64| {
        for _ in 0..times {
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = vec![0; 64 << 10];
            let bytes = stream.read(&mut answer).unwrap();
            let answer = String::from_utf8_lossy(&answer[..bytes]);
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("unique"), "{answer}");
        }
    };
    ask(WARM_UP);
    let rounds = (0..ROUNDS).map(|_| {
        let before = ALLOCATIONS.load(Relaxed);
        ask(REQUESTS);
        (ALLOCATIONS.load(Relaxed) - before) / REQUESTS
    });
    rounds.min().unwrap()
}

#[test]
fn a_check_allocates_little_more_than_a_bare_server() {
    IS_CLIENT.set(true);
    let dir = library::dir();
    let mut setup = local::Setup::new(&dir);
    setup.workers = Some(1);
    let server = setup.start();
    let hapax = allocations(server.address, "/v1/collections/default/check");
    let bare = allocations(start_bare(), "/v1/collections/default/check");
    println!("allocations of a request: {hapax}, of the bare server {bare}");
    assert!(hapax <= bare + MORE_MAX, "{hapax} allocations, {} more than the bare server", hapax - bare);
}
