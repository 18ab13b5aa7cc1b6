//! A request's body -> bytes, decompressed and counted.
//! Every bound holds on what comes out of the decompressor, so a small bomb is refused like a large body.
//! Knows nothing of what the bytes mean.

use std::sync::Arc;
use std::time::Duration;

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue};
use bytes::{Buf, Bytes, BytesMut};
use futures::TryStreamExt;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::deadline::Deadline;
use super::dto::document::Invalid;
use super::error::{Code, Problem};
use super::pace::{Paced, Sips};
use crate::collections::{Collection, Purpose};
use crate::config::HttpLimits;
use crate::telemetry::names;
use crate::types::{Content, SetElement};

/// Most memory one zstd frame may ask for, as a power of two: 8 MiB, what RFC 8878 (3.1.1.1.2) asks decoders to take.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes a semaphore permit of [`Budget`] stands for.
const UNIT: usize = 4096;
/// What counts as a small body.
const SMALL_BYTES_MAX: usize = 256 * 1024;
/// Bytes that a body is expected to have at least; more room is taken as it arrives.
const FIRST_BYTES: usize = 4 * 1024;
/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// Bytes of a streamed text that are in memory at once.
const SLICE_BYTES: usize = 256 * 1024;

/// What an element of a set takes: the place of its JSON, itself and its hash.
const ELEMENT_BYTES: usize = size_of::<&str>() + size_of::<SetElement>() + size_of::<u64>();

/// Room for bodies in memory, shared by all requests.
#[derive(Clone)]
pub(super) struct Budget {
    units: Arc<Semaphore>,
    units_max: usize,
    /// Units that large rooms leave.
    kept: usize,
    /// Who waits for room, one after another.
    waiting: Arc<Mutex<()>>,
    /// Told when room is given back.
    freed: Arc<Notify>,
}

/// Some room; given back when dropped.
pub(super) struct Room {
    permit: Option<OwnedSemaphorePermit>,
    budget: Budget,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        let units_max = (bytes / UNIT).clamp(1, u32::MAX as usize);
        let (waiting, freed) = (Arc::default(), Arc::default());
        Self { units: Arc::new(Semaphore::new(units_max)), units_max, kept: 0, waiting, freed }
    }

    /// Keeps an eighth of it for bodies of up to [`SMALL_BYTES_MAX`], as far as one of `largest` bytes still fits: large
    /// ones that do not move must not shut all others out.
    pub(super) fn keeping_some_for_small_ones(mut self, largest: usize) -> Self {
        self.kept = (self.units_max / 8).min(self.units_max.saturating_sub(largest / UNIT + 1));
        self
    }

    /// No room yet; [`Room::resize`] takes it.
    pub(super) fn room(&self) -> Room {
        Room { permit: None, budget: self.clone() }
    }

    /// Waits for room, for all of it at the most. Whoever waits must not hold any: others may wait for that. What comes
    /// free while one waits for more goes to small ones meanwhile.
    pub(super) async fn wait(&self, bytes: usize) -> Room {
        let mut room = self.room();
        let bytes = bytes.min(self.units_max * UNIT);
        if bytes <= SMALL_BYTES_MAX && room.resize(bytes).is_ok() {
            return room;
        }
        let _turn = self.waiting.lock().await;
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if room.resize(bytes).is_ok() {
                return room;
            }
            freed.await;
        }
    }
}

