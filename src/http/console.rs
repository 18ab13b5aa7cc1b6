//! The pages of the console, which are compiled in, and the answer to `/`. The pages contain no data: they ask the API
//! for it, with the key of the person who looks at them. So they need no key themselves.

use std::io::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue as Value, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use dashmap::DashMap;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::error::{Code, Problem};
use super::state::AppState;

/// The paths that are served if the console is on. Their answers are the same for everyone.
pub(super) const PATHS: [&str; 3] = ["/console", "/console/", "/console/{file}"];
/// The path whose answer leads to the console and to the API.
pub(super) const ROOT: &str = "/";

/// The page of every view. A view is chosen by the last part of the path, in the page.
const PAGE: &str = "index.html";
/// The views, which have paths of their own. `main.js` has the same list, and a test compares the two.
const VIEWS: [&str; 9] =
    ["try", "compare", "live", "collections", "collection", "clusters", "buckets", "quality", "operate"];
/// Scripts, styles and images come from this server only, and requests go to this server only. No other page may
/// contain this page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

#[derive(RustEmbed)]
#[folder = "src/http/console"]
struct Files;

/// Adds `/`, and the pages of the console if it is on.
pub(super) fn add_to(router: Router<AppState>, is_on: bool) -> Router<AppState> {
    let router = router.route(ROOT, get(async move |headers: HeaderMap| root(&headers, is_on)));
    if !is_on {
        return router;
    }
    router
        .route(PATHS[0], get(async || redirect("console/")))
        .route(PATHS[1], get(async |headers: HeaderMap| file(PAGE, &headers)))
        .route(PATHS[2], get(async |uri: Uri, headers: HeaderMap| named(&uri.path()[PATHS[1].len()..], &headers)))
}

/// Whether the answer to this path is the same for everyone, so that it needs no key, and other sites may link to it.
pub(super) fn is_page(path: &str) -> bool {
    path == ROOT || path == PATHS[0] || path.starts_with(PATHS[1])
}

/// Leads a browser to the console, and tells other clients where the API is.
fn root(headers: &HeaderMap, console_is_on: bool) -> Response {
    let is_browser = words(headers, &ACCEPT).any(|kind| kind.eq_ignore_ascii_case("text/html"));
    let mut response = match console_is_on && is_browser {
        true => redirect("console/"),
        false => {
            let console = if console_is_on { "Console   /console, in a browser\n" } else { "" };
            let text = format!(
                "This is hapax, near-duplicate lookup as a service.\n\n\
                 API       POST /v1/collections/default/check and others; /openapi.yaml describes all of them\n{console}\
                 State     /readyz and /metrics\n"
            );
            ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
    };
    response.headers_mut().append(VARY, Value::from_static("accept"));
    response
}

/// Redirects to a path that is relative to the path of the request, so that it is right behind a proxy, too.
fn redirect(relative: &'static str) -> Response {
    (StatusCode::FOUND, [(LOCATION, relative), (CACHE_CONTROL, "no-cache")]).into_response()
}

/// Answers with the file of this name, or with the page of the view of this name. The names of files need no encoding.
fn named(name: &str, headers: &HeaderMap) -> Response {
    match name {
        _ if VIEWS.contains(&name) => file(PAGE, headers),
        // The page says that there is no such view.
        _ if !name.contains('.') => {
            let mut page = file(PAGE, &HeaderMap::new());
            *page.status_mut() = StatusCode::NOT_FOUND;
            page
        }
        _ => file(name, headers),
    }
}

/// Answers with a file, or with 304 if the browser has it already.
fn file(name: &str, headers: &HeaderMap) -> Response {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    let found = if is_plain { Files::get(name).zip(kind(name)) } else { None };
    let Some((found, kind)) = found else {
        return Problem::new(Code::RouteNotFound, "the console has no such file; it begins at /console")
            .into_response();
    };
    let hash: String = found.metadata.sha256_hash()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    // The same tag is for the file and for its compressed form, so it is a weak one.
    let tag = format!("W/\"{hash}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known =
        known.flat_map(|tags| tags.split(',')).any(|known| known.trim().trim_start_matches("W/") == &tag[2..]);
    let takes_gzip = words(headers, &ACCEPT_ENCODING).any(|encoding| encoding.eq_ignore_ascii_case("gzip"));
    let mut response = match (is_known, takes_gzip) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, true) => ([(CONTENT_ENCODING, "gzip")], compressed(hash, found)).into_response(),
        (false, false) => found.data.into_response(),
    };
    let fields = response.headers_mut();
    for (name, value) in security() {
        fields.insert(name, value);
    }
    fields.insert(CONTENT_TYPE, Value::from_static(kind));
    fields.insert(CACHE_CONTROL, Value::from_static("no-cache"));
    fields.insert(ETAG, Value::try_from(tag).expect("a hash has only digits"));
    fields.append(VARY, Value::from_static("accept-encoding"));
    response
}

