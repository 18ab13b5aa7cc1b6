//! The trace that a request belongs to, and the ids of the spans in it.
//! In: the field `traceparent` of W3C Trace Context. Out: log lines with the target `hapax::trace`, one for each span
//! that has ended. Ids are made only if these lines are written or the client names a trace.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tracing::Level;

/// Writes the line of a span that has ended: its ids, its name, when it started, how long it took, and counts.
macro_rules! span_ended {
    ($ids:expr, $name:expr, $started:expr, $took:expr $(, $count:ident = $value:expr)* $(,)?) => {{
        let $crate::telemetry::trace::SpanIds { span_id, parent_span_id } = $ids;
        tracing::debug!(
            target: "hapax::trace",
            name = $name,
            span_id = %$crate::telemetry::trace::Hex(span_id),
            parent_span_id = parent_span_id.map(|id| tracing::field::display($crate::telemetry::trace::Hex(id))),
            started_unix_us = $crate::telemetry::trace::unix_us($started),
            duration_us = $took.as_secs_f64() * 1e6,
            $($count = $value,)*
            "span ended"
        );
    }};
}

pub(crate) use span_ended;

/// The trace of a request, and the request's own span.
#[derive(Clone, Debug)]
pub struct Trace {
    /// 32 hexadecimal digits.
    pub id: String,
    pub span: SpanIds,
}

/// The ids of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanIds {
    pub span_id: u64,
    /// `None` if the span is the first of its trace.
    pub parent_span_id: Option<u64>,
}

impl Trace {
    /// Returns the trace that a request belongs to. Returns `None` if the client names no trace and no spans are
    /// written.
    pub fn of(traceparent: Option<&str>) -> Option<Self> {
        match traceparent.and_then(parse) {
            Some((id, parent)) => Some(Self { id: id.to_owned(), span: SpanIds::new(Some(parent)) }),
            None if is_written() => {
                let id = format!("{:016x}{:016x}", random(), random());
                Some(Self { id, span: SpanIds::new(None) })
            }
            None => None,
        }
    }
}

impl SpanIds {
    fn new(parent_span_id: Option<u64>) -> Self {
        Self { span_id: random(), parent_span_id }
    }

    /// Returns the ids of a new span that is a part of this span.
    pub fn part(self) -> Self {
        Self::new(Some(self.span_id))
    }
}

/// Whether lines of spans are written.
pub fn is_written() -> bool {
    tracing::enabled!(target: "hapax::trace", Level::DEBUG)
}

/// The id of a span as it is written in a line.
pub struct Hex(pub u64);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Returns the time `ago` before the present time.
pub fn before(ago: Duration) -> SystemTime {
    SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns the microseconds from the beginning of 1970 to this time.
pub fn unix_us(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Returns the trace and the span that `traceparent` names. As the standard says, a value that is not valid is ignored, and
/// a later version may have more parts.
fn parse(traceparent: &str) -> Option<(&str, u64)> {
    let mut parts = traceparent.splitn(4, '-');
    let [version, trace, span] = [parts.next()?, parts.next()?, parts.next()?];
    let flags = parts.next()?;
    let is_hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let flags = match version {
        "00" => flags,
        _ => flags.split_once('-').map_or(flags, |(flags, _)| flags),
    };
    let is_valid = is_hex(version, 2) && version != "ff" && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    (is_valid && trace.bytes().any(|digit| digit != b'0')).then_some((trace, span))
}

/// Returns a number that is not 0. It is very unlikely that another call, in any process, returns the same number.
fn random() -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    SEED.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_valid_traceparent_is_taken_up() {
        let trace = Trace::of(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")).unwrap();
        assert_eq!((trace.id.as_str(), trace.span.parent_span_id), (TRACE, Some(0x00f0_67aa_0ba9_02b7)));
        let part = trace.span.part();
        assert_eq!(part.parent_span_id, Some(trace.span.span_id));
        assert_ne!(part.span_id, trace.span.span_id);
        assert!(
            parse(&format!("01-{TRACE}-00f067aa0ba902b7-00-more")).is_some(),
            "a later version may have more parts"
        );
    }

    #[test]
    fn others_are_ignored() {
        let zeros = "0".repeat(32);
        for traceparent in [
            "",
            "00",
            "hello",
            &format!("00-{TRACE}-00f067aa0ba902b7"),
            &format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{zeros}-00f067aa0ba902b7-01"),
            &format!("00-{TRACE}0-00f067aa0ba902b7-01"),
            &format!("00-{TRACE}-+0f067aa0ba902b7-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-1"),
        ] {
            assert!(Trace::of(Some(traceparent)).is_none(), "{traceparent}");
        }
    }
}
