//! The disk of the audit log is full. The server still answers requests, and the files contain only whole lines. When
//! there is room again, the log continues.

use std::fs;

use serde_json::{Value, json};

use super::Audited;
use super::files::{long_lines, metric};
use crate::crash::full_disk::{MOUNT, how_to_mount, within};
use crate::support::client::{Client, DOCUMENTS, words};
use crate::support::server::Starting;
use crate::support::until::until;

/// The space for the log, in bytes. The small disk has 16 MiB.
const ROOM: usize = 600_000;

#[test]
fn a_full_disk_leaves_whole_lines_and_the_log_goes_on_with_room() {
    let audited = Audited::new(&[("AUDIT__FILE_BYTES_MAX", "262144"), ("AUDIT__QUEUE_BYTES_MAX", "262144")]);
    fs::create_dir(audited.log()).unwrap();
    let log = audited.log().to_str().expect("UTF-8").to_owned();
    let Some(unshare) = how_to_mount(&log) else { return };
    let by = [unshare, &["sh", "-c", MOUNT, &log]].concat();
    let variables: Vec<_> = audited.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let server = Starting::spawn_by(&by, &audited.dir.path().join("data"), &[], &variables).ready();
    let (client, log) = (Client::new(server.url("")), within(&server, &log));
    let filler = log.join("filler");
    fs::write(&filler, vec![1; (16 << 20) - ROOM]).unwrap();

    long_lines(&client, 500);
    until("an attempt failed", || metric(&server, "hapax_audit_errors_total") >= 2.0);
    client.post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    let lines = || {
        let files = hapax::audit::files(&log).unwrap();
        let text: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        // During a failed write, a part of a line may be in the file for a moment.
        if !text.ends_with('\n') {
            return f64::NAN;
        }
        let whole = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a whole line"));
        whole.filter(Value::is_object).count() as f64
    };
    let mut written = 0.0;
    until("the files have whole lines", || {
        written = lines();
        written == metric(&server, "hapax_audit_lines_total")
    });
    let dropped = metric(&server, "hapax_audit_dropped_total");
    assert!(written >= 100.0 && dropped >= 1.0 && written + dropped < 501.0, "{written} written, {dropped} dropped");

    fs::remove_file(&filler).unwrap();
    until("the lines that waited are written", || lines() + dropped == 501.0);
    client.post(DOCUMENTS, &json!({"id": "b", "text": words(2)})).ok();
    until("the log goes on", || lines() + dropped == 502.0);
    assert!(server.terminate().success());
}