impl Room {
    pub(super) fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * UNIT
    }

    /// Makes it at most `bytes` long.
    pub(super) fn shrink(&mut self, bytes: usize) {
        self.resize(bytes.min(self.bytes())).expect("less than there is");
    }

    /// Makes it long enough for what `bytes` bytes are worked into, all there is at the most: alone, it is done.
    pub(super) fn fit(&mut self, bytes: usize) -> Result<(), Problem> {
        self.resize(bytes.min(self.budget.units_max * UNIT))
    }

    /// Makes it long enough for a content that is all there is left of a body, and for what it is prepared into.
    pub(super) fn fit_content(
        &mut self,
        content: &Content,
        collection: &Collection,
        purpose: Purpose,
    ) -> Result<(), Problem> {
        match content {
            Content::Text(text) => self.fit(text.len() + collection.shingle_bytes(purpose, text.len())),
            // Counted by its elements already.
            Content::Set(_) | Content::Signature { .. } => Ok(()),
        }
    }

    /// Makes it `bytes` long in all, or 503 where that is more than there is.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.div_ceil(UNIT);
        if let Some(permit) = self.permit.as_mut().filter(|_| wanted < held) {
            drop(permit.split(held - wanted));
            self.budget.freed.notify_waiters();
        } else if wanted > held {
            let others = self.budget.units_max.saturating_sub(wanted);
            let kept = if bytes > SMALL_BYTES_MAX { self.budget.kept.min(others) } else { 0 };
            let more = u32::try_from(wanted - held)
                .ok()
                .filter(|more| *more as usize + kept <= self.budget.units.available_permits())
                .and_then(|more| Arc::clone(&self.budget.units).try_acquire_many_owned(more).ok())
                .ok_or_else(|| Problem::new(Code::Overloaded, "the memory for request bodies is used up"))?;
            match &mut self.permit {
                Some(permit) => permit.merge(more),
                None => self.permit = Some(more),
            }
        }
        metrics::gauge!(names::HTTP_BUFFERED_BYTES).increment((wanted as f64 - held as f64) * UNIT as f64);
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        metrics::gauge!(names::HTTP_BUFFERED_BYTES).decrement((permit.num_permits() * UNIT) as f64);
        drop(permit);
        self.budget.freed.notify_waiters();
    }
}

/// A whole body, and the room it takes.
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    pub(super) room: Room,
}

/// The body as a stream of plain bytes that pauses after each piece, or 415 for an encoding that is not taken.
pub(super) fn decoded(headers: &HeaderMap, body: Body) -> Result<Box<dyn AsyncRead + Send + Unpin>, Problem> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => "identity",
        (Some(one), None) => one.to_str().unwrap_or("?"),
        (Some(_), Some(_)) => "several",
    };
    let raw = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    if encoding.eq_ignore_ascii_case("identity") {
        Ok(Box::new(Paced::new(raw)))
    } else if encoding.eq_ignore_ascii_case("gzip") {
        let mut decoder = GzipDecoder::new(Sips::new(raw));
        decoder.multiple_members(true);
        Ok(Box::new(Paced::new(decoder)))
    } else if encoding.eq_ignore_ascii_case("zstd") {
        let mut decoder = ZstdDecoder::with_params(Sips::new(raw), &[DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX)]);
        decoder.multiple_members(true);
        Ok(Box::new(Paced::new(decoder)))
    } else {
        Err(Problem::new(
            Code::UnsupportedMediaType,
            "the Content-Encoding must be gzip, zstd or identity, and one alone",
        ))
    }
}

/// What the decoder of a body may keep of what it has put out.
pub(super) fn window_bytes(headers: &HeaderMap) -> usize {
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        Some(encoding) if encoding.eq_ignore_ascii_case(b"zstd") => 1 << ZSTD_WINDOW_LOG_MAX,
        Some(encoding) if encoding.eq_ignore_ascii_case(b"gzip") => 1 << 16,
        _ => 0,
    }
}

/// What a raw text takes at the most: ill-formed bytes become three each where they are replaced.
pub(super) fn text_bytes(bytes: usize, invalid: Invalid) -> usize {
    match invalid {
        Invalid::Refuse => bytes,
        Invalid::Replace => 4 * bytes,
    }
}

/// What a document in JSON takes at the most while it is worked on: itself and its text, or the elements of its set,
/// which may be many times as long as the digit and the comma that each has here.
pub(super) async fn json_bytes(json: &[u8]) -> usize {
    let (mut elements, mut quoted, mut escaped) = (0, false, false);
    for piece in json.chunks(CHUNK) {
        for &byte in piece {
            elements += usize::from(byte == b',' && !quoted);
            if byte == b'"' && !escaped {
                quoted = !quoted;
            }
            escaped = quoted && byte == b'\\' && !escaped;
        }
        if json.len() > CHUNK {
            tokio::task::yield_now().await;
        }
    }
    2 * json.len() + elements * ELEMENT_BYTES
}

