//! Pages that list settings, limits and metrics: they list all of them, no others, and with the right numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use hapax::config::{Sources, load};
use hapax::telemetry::names;
use regex::Regex;

use crate::support::metrics::unknown_metrics;

/// A row of a table of settings: key, default, perhaps the default in larger units, and range.
static SETTING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^\| `([a-z_]+\.[a-z_]+)` \| (?:none|`([^`]*)`(?: = ([^|]+))?) \| ([^|]*)\| .+ \|$").unwrap()
});
/// A number, perhaps with its unit, and the setting whose default it is.
static LIMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([\d,]+(?: (?:KiB|MiB|GiB|s|minutes)\b)?)[^(|\d]*\(`([a-z_]+\.[a-z_]+)`\)").unwrap());
/// A row of a table of metrics: name and labels.
static METRIC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\| `(hapax_[a-z0-9_]+)` \| ([^|]*)\| .+ \|$").unwrap());

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The keys of the compiled-in settings with their defaults, as written; `None`: no default.
fn defaults() -> BTreeMap<String, Option<String>> {
    let line = Regex::new(r#"^(?:\[([a-z_]+)\]|([a-z_]+) = (.+)|# ([a-z_]+) = (?:"[^"]*"|\d+))$"#).unwrap();
    let (mut section, mut keys) = (String::new(), BTreeMap::new());
    for line in read("config/default.toml").lines().filter_map(|text| line.captures(text)) {
        if let Some(name) = line.get(1) {
            section = name.as_str().to_owned();
        } else if let Some(key) = line.get(2) {
            keys.insert(format!("{section}.{}", key.as_str()), Some(line[3].to_owned()));
        } else {
            keys.insert(format!("{section}.{}", &line[4]), None);
        }
    }
    keys
}

/// `64 KiB`, `10 s` or a plain number, in the unit of the key.
fn amount(text: &str, key: &str) -> u64 {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let second = if key.ends_with("_ms") { 1000 } else { 1 };
    let factor = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "PiB" => 1 << 50,
        "s" => second,
        "min" | "minutes" => 60 * second,
        "day" | "days" => 86_400 * second,
        other => panic!("{key}: unit {other:?}"),
    };
    let number = number.replace(',', "");
    number.parse::<u64>().unwrap_or_else(|_| panic!("{key}: {text:?} is not a number with a unit")) * factor
}

/// The error that `key = value` causes.
fn refusal(key: &str, value: u64) -> Option<String> {
    let (section, name) = key.split_once('.').unwrap();
    let variable = format!("HAPAX__{}__{}", section.to_uppercase(), name.to_uppercase());
    let environment = vec![(variable.into(), value.to_string().into())];
    load(&Sources { environment, ..Sources::default() }).err().map(|error| error.to_string())
}

#[test]
fn every_setting_is_on_its_page_with_its_default_and_no_other() {
    let page = read("docs/configuration.md");
    let mut listed = BTreeMap::new();
    for row in SETTING.captures_iter(&page) {
        let (key, default) = (row[1].to_owned(), row.get(2).map(|default| default.as_str().to_owned()));
        if let (Some(default), Some(told)) = (&default, row.get(3)) {
            assert_eq!(amount(told.as_str(), &key), default.parse::<u64>().unwrap(), "{key}: the same in another unit");
        }
        assert!(listed.insert(key.clone(), default).is_none(), "{key} is listed twice");
    }
    assert_eq!(listed, defaults());
}

#[test]
fn the_ranges_of_settings_are_those_that_the_server_checks() {
    let page = read("docs/configuration.md");
    let mut checked = 0;
    for row in SETTING.captures_iter(&page) {
        let (key, range) = (&row[1], row[4].trim());
        let number = row.get(2).is_some_and(|default| default.as_str().parse::<u64>().is_ok());
        if !number || ["default_collection.bands", "default_collection.rows"].contains(&key) {
            assert_eq!(range, "", "{key} has no range of numbers");
            continue;
        }
        let (least, most) = range.split_once(" to ").unwrap_or_else(|| panic!("{key}: {range:?} is not a range"));
        let (least, most) = (amount(least, key), amount(most, key));
        let mut outside = vec![(most + 1, most)];
        outside.extend(least.checked_sub(1).map(|below| (below, least)));
        for (value, bound) in outside {
            // Zero may switch a limit off.
            if value == 0 && least > 1 {
                continue;
            }
            let refused = refusal(key, value).unwrap_or_else(|| panic!("{key} = {value} is not refused"));
            let named = Regex::new(&format!(r"\b{bound}\b")).unwrap();
            assert!(named.is_match(&refused), "{key}: the page says {bound}, the error is {refused:?}");
        }
        checked += 1;
    }
    assert!(checked > 30, "{checked} ranges: is the page still understood?");
}

#[test]
fn the_limits_are_the_defaults_of_their_settings() {
    let (page, defaults) = (read("docs/limits.md"), defaults());
    let mut checked = 0;
    for limit in LIMIT.captures_iter(&page) {
        let (told, key) = (&limit[1], &limit[2]);
        assert_eq!(defaults.get(key), Some(&Some(amount(told, key).to_string())), "{key}: the page says {told}");
        checked += 1;
    }
    assert!(checked > 20, "{checked} limits: is the page still understood?");
}

#[test]
fn every_metric_is_on_its_page_with_its_labels_and_no_other() {
    let page = read("docs/metrics.md");
    let mut listed = BTreeMap::new();
    for row in METRIC.captures_iter(&page) {
        let labels: BTreeSet<_> =
            row[2].split([',', ' ', '`']).filter(|label| !label.is_empty()).map(str::to_owned).collect();
        assert!(listed.insert(row[1].to_owned(), labels).is_none(), "{} is listed twice", &row[1]);
    }
    let labels = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect::<BTreeSet<_>>();
    let there: BTreeMap<_, _> =
        names::ALL.iter().map(|metric| (metric.name.to_owned(), labels(metric.labels))).collect();
    assert_eq!(listed, there);
    // Also outside of the tables, as in queries and alerts.
    assert_eq!(unknown_metrics(&page), Vec::<String>::new());
}
