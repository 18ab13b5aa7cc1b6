//! A bulk body -> its answers: one for each line that is not blank, and equal to the answer to a request with only this
//! line.

use hapax_fuzz::{BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, Service, comparable, pieces};
use serde_json::Value;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const NDJSON: [(&str, &str); 1] = [("content-type", "application/x-ndjson")];

thread_local! {
    static SERVICE: Service = Service::new();
}

/// The lines that get an answer, with their numbers.
fn lines(body: &[u8]) -> Vec<(usize, &[u8])> {
    let blank = |line: &[u8]| line.len() <= LINE_BYTES_MAX && line.iter().all(u8::is_ascii_whitespace);
    body.split(|&byte| byte == b'\n')
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !blank(line))
        .collect()
}

/// Checks the answer to one line.
fn compare(service: &Service, number: usize, line: &[u8], answer: &Value) {
    assert_eq!(answer["line"], number);
    if line.len() > LINE_BYTES_MAX {
        assert_eq!(answer["error"]["code"], "too_large", "{answer}");
        return;
    }
    // The first line of a body may begin with a byte order mark. A later line with this mark is refused, although the
    // same line is accepted if it is sent alone.
    if number > 1 && line.starts_with(b"\xEF\xBB\xBF") && std::str::from_utf8(line).is_ok() {
        assert_eq!(answer["error"]["code"], "malformed_json", "{answer}");
        return;
    }
    let (status, alone) = service.post("/v1/collections/default/check", &JSON, vec![line.to_vec()]);
    let mut alone = comparable(&alone);
    if status == 200 {
        let fields = alone.as_object_mut().unwrap();
        fields.insert("kind".to_owned(), "verdict".into());
        fields.insert("line".to_owned(), number.into());
        assert_eq!(*answer, alone);
    } else {
        assert_eq!(answer["kind"], "error", "{answer}, but alone {alone}");
        assert_eq!((&answer["error"]["status"], &answer["error"]["code"]), (&status.into(), &alone["code"]));
    }
}

pub fn run(data: &[u8]) {
    let Some((&cut, body)) = data.split_first() else { return };
    SERVICE.with(|service| {
        let (status, answer) = service.post("/v1/collections/default/bulk?op=check", &NDJSON, pieces(body, cut));
        assert_eq!(status, 200);
        let mut answers: Vec<Value> =
            answer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(comparable).collect();
        let last = answers.pop().expect("a last line");
        let lines = lines(body);
        match last["kind"].as_str() {
            Some("summary") => assert_eq!(answers.len(), lines.len()),
            Some("fatal") => {
                assert_eq!(last["error"]["code"], "too_large", "{last}");
                let count = body.split(|&byte| byte == b'\n').count() as u64;
                assert!(body.len() > BYTES_MAX || count > LINES_MAX, "{last}");
            }
            _ => panic!("{last}"),
        }
        for ((number, line), answer) in lines.into_iter().zip(&answers) {
            compare(service, number, line, answer);
        }
    });
}