/// What a failed read of a body means.
pub(super) fn broken(error: &std::io::Error) -> Problem {
    // The client's own bytes are not quoted: the library's message says what is wrong with them.
    tracing::debug!(%error, "broken body");
    Problem::new(Code::MalformedBody, "the body broke off or its compression is broken")
}

/// Reads all of a body of at most `max` bytes.
///
/// What arrives puts off `deadline`; a client that sends nothing, or too slowly, is given up.
pub(super) async fn whole(
    headers: &HeaderMap,
    body: Body,
    limits: &HttpLimits,
    budget: &Budget,
    deadline: &Deadline,
) -> Result<Whole, Problem> {
    let max = limits.body_bytes_max;
    let mut patience = Patience::new(limits.request_timeout, limits.body_bytes_per_second_min);
    let announced = announced(headers);
    let mut reader = decoded(headers, body)?;
    let too_large = || Problem::new(Code::TooLarge, format!("a body has at most {max} bytes, after decompression"));
    let plain = !headers.contains_key(CONTENT_ENCODING);
    if plain && announced.is_some_and(|bytes| bytes > max as u64) {
        return Err(too_large());
    }
    // One byte over what is expected, so that the end is seen without growing once more. Room follows what has
    // arrived: a length that is only announced takes none of it from others.
    let whole = announced.filter(|_| plain).map_or(max, |bytes| bytes as usize) + 1;
    let (mut room, window_bytes) = (budget.room(), window_bytes(headers));
    let mut bytes = Vec::new();
    loop {
        if bytes.len() == bytes.capacity() {
            let wanted = (bytes.len() * 2).max(FIRST_BYTES).min(whole.max(bytes.len() + 1));
            // The decoder keeps what it has put out, up to its window.
            room.resize(wanted + wanted.min(window_bytes))?;
            bytes.reserve_exact(wanted - bytes.len());
        }
        let mut window = (&mut reader).take((bytes.capacity() - bytes.len()) as u64);
        let read = patience.wait(window.read_buf(&mut bytes)).await?;
        deadline.put_off();
        match read {
            0 => return Ok(Whole { bytes, room }),
            _ if bytes.len() > max => return Err(too_large()),
            _ => {}
        }
    }
}

/// A body in slices, of which one at a time is in memory: a streamed text, whose length tells nothing of what it takes.
pub(super) struct Slices {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What has arrived of the next slice.
    buffer: BytesMut,
    room: Room,
    /// All bytes that have arrived.
    seen: u64,
    bytes_max: u64,
    /// Bytes of a slice; fewer where a shorter length is announced.
    slice_bytes: usize,
    /// What the decoder may keep of what it has put out: counted like the slice, since a stream may be there for long.
    window_bytes: usize,
    patience: Patience,
    deadline: Deadline,
}

/// Some of a body.
pub(super) enum Slice {
    /// More follows.
    Full(Bytes),
    /// Nothing follows; may be empty.
    Last(Bytes),
}

impl Slice {
    /// Without `prefix`, where it begins so.
    pub(super) fn without_prefix(mut self, prefix: &[u8]) -> Self {
        let (Self::Full(bytes) | Self::Last(bytes)) = &mut self;
        if bytes.starts_with(prefix) {
            bytes.advance(prefix.len());
        }
        self
    }
}

impl Slices {
    /// Nothing has been read yet. What arrives puts off `deadline`.
    pub(super) fn new(
        headers: &HeaderMap,
        body: Body,
        limits: &HttpLimits,
        budget: &Budget,
        deadline: Deadline,
    ) -> Result<Self, Problem> {
        let bytes_max = limits.text_body_bytes_max;
        let reader = decoded(headers, body)?;
        let announced = announced(headers).filter(|_| !headers.contains_key(CONTENT_ENCODING));
        if announced.is_some_and(|bytes| bytes > bytes_max) {
            return Err(too_large(bytes_max));
        }
        // One byte over what is expected, so that the end is seen without growing once more.
        let slice_bytes = announced.map_or(SLICE_BYTES, |bytes| SLICE_BYTES.min(bytes as usize + 1));
        let patience = Patience::new(limits.request_timeout, limits.text_bytes_per_second_min);
        let window_bytes = window_bytes(headers);
        let (buffer, room) = (BytesMut::new(), budget.room());
        Ok(Self { reader, buffer, room, seen: 0, bytes_max, slice_bytes, window_bytes, patience, deadline })
    }

