//! A long body -> a file. The bytes are not kept in memory.

use std::fs::File;
use std::io;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::budget::Budget;
use super::decoded::{CHUNK, announced, decoded, window_bytes};
use super::patience::Patience;
use crate::config::HttpLimits;
use crate::http::deadline::Deadline;
use crate::http::error::{Code, Problem};
use crate::plain_file::is_full;

/// Writes all of a body to `file`. `room` returns an error if the disk has no space for more bytes. Arriving bytes
/// postpone `deadline`. A client that sends nothing, or sends too slowly, gets 408.
pub(crate) async fn spooled(
    headers: &HeaderMap,
    body: Body,
    (file, room): (File, impl Fn() -> Result<(), Problem>),
    limits: &HttpLimits,
    budget: &Budget,
    deadline: &Deadline,
) -> Result<(), Problem> {
    let max = limits.load_body_bytes_max;
    let too_large =
        || Problem::new(Code::TooLarge, format!("the file is longer than {max} bytes (`server.load_body_bytes_max`)"));
    let plain = !headers.contains_key(CONTENT_ENCODING);
    if plain && announced(headers).is_some_and(|bytes| bytes > max) {
        return Err(too_large());
    }
    let _window = budget.window(window_bytes(headers) + CHUNK)?;
    let mut patience = Patience::new(limits.request_timeout, limits.body_bytes_per_second_min);
    let (mut reader, mut file) = (decoded(headers, body)?, tokio::fs::File::from_std(file));
    let (mut piece, mut written) = (vec![0; CHUNK], 0);
    loop {
        let read = patience.wait(reader.read(&mut piece)).await?;
        deadline.put_off();
        if read == 0 {
            return file.flush().await.map_err(|error| unwritten(&error));
        }
        written += read as u64;
        if written > max {
            return Err(too_large());
        }
        room()?;
        file.write_all(&piece[..read]).await.map_err(|error| unwritten(&error))?;
    }
}

fn unwritten(error: &io::Error) -> Problem {
    if is_full(error) {
        Problem::new(Code::StorageFull, "there is no room on the disk for the file; nothing was stored")
    } else {
        Problem::internal(&format!("writing the file of a load: {error}"))
    }
}
