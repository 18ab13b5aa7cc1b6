//! The pages of the console, which are compiled in, and the answer to `/`. The pages contain no data: they ask the API
//! for it, with the key of the person who looks at them. So they need no key themselves.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue as Value, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::RustEmbed;

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
const GREETING: &str = "\
This is hapax, near-duplicate lookup as a service.

API       POST /v1/collections/default/check and others; /openapi.yaml describes all of them
Console   /console, in a browser
State     /readyz and /metrics
";
const GREETING_WITHOUT_CONSOLE: &str = "\
This is hapax, near-duplicate lookup as a service.

API       POST /v1/collections/default/check and others; /openapi.yaml describes all of them
State     /readyz and /metrics
";

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
        .route(PATHS[0], get(async || see("console/")))
        .route(PATHS[1], get(async |headers: HeaderMap| file(PAGE, &headers)))
        .route(PATHS[2], get(async |Path(name): Path<String>, headers: HeaderMap| named(&name, &headers)))
}

/// Whether the answer to this path is the same for everyone, so that it needs no key and may be asked for by any page.
pub(super) fn is_page(path: &str) -> bool {
    path == ROOT || path == PATHS[0] || path.starts_with(PATHS[1])
}

/// Leads a browser to the console, and tells other clients where the API is.
fn root(headers: &HeaderMap, console_is_on: bool) -> Response {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_browser = accepts.flat_map(|value| value.split(',')).any(|kind| kind.trim_start().starts_with("text/html"));
    let mut response = match console_is_on && is_browser {
        true => see("console/"),
        false => {
            let text = if console_is_on { GREETING } else { GREETING_WITHOUT_CONSOLE };
            ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
    };
    response.headers_mut().append(VARY, HeaderValue::from_static("accept"));
    response
}

/// Leads to a path that is relative to the path of the request, so that it is right behind a proxy, too.
fn see(relative: &'static str) -> Response {
    (StatusCode::FOUND, [(LOCATION, relative), (CACHE_CONTROL, "no-cache")]).into_response()
}

fn named(name: &str, headers: &HeaderMap) -> Response {
    file(if VIEWS.contains(&name) { PAGE } else { name }, headers)
}

/// Answers with a file, or with 304 if the browser has it already.
fn file(name: &str, headers: &HeaderMap) -> Response {
    let Some((found, kind)) = Files::get(name).zip(kind(name)) else {
        return Problem::new(Code::RouteNotFound, "the console has no such page; it begins at /console")
            .into_response();
    };
    let hash: String = found.metadata.sha256_hash()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // An answer that was compressed on its way has a weak tag.
    let is_known = known.flat_map(|tags| tags.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => found.data.into_response(),
    };
    let fields = response.headers_mut();
    for (name, value) in security() {
        fields.insert(name, value);
    }
    fields.insert(CONTENT_TYPE, Value::from_static(kind));
    fields.insert(CACHE_CONTROL, Value::from_static("no-cache"));
    fields.insert(ETAG, Value::try_from(tag).expect("a hash has only digits"));
    response
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

/// Returns the Content-Type of a file; `None` if browsers need no such file.
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
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, page.headers()[ETAG].clone())]);
        assert_eq!(named("try", &known).status(), 304);
        assert_eq!(named("../console.rs", &HeaderMap::new()).status(), 404);
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
    fn a_browser_is_led_to_the_console_and_others_are_told() {
        let accepting = |kinds: &'static str| HeaderMap::from_iter([(ACCEPT, Value::from_static(kinds))]);
        let browser = accepting("text/html,application/xhtml+xml,*/*;q=0.8");
        assert_eq!(root(&browser, true).headers()[LOCATION], "console/");
        for (headers, console_is_on) in [(&browser, false), (&accepting("*/*"), true), (&HeaderMap::new(), true)] {
            assert_eq!(root(headers, console_is_on).status(), 200);
        }
    }
}