    /// The next slice; none after the last.
    pub(super) async fn next(&mut self) -> Result<Slice, Problem> {
        while self.buffer.len() < self.slice_bytes {
            if self.buffer.len() == self.buffer.capacity() {
                // Room follows what has arrived, and stays: the next slice takes the same memory.
                let wanted = (self.buffer.len() * 2).max(CHUNK).min(self.slice_bytes);
                self.room.resize((self.window_bytes + wanted).max(self.room.bytes()))?;
                self.buffer.reserve(wanted - self.buffer.len());
            }
            let read = self.patience.wait(self.reader.read_buf(&mut self.buffer)).await?;
            self.deadline.put_off();
            self.seen += read as u64;
            if self.seen > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            if read == 0 {
                return Ok(Slice::Last(self.buffer.split().freeze()));
            }
        }
        Ok(Slice::Full(self.buffer.split().freeze()))
    }

    /// All that follows `first`, and `first`, for work that needs it whole: at most `max` bytes.
    pub(super) async fn whole(mut self, first: Slice, max: usize) -> Result<Whole, Problem> {
        let (mut bytes, mut room) = (Vec::new(), self.room.budget.room());
        let mut slice = first;
        loop {
            let (Slice::Full(piece) | Slice::Last(piece)) = &slice;
            if bytes.len() + piece.len() > max {
                let detail = format!("a text to be compared exactly has at most {max} bytes, after decompression");
                return Err(Problem::new(Code::TooLarge, detail));
            }
            if bytes.len() + piece.len() > bytes.capacity() {
                let wanted = (bytes.len() + piece.len()).max(bytes.len() * 2).min(max);
                room.resize(wanted)?;
                bytes.reserve_exact(wanted - bytes.len());
            }
            bytes.extend_from_slice(piece);
            if let Slice::Last(_) = slice {
                return Ok(Whole { bytes, room });
            }
            slice = self.next().await?;
        }
    }

    /// The room that the last slice takes.
    pub(super) fn into_room(self) -> Room {
        self.room
    }
}

/// How long a client may yet keep us waiting: some time at a stretch, and on the whole what its bytes earn. One that
/// sends a byte now and then uses it up; one that sends for hours does not.
pub(super) struct Patience {
    left: Duration,
    max: Duration,
    bytes_per_second_min: u64,
}

impl Patience {
    pub(super) fn new(max: Duration, bytes_per_second_min: u64) -> Self {
        Self { left: max, max, bytes_per_second_min }
    }

    /// Waits for bytes, and returns how many there are.
    async fn wait(&mut self, bytes: impl Future<Output = std::io::Result<usize>>) -> Result<usize, Problem> {
        let begun = Instant::now();
        let read = tokio::time::timeout(self.left, bytes).await;
        let read = read.map_err(|_| Problem::new(Code::RequestTimeout, self.exhausted()))?;
        let bytes = read.map_err(|error| broken(&error))?;
        self.waited(begun.elapsed(), bytes);
        Ok(bytes)
    }

    /// How long the client may be waited for now.
    pub(super) fn left(&self) -> Duration {
        self.left
    }

    /// It was waited for, and sent so many bytes.
    pub(super) fn waited(&mut self, time: Duration, bytes: usize) {
        let earned = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_min as f64);
        self.left = (self.left.saturating_sub(time) + earned).min(self.max);
    }

    /// All that there was at first.
    pub(super) fn renew(&mut self) {
        self.left = self.max;
    }

    /// What is wrong when nothing is left.
    pub(super) fn exhausted(&self) -> String {
        format!(
            "no bytes arrived for {} s, or fewer than {} bytes a second",
            self.max.as_secs_f64(),
            self.bytes_per_second_min
        )
    }
}

