//! A request's body -> slices. One slice is in memory at a time.
//! All limits apply to the decompressed bytes, so a small compressed body that expands to gigabytes is refused like a
//! large one.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::budget::{Budget, Room};
use super::decoded::{CHUNK, announced, decoded, window_bytes};
use super::long::LongWork;
use super::patience::Patience;
use super::whole::Whole;
use crate::config::HttpLimits;
use crate::cpu::CpuPool;
use crate::http::error::{Code, Problem};
use crate::http::notes::Notes;
use crate::http::quota::Arriving;

/// The size of a slice of a streamed text.
const SLICE_BYTES: usize = 256 * 1024;

/// A body in slices, one of which is in memory at a time. It is for streamed texts, which may be longer than the memory
/// for them.
pub(crate) struct Slices {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    /// The part of the next slice that has arrived.
    buffer: BytesMut,
    room: Room,
    seen: u64,
    bytes_max: u64,
    /// The size of a slice; smaller if the announced length is shorter.
    slice_bytes: usize,
    /// An upper bound on the output that the decoder keeps in memory, in bytes. Memory for this output is reserved
    /// together with the slice, because a stream may last for hours.
    window_bytes: usize,
    patience: Patience,
    notes: Notes,
    arriving: Arriving,
    work: LongWork,
    /// Whether work on the text has begun. From then on, the client's limits slow the stream down but do not end it.
    begun: bool,
}

/// A part of a body.
pub(crate) enum Slice {
    Full(Bytes),
    /// The end of the body; may be empty.
    Last(Bytes),
}

impl Slice {
    /// Removes `prefix` if the slice begins with it.
    pub(crate) fn without_prefix(mut self, prefix: &[u8]) -> Self {
        let (Self::Full(bytes) | Self::Last(bytes)) = &mut self;
        if bytes.starts_with(prefix) {
            bytes.advance(prefix.len());
        }
        self
    }
}

impl Slices {
    /// Reads nothing yet. Each arriving byte postpones the deadline of the request.
    pub(crate) fn new(
        headers: &HeaderMap,
        body: Body,
        limits: &HttpLimits,
        budget: &Budget,
        notes: Notes,
        arriving: Arriving,
        cpu: &CpuPool,
    ) -> Result<Self, Problem> {
        let bytes_max = limits.text_body_bytes_max;
        let reader = decoded(headers, body)?;
        let announced = announced(headers).filter(|_| !headers.contains_key(CONTENT_ENCODING));
        if announced.is_some_and(|bytes| bytes > bytes_max) {
            return Err(too_large(bytes_max));
        }
        // A slice has room for one byte more than announced, so that the end is found without a larger buffer.
        let slice_bytes = announced.map_or(SLICE_BYTES, |bytes| SLICE_BYTES.min(bytes as usize + 1));
        let patience = Patience::new(limits.request_timeout, limits.text_bytes_per_second_min);
        let window_bytes = window_bytes(headers);
        let (buffer, room) = (BytesMut::new(), budget.room());
        let (seen, begun, work) = (0, false, LongWork::new(cpu));
        Ok(Self {
            reader,
            buffer,
            room,
            seen,
            bytes_max,
            slice_bytes,
            window_bytes,
            patience,
            notes,
            arriving,
            work,
            begun,
        })
    }

    /// Must be called before the work on the first slice. Counts the bytes of this slice; returns 429 if the client's
    /// limit is reached.
    pub(crate) fn begin(&mut self) -> Result<(), Problem> {
        self.arriving.take()?;
        self.begun = true;
        Ok(())
    }

    /// Returns the next slice. Must not be called after `Last`.
    pub(crate) async fn next(&mut self) -> Result<Slice, Problem> {
        if self.begun {
            let deadline = self.notes.deadline();
            self.arriving.more_due(|| deadline.put_off()).await;
        }
        while self.buffer.len() < self.slice_bytes {
            if self.buffer.len() == self.buffer.capacity() {
                // The reservation grows with the bytes that have arrived. The next slice uses the same memory, so the
                // reservation is kept.
                let wanted = (self.buffer.len() * 2).max(CHUNK).min(self.slice_bytes);
                self.room.resize((self.window_bytes + wanted).max(self.room.bytes()))?;
                self.buffer.reserve(wanted - self.buffer.len());
            }
            let read = self.patience.wait(self.reader.read_buf(&mut self.buffer)).await?;
            self.notes.deadline().put_off();
            self.arriving.arrived(read);
            self.seen += read as u64;
            if self.seen > self.bytes_max {
                return Err(too_large(self.bytes_max));
            }
            self.work.of(self.seen)?;
            if read == 0 {
                return Ok(Slice::Last(self.buffer.split().freeze()));
            }
        }
        Ok(Slice::Full(self.buffer.split().freeze()))
    }

    /// Returns `first` and everything after it in one buffer of at most `max` bytes, for work that needs the whole
    /// text.
    pub(crate) async fn whole(mut self, first: Slice, max: usize) -> Result<Whole, Problem> {
        let (mut bytes, mut room) = (Vec::new(), self.room.another());
        let mut slice = first;
        loop {
            let (Slice::Full(piece) | Slice::Last(piece)) = &slice;
            if bytes.len() + piece.len() > max {
                let detail = format!(
                    "the text is longer than {max} bytes after decompression, the limit for texts that are read as a whole (`server.body_bytes_max`)"
                );
                return Err(Problem::new(Code::TooLarge, detail));
            }
            if bytes.len() + piece.len() > bytes.capacity() {
                let wanted = (bytes.len() + piece.len()).max(bytes.len() * 2).min(max);
                room.resize(wanted)?;
                bytes.reserve_exact(wanted - bytes.len());
            }
            bytes.extend_from_slice(piece);
            if let Slice::Last(_) = slice {
                return Ok(Whole { bytes: bytes.into(), room });
            }
            slice = self.next().await?;
        }
    }

    /// Returns the reservation of the last slice.
    pub(crate) fn into_room(self) -> Room {
        self.room
    }
}

fn too_large(bytes_max: u64) -> Problem {
    Problem::new(
        Code::TooLarge,
        format!("the text is longer than {bytes_max} bytes after decompression (`server.text_body_bytes_max`)"),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cpu::CpuConfig;
    use crate::http::deadline::Deadline;
    use crate::http::quota::Quota;

    const SECOND: Duration = Duration::from_secs(1);

    fn slices(body: Body, limits: &HttpLimits, budget: &Budget) -> Slices {
        let (notes, arriving) = (Notes::attached(&mut axum::http::Extensions::new()), Quota::default().arriving());
        notes.must_end(Deadline::after(SECOND));
        let cpu = CpuPool::new(CpuConfig { threads: 1, queue_max: 1, queue_delay_max: Duration::ZERO });
        Slices::new(&HeaderMap::new(), body, limits, budget, notes, arriving, &cpu).unwrap()
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
            assert!(budget.room().resize(SLICE_BYTES).is_ok(), "all room is given back");
        }
    }
}
