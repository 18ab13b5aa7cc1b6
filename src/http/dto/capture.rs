//! The date and the digest of a capture, as clients send them.

use serde_json::value::RawValue;

use crate::http::error::Problem;
use crate::http::json::Object;
use crate::types::{Capture, CaptureDate, InvalidCapture, PayloadDigest};

/// Reads the capture of a document in JSON. If extra fields are ignored, a `date` that is not the date of a capture is
/// ignored too, because lines of data sets often have another field of this name.
pub fn of_fields(object: &mut Object<'_>, ignores_extra: bool) -> Result<Capture, Problem> {
    if ignores_extra {
        object.leave_out_unless("date", |raw: &RawValue| CaptureDate::of_json(raw.get()).is_some());
    }
    capture(object.string("date")?.as_deref(), object.string("payload_digest")?.as_deref())
}

/// Makes a capture from its date and its digest.
pub fn capture(date: Option<&str>, digest: Option<&str>) -> Result<Capture, Problem> {
    let invalid = |field: &'static str| move |error: InvalidCapture| Problem::invalid(field, error.to_string());
    Ok(Capture {
        date: date.map(CaptureDate::new).transpose().map_err(invalid("date"))?,
        digest: digest.map(PayloadDigest::new).transpose().map_err(invalid("payload_digest"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // A malformed date of a capture is refused. If extra fields are ignored, it is ignored too.
    #[test]
    fn a_date_that_is_none_of_a_capture_is_an_extra_field() {
        let read = |text: &str, ignores_extra| of_fields(&mut Object::parse(text).unwrap(), ignores_extra);
        let dated = r#"{"date":"2026-11-20"}"#;
        assert_eq!(read(dated, true).unwrap(), read(dated, false).unwrap());
        assert!(!read(dated, true).unwrap().is_empty());
        for other in [r#""20 November""#, "5", "null"] {
            let text = format!(r#"{{"date":{other}}}"#);
            assert_eq!(read(&text, true).unwrap(), Capture::default());
            assert_eq!(read(&text, false).unwrap_err().errors[0].field, "date");
        }
    }
}