fn too_large(bytes_max: u64) -> Problem {
    Problem::new(Code::TooLarge, format!("a text has at most {bytes_max} bytes, after decompression"))
}

/// The length the client announced.
pub(super) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the next piece; `None` at the end. What `buffer` has room for is used again once earlier pieces are dropped.
pub(super) async fn piece(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> std::io::Result<Option<Bytes>> {
    buffer.reserve(CHUNK);
    let read = reader.read_buf(buffer).await?;
    Ok((read > 0).then(|| buffer.split().freeze()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits(body_bytes_max: usize) -> HttpLimits {
        HttpLimits { body_bytes_max, ..crate::config::defaults().server.limits }
    }

    async fn read(encoding: &str, body: Vec<u8>, max: usize) -> Result<Vec<u8>, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
        let body =
            whole(&headers, Body::from(body), &limits(max), &Budget::new(64 << 20), &Deadline::after(SECOND)).await;
        body.map(|whole| whole.bytes).map_err(|problem| problem.code)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn plain_gzip_and_zstd_say_the_same() {
        let text = b"the same words again and again ".repeat(10_000);
        assert_eq!(read("identity", text.clone(), 1 << 20).await.unwrap(), text);
        assert_eq!(read("gzip", gzip(&text), 1 << 20).await.unwrap(), text);
        assert_eq!(read("zstd", zstd::encode_all(text.as_slice(), 3).unwrap(), 1 << 20).await.unwrap(), text);
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(read("gzip", two, 10).await.unwrap(), b"ab");
    }

    #[tokio::test]
    async fn the_limit_counts_what_comes_out() {
        let zeros = vec![0; 32 << 20];
        assert_eq!(read("gzip", gzip(&zeros), 1 << 20).await, Err(Code::TooLarge));
        assert_eq!(read("zstd", zstd::encode_all(zeros.as_slice(), 3).unwrap(), 1 << 20).await, Err(Code::TooLarge));
        assert_eq!(read("identity", zeros[..1000].to_vec(), 1000).await.unwrap().len(), 1000);
        assert_eq!(read("identity", zeros[..1001].to_vec(), 1000).await, Err(Code::TooLarge));
    }

    #[tokio::test]
    async fn a_zstd_window_of_a_gigabyte_is_refused() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(27).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(&vec![7; 1 << 20]).unwrap();
        assert_eq!(read("zstd", encoder.finish().unwrap(), 2 << 20).await, Err(Code::MalformedBody));
    }

    #[tokio::test]
    async fn broken_and_cut_compression_is_malformed() {
        let mut cut = gzip(b"some text");
        cut.truncate(cut.len() - 4);
        assert_eq!(read("gzip", cut, 1000).await, Err(Code::MalformedBody));
        assert_eq!(read("gzip", b"not gzip".to_vec(), 1000).await, Err(Code::MalformedBody));
        let mut cut = zstd::encode_all(&b"some text"[..], 3).unwrap();
        cut.truncate(cut.len() - 2);
        assert_eq!(read("zstd", cut, 1000).await, Err(Code::MalformedBody));
        assert_eq!(read("br", b"x".to_vec(), 1000).await, Err(Code::UnsupportedMediaType));
        assert_eq!(read("gzip, gzip", b"x".to_vec(), 1000).await, Err(Code::UnsupportedMediaType));
    }

    #[tokio::test]
    async fn bodies_share_one_budget_and_give_it_back() {
        let budget = Budget::new(64 * 1024);
        let (headers, later) = (HeaderMap::new(), Deadline::after(SECOND));
        let one = whole(&headers, Body::from(vec![1; 60_000]), &limits(1 << 20), &budget, &later).await;
        let two = whole(&headers, Body::from(vec![1; 60_000]), &limits(1 << 20), &budget, &later).await;
        assert!(one.is_ok());
        assert_eq!(two.err().unwrap().code, Code::Overloaded);
        drop(one);
        assert!(whole(&headers, Body::from(vec![1; 50_000]), &limits(1 << 20), &budget, &later).await.is_ok());
    }

    #[tokio::test]
    async fn a_document_counts_as_it_is_at_its_largest() {
        assert_eq!(json_bytes(br#"{"text":"a,b\",c,","id":"x"}"#).await, 2 * 28 + ELEMENT_BYTES);
        let set = format!("{{\"set\":[{}1]}}", "1,".repeat(100_000));
        assert_eq!(json_bytes(set.as_bytes()).await, 2 * set.len() + 100_000 * ELEMENT_BYTES);
        let budget = Budget::new(1 << 20);
        let mut room = budget.room();
        room.fit(1 << 30).unwrap_or_else(|problem| panic!("alone it is done: {problem:?}"));
        assert_eq!(budget.room().fit(1).err().unwrap().code, Code::Overloaded);
        room.shrink(1 << 19);
        assert!(budget.room().fit(1 << 19).is_ok());
    }

    /// What waits for much keeps nothing from those who want little, and gets it when it is there.
    #[tokio::test]
    async fn small_rooms_pass_a_large_one_that_waits() {
        let budget = Budget::new(8 << 20).keeping_some_for_small_ones(1 << 20);
        let held = budget.wait(2 << 20).await;
        let waiting = budget.clone();
        let mut large = tokio::spawn(async move { waiting.wait(6 << 20).await.bytes() });
        assert!(
            tokio::time::timeout(Duration::from_millis(20), &mut large).await.is_err(),
            "some is kept for small ones"
        );
        let small = budget.wait(SMALL_BYTES_MAX).await;
        drop(held);
        assert_eq!(large.await.unwrap(), 6 << 20);
        drop(small);
        assert_eq!(budget.wait(usize::MAX).await.bytes(), 8 << 20);
    }

    fn slices(body: Body, limits: &HttpLimits, budget: &Budget) -> Slices {
        Slices::new(&HeaderMap::new(), body, limits, budget, Deadline::after(SECOND)).unwrap()
    }

    #[tokio::test]
    async fn slices_are_all_of_a_body_in_the_same_memory() {
        let body: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        for piece in [1000, 65_536, 1_000_000] {
            let pieces: Vec<_> = body.chunks(piece).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
            let budget = Budget::new(SLICE_BYTES);
            let mut slices = slices(
                Body::from_stream(futures::stream::iter(pieces)),
                &crate::config::defaults().server.limits,
                &budget,
            );
            let (mut whole, mut places) = (Vec::new(), Vec::new());
            loop {
                let slice = slices.next().await.unwrap_or_else(|problem| panic!("{problem:?}"));
                let (Slice::Full(bytes) | Slice::Last(bytes)) = &slice;
                whole.extend_from_slice(bytes);
                if let Slice::Last(_) = slice {
                    break;
                }
                assert_eq!(bytes.len(), SLICE_BYTES);
                places.push(bytes.as_ptr());
            }
            assert!(whole == body, "in pieces of {piece}");
            assert!(places.len() == 3 && places.iter().all(|place| *place == places[0]), "{places:?}");
            drop(slices);
            assert_eq!(budget.units.available_permits(), budget.units_max);
        }
    }

    #[tokio::test]
    async fn bytes_earn_patience_up_to_what_there_was() {
        let mut patience = Patience::new(SECOND, 1000);
        let after = async |pause: u64, bytes: usize| {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok(bytes)
        };
        for _ in 0..10 {
            assert_eq!(patience.wait(after(20, 1000)).await, Ok(1000));
            assert_eq!(patience.left, patience.max);
        }
        assert_eq!(patience.wait(after(300, 1)).await, Ok(1));
        assert!(patience.left <= Duration::from_millis(701));
        let exhausted = patience.wait(after(60_000, 1_000_000)).await;
        assert_eq!(exhausted.map_err(|problem| problem.code), Err(Code::RequestTimeout));
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_timed_out() {
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let limits = HttpLimits { request_timeout: Duration::from_millis(20), ..limits(10) };
        let budget = Budget::new(1 << 20);
        let result = whole(&HeaderMap::new(), body, &limits, &budget, &Deadline::after(SECOND)).await;
        assert_eq!(result.err().unwrap().code, Code::RequestTimeout);
    }
}
