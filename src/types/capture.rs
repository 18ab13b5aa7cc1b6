//! When a page's payload was captured, and the payload's digest, in the notation of WARC files.

use std::sync::Arc;

/// The longest name of a digest's algorithm, in bytes.
const ALGORITHM_BYTES_MAX: usize = 32;
/// The longest value of a digest, in bytes: 512 bits in hex.
const VALUE_BYTES_MAX: usize = 128;
/// The longest date, in bytes.
pub(super) const DATE_BYTES_MAX: usize = "2026-11-20T10:00:00.123456789Z".len();

/// The time of a capture, in a form that `WARC-Date` has in WARC 1.1 (section 5.4): W3C's profile of ISO 8601, in UTC,
/// with at most 9 digits after the second. The text is kept as it was given, because a revisit record has to repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureDate(Arc<str>);

/// The digest of a payload with the name of its algorithm, as in `WARC-Payload-Digest`: `sha1:` and base32, for example.
#[derive(Clone, Debug)]
pub struct PayloadDigest(Arc<str>);

/// The reason why a text is not a date or a digest of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCapture {
    #[error(
        "must be a time in UTC as in WARC-Date, such as `2026-11-20T10:00:00Z`, with at most 9 digits after the second, \
         or with parts left out at its end: `2026-11-20T10:00Z`, `2026-11-20`, `2026-11`, `2026`"
    )]
    Date,
    #[error(
        "must be a digest as in WARC-Payload-Digest, such as `sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ`: an algorithm of at \
         most {ALGORITHM_BYTES_MAX} bytes, a colon, and a value of at most {VALUE_BYTES_MAX} bytes in base32, base64 or \
         hex"
    )]
    Digest,
}

/// The capture that a content came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    pub date: Option<CaptureDate>,
    pub digest: Option<PayloadDigest>,
}

impl CaptureDate {
    pub fn new(text: &str) -> Result<Self, InvalidCapture> {
        if is_date(text) { Ok(Self(text.into())) } else { Err(InvalidCapture::Date) }
    }

