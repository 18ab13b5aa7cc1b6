//! The alerts in `config/prometheus`. Each alert names metrics that exist, has an entry in the runbook, and fires only
//! when it should. `promtool`, from the package prometheus, checks when the alerts fire.

mod cases;
#[cfg(target_os = "linux")]
mod live;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::{Value, json};

use self::cases::{CASES, Case};
use crate::support::metrics::unknown_metrics;

const RULES: &str = "config/prometheus/hapax-alerts.yaml";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The rules of all groups.
fn rules() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&read(RULES)).expect("YAML");
    let groups = file["groups"].as_array().expect("groups");
    groups.iter().flat_map(|group| group["rules"].as_array().expect("rules")).cloned().collect()
}

fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule[field].as_str().unwrap_or_else(|| panic!("{rule} has {field}"))
}

#[test]
fn alerts_name_metrics_that_exist_and_entries_of_the_runbook() {
    let runbook = read("docs/runbook.md");
    assert_eq!(unknown_metrics(&runbook), Vec::<String>::new());
    for rule in rules() {
        assert_eq!(unknown_metrics(text(&rule, "expr")), Vec::<String>::new());
        let alert = text(&rule, "alert");
        assert!(runbook.contains(&format!("\n### {alert}\n")), "{alert} is in the runbook");
        let anchor = format!("docs/runbook.md#{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"], anchor.as_str());
        assert!(["page", "ticket"].contains(&text(&rule["labels"], "severity")), "{rule}");
        assert!(!text(&rule["annotations"], "summary").is_empty());
    }
    let headings = Regex::new(r"(?m)^### (Hapax\w+)$").unwrap();
    let described: BTreeSet<_> = headings.captures_iter(&runbook).map(|found| found[1].to_owned()).collect();
    let alerts: BTreeSet<_> = rules().iter().map(|rule| text(rule, "alert").to_owned()).collect();
    assert_eq!(described, alerts);
}

#[test]
fn each_alert_fires_when_it_should_and_not_otherwise() {
    let tested: BTreeSet<_> = CASES.iter().map(|case| case.alert.to_owned()).collect();
    let alerts: BTreeSet<_> = rules().iter().map(|rule| text(rule, "alert").to_owned()).collect();
    assert_eq!(tested, alerts, "every alert has a case");
    if !promtool_is_there() {
        return;
    }
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join(RULES);
    promtool(&["check", "rules", rules.to_str().expect("UTF-8")]);
    let dir = tempfile::tempdir().expect("temporary directory");
    let tests: Vec<Value> = CASES.iter().flat_map(|case| [test(case, true), test(case, false)]).collect();
    // Every JSON text is also YAML, which promtool reads.
    let file = json!({"rule_files": [rules], "evaluation_interval": "1m", "tests": tests});
    let path = dir.path().join("tests.yaml");
    std::fs::write(&path, file.to_string()).expect("written");
    promtool(&["test", "rules", path.to_str().expect("UTF-8")]);
}

/// Returns a test for promtool: the samples of a case, one for each minute, and whether the alert must fire.
fn test(case: &Case, fires: bool) -> Value {
    let series = if fires { case.fires } else { case.quiet };
    let series: Vec<_> = series.iter().map(|(series, values)| json!({"series": series, "values": values})).collect();
    let expected = if fires { vec![json!({"labels": "{}", "value": 1})] } else { Vec::new() };
    let firing = format!("count(ALERTS{{alertname=\"{}\",alertstate=\"firing\"}})", case.alert);
    json!({
        "name": format!("{} {}", case.alert, if fires { "fires" } else { "is quiet" }),
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [{"expr": firing, "eval_time": case.at, "exp_samples": expected}],
    })
}

/// Returns whether promtool is installed. In CI, it must be installed.
fn promtool_is_there() -> bool {
    let there = Command::new("promtool").arg("--version").output().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "CI has no promtool; install the package prometheus");
    if !there {
        eprintln!("LEFT OUT: the alerts were not tested, because there is no promtool (package prometheus)");
    }
    there
}

fn promtool(arguments: &[&str]) {
    let out = Command::new("promtool").args(arguments).output().expect("promtool runs");
    let said = [out.stdout, out.stderr].concat();
    assert!(out.status.success(), "promtool {arguments:?}:\n{}", String::from_utf8_lossy(&said));
}