/// Returns a compressed file. It is compressed once, because clients without a key can ask for it without a limit.
fn compressed(hash: String, file: EmbeddedFile) -> Bytes {
    static COMPRESSED: LazyLock<DashMap<String, Bytes>> = LazyLock::new(DashMap::new);
    if let Some(bytes) = COMPRESSED.get(&hash) {
        return bytes.clone();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&file.data).expect("a vector takes all bytes");
    let bytes = Bytes::from(encoder.finish().expect("a vector takes all bytes"));
    COMPRESSED.insert(hash, bytes.clone());
    bytes
}

/// Returns the words of a list in a header, without their parameters. Words that are refused (`q=0`) are left out.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|item| {
        let (word, parameters) = item.split_once(';').unwrap_or((item, ""));
        let is_refused = parameters.split(';').any(|one| matches!(one.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        (!is_refused).then(|| word.trim())
    })
}

fn security() -> [(HeaderName, Value); 5] {
    [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ]
    .map(|(name, value)| (name, Value::from_static(value)))
}

/// Returns the Content-Type of a file; `None` if the console has no such kind of file.
fn kind(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "txt" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_kind_and_the_page_its_policy() {
        for name in Files::iter() {
            assert_eq!(file(&name, &HeaderMap::new()).status(), 200, "{name}");
        }
        let page = named("try", &HeaderMap::new());
        assert_eq!(page.headers()[CONTENT_SECURITY_POLICY], POLICY);
        let gzip = HeaderMap::from_iter([(ACCEPT_ENCODING, Value::from_static("br, gzip"))]);
        assert_eq!(named("try", &gzip).headers()[CONTENT_ENCODING], "gzip");
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, page.headers()[ETAG].clone())]);
        assert_eq!(named("try", &known).status(), 304);
        for name in ["../console.rs", "%ff.js", "..%2fconsole%2findex.html", "%2fetc%2fpasswd", "", "nope", "try.html"]
        {
            assert_eq!(named(name, &HeaderMap::new()).status(), 404, "{name}");
        }
    }

    #[test]
    fn the_views_of_the_server_are_those_of_the_page() {
        let main = Files::get("main.js").unwrap();
        let main = std::str::from_utf8(&main.data).unwrap();
        for view in VIEWS {
            assert!(main.contains(&format!("view-{view}.js")), "{view}");
        }
        assert_eq!(main.matches("view-").count(), VIEWS.len());
    }

    #[test]
    fn a_browser_is_redirected_to_the_console_and_other_clients_get_a_text() {
        let accepting = |kinds: &'static str| HeaderMap::from_iter([(ACCEPT, Value::from_static(kinds))]);
        let browser = accepting("text/html,application/xhtml+xml,*/*;q=0.8");
        assert_eq!(root(&browser, true).headers()[LOCATION], "console/");
        for (headers, console_is_on) in [
            (&browser, false),
            (&accepting("text/html;q=0"), true),
            (&accepting("*/*"), true),
            (&HeaderMap::new(), true),
        ] {
            assert_eq!(root(headers, console_is_on).status(), 200);
        }
    }
}
