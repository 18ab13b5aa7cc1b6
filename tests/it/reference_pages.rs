//! Pages that list settings, limits, metrics or verbs list all that exist and no others, with the right numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use hapax::config::{Sources, load};
use hapax::telemetry::names;
use regex::Regex;

use crate::support::command;
use crate::support::metrics::unknown_metrics;

/// A row of a table of settings: the key, the default, optionally the default in larger units, and the range.
static SETTING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^\| `([a-z_]+\.[a-z_]+)` \| (?:none|`([^`]*)`(?: = ([^|]+))?) \| ([^|]*)\| .+ \|$").unwrap()
});
/// A number, optionally with its unit, and the setting whose default it is.
static LIMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([\d,]+(?: (?:KiB|MiB|GiB|s|minutes)\b)?)[^(|\d]*\(`([a-z_]+\.[a-z_]+)`\)").unwrap());
/// A row of the table of verbs: the verb, the object of its work, and the meaning of exit status 1.
static VERB: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\| `hapax ([a-z -]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| [^|]+ \|$").unwrap());
/// A verb or a part of one, in the list of a help text.
static LISTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^  ([a-z-]+)  ").unwrap());
/// The part of a help text that says when the exit status is 1.
static STATUS_1: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b1 [a-z]").unwrap());
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bHAPAX_[A-Z_]+\b").unwrap());

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

/// Reads `64 KiB`, `10 s` or a plain number, and returns it in the unit of the key.
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

/// Returns the error that `key = value` causes.
fn refusal(key: &str, value: u64) -> Option<String> {
    let (section, name) = key.split_once('.').unwrap();
    let variable = format!("HAPAX__{}__{}", section.to_uppercase(), name.to_uppercase());
    let mut environment = vec![(variable.into(), value.to_string().into())];
    if section == "redis" {
        // Otherwise these settings have no effect, and are not checked.
        environment.push(("HAPAX__DATA__STORE".into(), "redis".into()));
        environment.push(("HAPAX__REDIS__NODES".into(), "127.0.0.1:7000".into()));
    }
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

/// Returns the page with its tables of metrics, between their markers, replaced by those of `names.rs`.
fn with_tables_of_metrics(page: &str) -> String {
    let mut made = page.to_owned();
    for (section, metrics) in names::SECTIONS {
        let begin = format!("<!-- metrics: {section} -->\n");
        let (before, rest) = made.split_once(&begin).unwrap_or_else(|| panic!("the page has no {begin}"));
        let (_, after) = rest.split_once("<!-- end -->\n").unwrap_or_else(|| panic!("no <!-- end --> after {begin}"));
        let mut table =
            "| metric | type | labels | meaning | what to do when it moves |\n|---|---|---|---|---|\n".to_owned();
        for metric in *metrics {
            table += &metric.row();
            table.push('\n');
        }
        made = format!("{before}{begin}{table}<!-- end -->\n{after}");
    }
    made
}

#[test]
fn the_page_of_metrics_is_made_of_the_table_of_names() {
    let page = read("docs/metrics.md");
    let made = with_tables_of_metrics(&page);
    if std::env::var_os("HAPAX_RECORD").is_some() {
        return fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md"), made).unwrap();
    }
    let other = made.lines().zip(page.lines()).find(|(made, told)| made != told);
    assert!(
        made == page,
        "docs/metrics.md is not what src/telemetry/names.rs has: run this test with HAPAX_RECORD=1: {other:?}"
    );
    // No table is written by hand, and queries and alerts name only metrics that exist.
    let rows = page.lines().filter(|line| line.starts_with("| `hapax_")).count();
    assert_eq!(rows, names::all().count());
    assert_eq!(unknown_metrics(&page), Vec::<String>::new());
}

/// The help texts of all verbs, by verb, such as `keys add`.
fn help_of_verbs() -> BTreeMap<String, String> {
    let (mut open, mut found) = (vec![String::new()], BTreeMap::new());
    while let Some(verb) = open.pop() {
        let arguments: Vec<_> = verb.split_whitespace().chain(["--help"]).collect();
        let help = String::from_utf8(command::run(&arguments).stdout).unwrap();
        match help.split_once("\nCommands:\n") {
            Some((_, rest)) => {
                let listed = rest.split("\n\n").next().unwrap_or_default();
                let parts = LISTED.captures_iter(listed).map(|part| part[1].to_owned()).filter(|part| part != "help");
                open.extend(parts.map(|part| format!("{verb} {part}").trim_start().to_owned()));
            }
            None => {
                found.insert(verb, help);
            }
        }
    }
    found
}

#[test]
fn every_verb_is_on_its_page_and_no_other() {
    let (page, verbs) = (read("docs/cli.md"), help_of_verbs());
    let rows: Vec<_> = VERB.captures_iter(&page).collect();
    let listed: Vec<_> = rows.iter().map(|row| row[1].to_owned()).collect();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>(), verbs.keys().collect());
    assert_eq!(listed.len(), verbs.len(), "a verb is listed twice: {listed:?}");
    for row in rows {
        let (verb, works_on, status_1) = (&row[1], &row[2], &row[3]);
        let help = &verbs[verb];
        for (option, words) in
            [("--server <", "server"), ("--data-dir <", "data directory"), ("--keys-file <", "keys file")]
        {
            assert_eq!(
                help.contains(option),
                works_on.contains(words),
                "{verb}: `works on` is {works_on}, option {option}"
            );
        }
        // The parts of a verb have no such line if the line of the whole verb is sufficient.
        if let Some((_, statuses)) = help.split_once("Exit status:") {
            assert_eq!(STATUS_1.is_match(statuses), status_1 != "–", "{verb}: the help says: {statuses}");
        }
    }
}

#[test]
fn the_page_of_verbs_lists_the_variables_that_they_read() {
    let (page, verbs) = (read("docs/cli.md"), help_of_verbs());
    let named = |text: &str| VARIABLE.find_iter(text).map(|name| name.as_str().to_owned()).collect::<BTreeSet<_>>();
    let of_options = verbs.values().flat_map(|help| help.lines()).filter(|line| line.contains("[env: "));
    let missing: Vec<_> = of_options.flat_map(named).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/cli.md does not list {missing:?}");
    let helps: BTreeSet<_> = verbs.values().flat_map(|help| named(help)).collect();
    let unknown: Vec<_> = named(&page).into_iter().filter(|name| !helps.contains(name)).collect();
    assert!(unknown.is_empty(), "no help text names {unknown:?}");
}
