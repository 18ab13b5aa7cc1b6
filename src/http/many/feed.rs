//! A bulk request's body -> pieces, as they arrive.
//! Limits the number of bytes, and how long a client may keep the server waiting for them. Knows nothing of lines.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncRead;
use tokio::time::timeout;

use super::shutdown::Shutdown;
use super::waited::Waited;
use crate::config::HttpLimits;
use crate::http::body::{self, Patience, Window};
use crate::http::error::{Code, Problem};
use crate::http::leftover;
use crate::http::quota::Quota;

/// The bytes of a request, as they arrive.
pub(super) struct Feed {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    buffer: BytesMut,
    bytes: u64,
    bytes_max: u64,
    idle_timeout: Duration,
    patience: Patience,
    quota: Quota,
    /// How many documents one line counts as: one for each collection that is asked.
    lookups: usize,
    /// Whether the last line was read without waiting for the client's limits, so that the wait is still due.
    owing: bool,
    _window: Window,
}

impl Feed {
    /// Reads nothing yet. `window` is the memory reserved for the decoder.
    pub(super) fn new(
        limits: &HttpLimits,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        duplex: bool,
        window: Window,
        quota: Quota,
    ) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            bytes: 0,
            bytes_max: if duplex { u64::MAX } else { limits.bulk_body_bytes_max },
            idle_timeout: limits.bulk_idle_timeout,
            patience: Patience::new(limits.request_timeout, limits.body_bytes_per_second_min),
            quota,
            lookups: 1,
            owing: false,
            _window: window,
        }
    }

    /// Returns the same feed for lines that are each looked up in this many collections.
    pub(super) fn asking(self, lookups: usize) -> Self {
        Self { lookups, ..self }
    }

    /// Returns the next piece; `None` at the end. A client that is `idle`, because it is between two lines, gets more
    /// time.
    pub(super) async fn next(&mut self, idle: bool, shutdown: &mut Shutdown) -> Result<Option<Bytes>, Problem> {
        if idle {
            self.patience.renew();
        }
        let left = if idle { self.idle_timeout } else { self.patience.left() };
        let mut piece = Waited::new(Box::pin(body::piece(&mut self.reader, &mut self.buffer)));
        let read = loop {
            let still = left.saturating_sub(piece.total());
            match shutdown.unless(timeout(still, &mut piece)).await? {
                Ok(read) => break Some(read),
                Err(_) if piece.total() >= left => break None,
                // For some of the time, this stream was not polled. That time does not count, so the wait continues.
                Err(_) => {}
            }
        };
        let waited = piece.total();
        drop(piece);
        let piece = read.ok_or_else(|| self.stalled(idle))?.map_err(|error| body::broken(&error))?;
        let Some(piece) = piece else { return Ok(None) };
        if !idle {
            self.patience.waited(waited, piece.len());
        }
        self.quota.charge_bytes(piece.len());
        self.bytes += piece.len() as u64;
        if self.bytes > self.bytes_max {
            let detail = format!(
                "the body is longer than {} bytes (`server.bulk_body_bytes_max`); ?duplex=true lifts this limit",
                self.bytes_max
            );
            return Err(Problem::new(Code::TooLarge, detail));
        }
        Ok(Some(piece))
    }

    /// If the last line did not wait for the client's limits, waits until they allow the next line.
    pub(super) async fn settle(&mut self, shutdown: &mut Shutdown) -> Result<(), Problem> {
        if std::mem::take(&mut self.owing) {
            shutdown.unless(self.quota.documents_due()).await?;
        }
        Ok(())
    }

    /// Counts a line, once the client's limits allow it.
    ///
    /// During the wait, the request holds only the memory that each request always has. A line that holds more
    /// (`holds_more`) does not wait; the line after it waits instead.
    pub(super) async fn pay_for_line(&mut self, holds_more: bool, shutdown: &mut Shutdown) -> Result<(), Problem> {
        self.owing = holds_more;
        if !holds_more {
            shutdown.unless(self.quota.documents_due()).await?;
        }
        self.quota.charge_documents(self.lookups);
        Ok(())
    }

    /// Waits until the client's limits allow more bytes.
    pub(super) async fn bytes_due(&mut self, shutdown: &mut Shutdown) -> Result<(), Problem> {
        shutdown.unless(self.quota.bytes_due()).await
    }

    /// Reads and discards the rest.
    pub(super) async fn throw_away(&mut self) {
        let mut seen = 0;
        while seen < leftover::BYTES_MAX
            && let Ok(Some(piece)) = body::piece(&mut self.reader, &mut self.buffer).await
        {
            self.quota.charge_bytes(piece.len());
            seen += piece.len();
        }
    }

    fn stalled(&self, idle: bool) -> Problem {
        let detail = match idle {
            true => format!("no bytes arrived for {} s", self.idle_timeout.as_secs_f64()),
            false => self.patience.exhausted(),
        };
        Problem::new(Code::Stalled, format!("{detail}; later lines were not read"))
    }
}
