//! Stores which request a task works on, so that all lines that the task logs name the request. This costs nothing
//! until a line is written. A span of `tracing` would write its fields for every request. Knows nothing of HTTP.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::trace::{SpanIds, Trace};

thread_local! {
    /// The request of the task that runs now.
    static CURRENT: RefCell<Option<Arc<RequestLabels>>> = const { RefCell::new(None) };
}

/// The id of a request. It is stored inline, because each request has an id and an allocation would cost more.
#[derive(Clone, Debug)]
pub struct ShortId {
    bytes: [u8; ShortId::BYTES_MAX],
    len: u8,
}

impl ShortId {
    pub const BYTES_MAX: usize = 128;

    /// Returns an id with this text. Characters beyond the largest length are left out.
    pub fn new(text: impl fmt::Display) -> Self {
        let mut id = Self { bytes: [0; Self::BYTES_MAX], len: 0 };
        // An error means that the text did not fit completely.
        let _ = write!(id, "{text}");
        id
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len.into()]).expect("only whole characters are written")
    }
}

impl fmt::Write for ShortId {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = usize::from(self.len);
        let fits = text.floor_char_boundary(Self::BYTES_MAX - len);
        self.bytes[len..len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits as u8;
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The fields that name a request in lines of the log. No value has a character that JSON escapes.
#[derive(Debug)]
pub struct RequestLabels {
    pub request_id: ShortId,
    pub method: &'static str,
    pub route: &'static str,
    /// The trace that the request belongs to.
    pub trace: Option<Trace>,
}

impl RequestLabels {
    fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let trace = self.trace.as_ref().map(|trace| ("trace_id", trace.id.as_str()));
        [("method", self.method), ("request_id", self.request_id.as_str()), ("route", self.route)]
            .into_iter()
            .chain(trace)
    }
}

/// Does the work of a request. All lines that the work logs on its own task name the request.
pub fn within<F: Future>(labels: Arc<RequestLabels>, work: F) -> Within<F> {
    Within { labels: Some(labels), work }
}

/// Passes the request of this task on to work that is about to be spawned.
pub fn carried<F: Future>(work: F) -> Within<F> {
    Within { labels: CURRENT.with_borrow(Clone::clone), work }
}

pin_project! {
    /// The future of [`within`] and [`carried`]. An async block would reserve memory for the work twice, and move the
    /// work.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Within<F> {
        labels: Option<Arc<RequestLabels>>,
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _left = Entered::new(this.labels);
        this.work.poll(cx)
    }
}

/// Returns the id of the request that this task works on.
pub fn current_id() -> Option<String> {
    CURRENT.with_borrow(|labels| labels.as_ref().map(|labels| labels.request_id.as_str().to_owned()))
}

/// Returns the span of the request that this task works on, if the request belongs to a trace.
pub fn current_trace() -> Option<SpanIds> {
    CURRENT.with_borrow(|labels| labels.as_ref()?.trace.as_ref().map(|trace| trace.span))
}

/// Sets the request that the thread works on while a task runs. Afterwards, the earlier request is set again.
struct Entered<'a>(&'a mut Option<Arc<RequestLabels>>);

impl<'a> Entered<'a> {
    fn new(labels: &'a mut Option<Arc<RequestLabels>>) -> Self {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, labels));
        Self(labels)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}

/// Adds the request to the fields of human-readable lines.
#[derive(Default)]
pub(super) struct Readable(DefaultFields);

impl<'writer> FormatFields<'writer> for Readable {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        self.0.format_fields(writer.by_ref(), fields)?;
        CURRENT.with_borrow(|labels| {
            let fields = labels.iter().flat_map(|labels| labels.fields());
            fields.flat_map(|(name, value)| [" ", name, "=", value]).try_for_each(|part| writer.write_str(part))
        })
    }
}

/// Adds the request to lines of JSON, as the object `span`.
pub(super) struct Json<E>(pub(super) E);

impl<S, N, E> FormatEvent<S, N> for Json<E>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    E: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(labels) = CURRENT.with_borrow(Clone::clone) else {
            return self.0.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(line.trim_end().strip_suffix('}').ok_or(fmt::Error)?)?;
        writer.write_str(",\"span\":{")?;
        for (at, (name, value)) in labels.fields().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            [comma, "\"", name, "\":\"", value, "\""].into_iter().try_for_each(|part| writer.write_str(part))?;
        }
        writer.write_str("}}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(id: &str) -> Arc<RequestLabels> {
        Arc::new(RequestLabels { request_id: ShortId::new(id), method: "GET", route: "/test", trace: None })
    }

    #[tokio::test]
    async fn each_task_has_its_own_request() {
        let id = async {
            let before = current_id();
            tokio::task::yield_now().await;
            assert_eq!(current_id(), before, "other tasks have run since");
            before
        };
        let inner = async { tokio::spawn(carried(async { current_id() })).await.unwrap() };
        let inner = async { within(labels("inner"), inner).await };
        let outer = async { (inner.await, current_id()) };
        let outer = async { within(labels("outer"), outer).await };
        let (outer, alone) = futures::join!(outer, id);
        assert_eq!(outer, (Some("inner".to_owned()), Some("outer".to_owned())));
        assert_eq!((alone, current_id()), (None, None));
    }

    #[test]
    fn an_id_keeps_its_text_up_to_its_longest() {
        assert_eq!(ShortId::new("a-1").as_str(), "a-1");
        let long = "é".repeat(100);
        assert_eq!(ShortId::new(&long).as_str(), "é".repeat(64));
        assert_eq!(ShortId::new(format_args!("x{long}")).as_str(), format!("x{}", "é".repeat(63)));
    }

    #[test]
    fn a_panic_leaves_the_thread_without_a_request() {
        let panics = async { within(labels("x"), async { panic!("expected") }).await };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| futures::executor::block_on(panics)));
        assert!(caught.is_err() && current_id().is_none());
    }
}
