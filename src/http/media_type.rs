//! The Content-Type of a body, with its charset. Knows nothing of the body's content.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

use super::error::{Code, Problem};

/// The Content-Type without its parameters, and the charset.
pub(super) struct MediaType {
    essence: String,
    charset: Option<String>,
}

impl MediaType {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let named = name.trim().eq_ignore_ascii_case("charset");
            named.then(|| value.trim().trim_matches('"').to_ascii_lowercase())
        });
        Some(Self { essence, charset })
    }

    /// Whether it is this type.
    pub(super) fn is(&self, essence: &str) -> bool {
        self.essence == essence
    }

    fn utf8(&self) -> bool {
        self.charset.as_deref().is_none_or(|charset| matches!(charset, "utf-8" | "utf8"))
    }
}

/// 415 unless the Content-Type is one of `essences` and the charset is UTF-8.
pub(super) fn expect(headers: &HeaderMap, essences: &[&str]) -> Result<MediaType, Problem> {
    let wanted = essences[0];
    let Some(media) = MediaType::of(headers) else {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            format!("the Content-Type header is missing; send {wanted}"),
        ));
    };
    if media.essence == "text/html" || media.essence == "application/xhtml+xml" {
        return Err(html());
    }
    if !essences.contains(&media.essence.as_str()) {
        let detail = format!("the Content-Type must be one of {}", essences.join(", "));
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    if !media.utf8() {
        return Err(Problem::new(Code::UnsupportedMediaType, "the charset must be utf-8"));
    }
    Ok(media)
}

/// 415 for HTML.
pub(super) fn html() -> Problem {
    Problem::new(
        Code::UnsupportedMediaType,
        "HTML is not accepted; extract its main text and send that, as `text` or as text/plain",
    )
}

/// 415 unless the Content-Type is one of those for JSON lines.
pub(super) fn expect_lines(headers: &HeaderMap) -> Result<(), Problem> {
    expect(headers, &["application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"])
        .map(drop)
}