    /// Reads a value of JSON. Returns `None` if the value is not a date in quotes. No character of a date needs an
    /// escape.
    pub fn of_json(value: &str) -> Option<Self> {
        Self::new(value.strip_prefix('"')?.strip_suffix('"')?).ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text by which dates are sorted. If one text is a prefix of another, the shorter text comes first.
    pub(super) fn sorted(&self) -> &str {
        self.0.trim_end_matches('Z')
    }
}

impl PayloadDigest {
    pub fn new(text: &str) -> Result<Self, InvalidCapture> {
        let fits = |text: &str, bytes_max, others: &[u8]| {
            (1..=bytes_max).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
        };
        let (algorithm, value) = text.split_once(':').ok_or(InvalidCapture::Digest)?;
        if fits(algorithm, ALGORITHM_BYTES_MAX, b"-_.") && fits(value, VALUE_BYTES_MAX, b"+/=-_") {
            Ok(Self(text.into()))
        } else {
            Err(InvalidCapture::Digest)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The case of the algorithm's name has no meaning. The case of the value may have one, as in base64.
impl PartialEq for PayloadDigest {
    fn eq(&self, other: &Self) -> bool {
        let parts = |digest: &'_ Self| digest.0.find(':').unwrap_or_default();
        let ((algorithm, value), (of_other, value_of_other)) =
            (self.0.split_at(parts(self)), other.0.split_at(parts(other)));
        value == value_of_other && algorithm.eq_ignore_ascii_case(of_other)
    }
}

impl Eq for PayloadDigest {}

impl Capture {
    /// The largest possible size of a capture as JSON, with the names of the fields, in bytes.
    pub const JSON_BYTES_MAX: usize = DATE_BYTES_MAX + ALGORITHM_BYTES_MAX + 1 + VALUE_BYTES_MAX + Self::NAMES_BYTES;
    /// The largest possible size of the names, quotes and commas, in bytes.
    const NAMES_BYTES: usize = 32;

    /// Returns the largest possible size of this capture as JSON, in bytes. None of its characters is escaped.
    pub fn json_bytes(&self) -> usize {
        let texts = [self.date.as_ref().map(CaptureDate::as_str), self.digest.as_ref().map(PayloadDigest::as_str)];
        texts.into_iter().flatten().map(str::len).sum::<usize>() + if self.is_empty() { 0 } else { Self::NAMES_BYTES }
    }

    pub fn is_empty(&self) -> bool {
        self.date.is_none() && self.digest.is_none()
    }

    /// Returns the capture to store if a content that has this capture is sent again with the capture `sent`. A date
    /// says when the payload with this digest was captured. For this reason date and digest change together, and the
    /// date stays if the digests are equal.
    pub fn and_again(&self, sent: &Self) -> Self {
        match (&self.digest, &sent.digest) {
            _ if self.is_empty() => sent.clone(),
            (_, None) => self.clone(),
            (Some(held), Some(digest)) if held == digest => {
                Self { date: self.date.clone().or_else(|| sent.date.clone()), digest: self.digest.clone() }
            }
            (_, Some(_)) => sent.clone(),
        }
    }
}

/// Returns whether a text is a date in W3C's profile of ISO 8601. The date may end after any of its parts, and its time
/// must be in UTC.
fn is_date(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let parts: Vec<_> = date.split('-').map(number).collect();
    let (is_whole, is_valid) = match parts[..] {
        [Some((4, _))] => (false, true),
        [Some((4, _)), Some((2, month))] => (false, (1..=12).contains(&month)),
        [Some((4, year)), Some((2, month)), Some((2, day))] => {
            let [month, day] = [month, day].map(|part| i8::try_from(part).unwrap_or_default());
            (true, jiff::civil::Date::new(year, month, day).is_ok())
        }
        _ => (false, false),
    };
    is_valid && time.is_none_or(|time| is_whole && time.strip_suffix('Z').is_some_and(is_time))
}

/// Returns whether a text is `hh:mm`, `hh:mm:ss` or `hh:mm:ss.s`, with 1 to 9 digits at its end.
fn is_time(text: &str) -> bool {
    let (time, fraction) = match text.split_once('.') {
        Some((time, fraction)) => (time, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<_> = time.split(':').map(number).collect();
    let (has_seconds, is_valid) = match parts[..] {
        [Some((2, 0..=23)), Some((2, 0..=59))] => (false, true),
        [Some((2, 0..=23)), Some((2, 0..=59)), Some((2, 0..=59))] => (true, true),
        _ => (false, false),
    };
    let is_fraction = |text: &str| (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_valid && fraction.is_none_or(|fraction| has_seconds && is_fraction(fraction))
}

/// Returns the length and the value of a number of 1 to 4 digits.
fn number(digits: &str) -> Option<(usize, i16)> {
    let is_number = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Some((digits.len(), digits.parse().ok()?)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(date: Option<&str>, digest: Option<&str>) -> Capture {
        Capture {
            date: date.map(|text| CaptureDate::new(text).unwrap()),
            digest: digest.map(|text| PayloadDigest::new(text).unwrap()),
        }
    }

    #[test]
    fn dates_are_those_of_warc() {
        for text in [
            "2026",
            "2026-11",
            "2026-11-20",
            "2024-02-29",
            "2026-11-20T10:00Z",
            "2026-11-20T23:59:59Z",
            "2026-11-20T10:00:00.1Z",
            "2026-11-20T10:00:00.123456789Z",
        ] {
            assert_eq!(CaptureDate::new(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "T",
            "26",
            "2026-1",
            "2026-13",
            "2026-00-01",
            "2026-02-29",
            "2026-11-20T10Z",
            "2026-11T10:00Z",
            "2026-11-20T10:00:00",
            "2026-11-20T10:00:00+01:00",
            "2026-11-20t10:00:00z",
            "2026-11-20 10:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T10:60:00Z",
            "2026-11-20T10:00:60Z",
            "2026-11-20T10:00.5Z",
            "2026-11-20T10:00:00.Z",
            "2026-11-20T10:00:00.1234567890Z",
            "+026-11-20",
            "20261120100000",
            "2026-11-20T10:00:00ZZ",
            "２０２６",
        ] {
            assert_eq!(CaptureDate::new(text), Err(InvalidCapture::Date), "{text}");
        }
    }

    #[test]
    fn digests_are_labelled_and_bounded() {
        let longest = format!("sha512:{}", "a".repeat(VALUE_BYTES_MAX));
        for text in ["sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "SHA-256:q+/_-Q==", "blake2b.x_y:00ff", &longest] {
            assert_eq!(PayloadDigest::new(text).unwrap().as_str(), text);
        }
        let long_name = format!("{}:a", "a".repeat(ALGORITHM_BYTES_MAX + 1));
        for text in ["", ":", "sha1", "sha1:", ":abc", "sha 1:abc", "sha1:a b", "sha1:a:b", "sha1:é", "sha1:a\n"] {
            assert!(PayloadDigest::new(text).is_err(), "{text}");
        }
        assert!(PayloadDigest::new(&format!("{longest}a")).is_err() && PayloadDigest::new(&long_name).is_err());
    }

    #[test]
    fn the_case_of_an_algorithm_means_nothing_but_that_of_a_value_does() {
        let digest = |text| PayloadDigest::new(text).unwrap();
        assert_eq!(digest("SHA1:ABC"), digest("sha1:ABC"));
        assert_ne!(digest("sha1:ABC"), digest("sha1:abc"));
        assert_ne!(digest("sha1:ABC"), digest("md5:ABC"));
    }

    #[test]
    fn a_date_stays_with_its_digest() {
        let (a, b) = (Some("sha1:A"), Some("sha1:B"));
        let (first, later) = (Some("2026-11-01"), Some("2026-11-02"));
        for (held, sent, after) in [
            ((None, None), (later, b), (later, b)),
            ((None, None), (later, None), (later, None)),
            ((first, a), (later, a), (first, a)),
            ((first, a), (None, a), (first, a)),
            ((None, a), (later, a), (later, a)),
            ((first, a), (later, b), (later, b)),
            ((first, a), (None, b), (None, b)),
            ((first, a), (later, None), (first, a)),
            ((first, a), (None, None), (first, a)),
            ((first, None), (later, None), (first, None)),
            // The date says nothing about when this payload was captured.
            ((first, None), (later, b), (later, b)),
            ((None, a), (later, None), (None, a)),
        ] {
            let case = format!("{held:?} {sent:?}");
            let of = |(date, digest)| capture(date, digest);
            assert_eq!(of(held).and_again(&of(sent)), of(after), "{case}");
        }
    }
}
