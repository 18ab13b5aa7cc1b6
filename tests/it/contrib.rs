//! The files of `contrib/` name flags, variables, addresses and paths of hapax. Each name is compared with the real
//! one.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::command::{binary, hapax, run};
use crate::support::library;
use crate::support::sources::root;

const KEYS_FILE: &str = "HAPAX__AUTH__KEYS_FILE";

fn text(path: &str) -> String {
    fs::read_to_string(root().join("contrib").join(path)).unwrap_or_else(|error| panic!("contrib/{path}: {error}"))
}

/// Returns the page that says how to use the files.
fn page() -> String {
    fs::read_to_string(root().join("docs/running.md")).unwrap()
}

fn documents(path: &str) -> Vec<Value> {
    text(path).split("\n---\n").map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

/// Returns the settings that these arguments and variables make, or fails.
fn settings(arguments: &[&str], variables: &[(String, String)]) -> String {
    let dir = library::dir();
    let keys_file = dir.path().join("keys.toml");
    let keys_file = keys_file.to_str().unwrap();
    assert!(run(&["keys", "add", "ops", "--scopes", "admin", "--keys-file", keys_file]).status.success());
    let mut command = hapax(arguments);
    command.arg("--check-config");
    for (name, value) in variables {
        command.env(name, if name == KEYS_FILE { keys_file } else { value });
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the path of the keys file among these variables.
fn keys_file(variables: &[(String, String)]) -> &Path {
    variables.iter().find(|(name, _)| name == KEYS_FILE).map(|(_, value)| Path::new(value)).expect("a keys file")
}

fn drain_timeout_s() -> u64 {
    hapax::config::defaults().server.limits.drain_timeout.as_secs()
}

/// Returns the values of a key of a unit, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn the_systemd_units_start_hapax_with_settings_that_it_has() {
    let unit = text("systemd/hapax.service");
    let starts = values(&unit, "ExecStart");
    let words: Vec<&str> = starts[0].split(' ').collect();
    assert_eq!((starts.len(), words[0]), (1, "/usr/local/bin/hapax"));
    let variables: Vec<(String, String)> = values(&unit, "Environment")
        .into_iter()
        .map(|value| value.split_once('=').expect("NAME=VALUE"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    settings(&words[1..], &variables);
    // systemd copies a credential once, so a key in it could not be revoked without a restart.
    let keys_file = keys_file(&variables).to_str().unwrap();
    assert!(keys_file.starts_with("/etc/hapax/") && values(&unit, "LoadCredential").is_empty());
    assert!(page().contains(&format!("--keys-file {keys_file}")), "the page on running hapax makes {keys_file}");
    let state = format!("/var/lib/{}/", values(&unit, "StateDirectory")[0]);
    for (name, value) in variables.iter().filter(|(name, _)| name.ends_with("__DIR")) {
        assert!(value.starts_with(&state), "{name}: {value} is not in {state}");
    }
    assert_eq!(values(&unit, "Type"), ["notify"]);
    let stop: u64 = values(&unit, "TimeoutStopSec")[0].trim_end_matches('s').parse().unwrap();
    assert!(stop > drain_timeout_s());
    let defaults = hapax::config::defaults().server;
    for (socket, name, address) in [
        ("hapax.socket", "http", defaults.listen.to_string()),
        ("hapax-admin.socket", "admin", "127.0.0.1:8081".into()),
    ] {
        let socket = text(&format!("systemd/{socket}"));
        assert_eq!(values(&socket, "FileDescriptorName"), [name]);
        assert_eq!(values(&socket, "ListenStream"), [address]);
        assert_eq!(values(&socket, "Service"), ["hapax.service"]);
    }
}

#[test]
fn systemd_takes_the_units() {
    let found = Command::new("systemd-analyze").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        return eprintln!("LEFT OUT: there is no systemd-analyze");
    }
    let dir = library::dir();
    let units = ["hapax.service", "hapax.socket", "hapax-admin.socket"].map(|name| {
        let unit = text(&format!("systemd/{name}")).replace("/usr/local/bin/hapax", &binary());
        let path = dir.path().join(name);
        fs::write(&path, unit).unwrap();
        path
    });
    let output = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    // Other units of the machine may have faults too.
    let faults: Vec<&str> = words.lines().filter(|line| line.contains("hapax")).collect();
    assert!(output.status.success() && faults.is_empty(), "{words}");
}

#[test]
fn the_compose_file_runs_the_image_with_settings_that_it_has() {
    let compose = &documents("compose.yaml")[0];
    let service = &compose["services"]["hapax"];
    let arguments: Vec<&str> =
        service["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let variables: Vec<(String, String)> = service["environment"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    settings(&arguments, &variables);
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let (volume, target) = service["volumes"][0].as_str().unwrap().split_once(':').unwrap();
    assert!(compose["volumes"].as_object().unwrap().contains_key(volume));
    // If the file itself were mounted, the container would still see the old file after `hapax keys` replaces it.
    assert_eq!(service["volumes"].as_array().unwrap().len(), 1);
    assert!(keys_file(&variables).starts_with(target), "the root is read-only");
    assert!(dockerfile.contains(&format!("VOLUME {target}\n")));
    assert!(dockerfile.contains("EXPOSE 8080\n") && service["ports"][0] == "127.0.0.1:8080:8080");
    let grace: u64 = service["stop_grace_period"].as_str().unwrap().trim_end_matches('s').parse().unwrap();
    assert!(grace > drain_timeout_s());
}

#[test]
fn the_stateful_set_runs_one_hapax_with_settings_that_it_has() {
    let documents = documents("kubernetes/hapax.yaml");
    let (service, set) = (&documents[0], &documents[1]);
    assert_eq!((&service["kind"], &set["kind"]), (&"Service".into(), &"StatefulSet".into()));
    assert_eq!(set["spec"]["serviceName"], service["metadata"]["name"]);
    assert_eq!(set["spec"]["selector"]["matchLabels"], service["spec"]["selector"]);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], service["spec"]["selector"]);
    assert_eq!(set["spec"]["replicas"], 1);
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["enableServiceLinks"], false);
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > drain_timeout_s());
    let container = &pod["containers"][0];
    let arguments: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(arguments.contains(&"--lock-wait"));
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let variables: Vec<(String, String)> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (word(&entry["name"]), word(&entry["value"])))
        .collect();
    settings(&arguments, &variables);
    let port_of = |name: &str| {
        let value = variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        value.unwrap().rsplit_once(':').unwrap().1.parse::<u64>().unwrap()
    };
    for (port, variable) in [("http", "HAPAX__SERVER__LISTEN"), ("admin", "HAPAX__SERVER__ADMIN_LISTEN")] {
        let named = |ports: &Value, key: &str| {
            let ports = ports.as_array().unwrap();
            ports.iter().find(|entry| entry["name"] == port).unwrap()[key].as_u64()
        };
        assert_eq!(named(&container["ports"], "containerPort"), Some(port_of(variable)));
        assert_eq!(named(&service["spec"]["ports"], "port"), Some(port_of(variable)));
    }
    for (probe, path) in [("readinessProbe", "/readyz"), ("livenessProbe", "/livez")] {
        assert_eq!(container[probe]["httpGet"], serde_json::json!({"path": path, "port": "admin"}));
    }
    let mounts = container["volumeMounts"].as_array().unwrap();
    for (name, value) in variables.iter().filter(|(_, value)| value.starts_with('/')) {
        let mounted = mounts.iter().any(|mount| Path::new(value).starts_with(mount["mountPath"].as_str().unwrap()));
        assert!(mounted, "{name}={value} is on no volume, and the root is read-only");
    }
    let keys = mounts.iter().find(|mount| keys_file(&variables).parent() == mount["mountPath"].as_str().map(Path::new));
    let keys = keys.expect("the directory of the keys file is a mount");
    assert!(keys.get("subPath").is_none(), "such a file never changes");
    let volume = pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == keys["name"]).unwrap();
    let (secret, file) = (volume["secret"]["secretName"].as_str().unwrap(), keys_file(&variables).file_name().unwrap());
    let command = format!("kubectl create secret generic {secret} --from-file={}", file.to_str().unwrap());
    assert!(page().contains(&command) && text("kubernetes/hapax.yaml").contains(&command), "{command}");
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(dockerfile.contains(&format!("USER {}\n", pod["securityContext"]["runAsUser"])));
}

/// Splits `source:target` or `source:target:ro`.
fn mount(volume: &Value) -> (String, String) {
    let mut parts = volume.as_str().unwrap().split(':').map(str::to_owned);
    (parts.next().unwrap(), parts.next().unwrap())
}

#[test]
fn the_monitoring_scrapes_hapax_with_its_alerts_and_its_dashboard() {
    let compose = &documents("monitoring/compose.yaml")[0];
    let contrib = root().join("contrib");
    let mounted = |service: &str| -> Vec<(String, String)> {
        compose["services"][service]["volumes"].as_array().unwrap().iter().map(mount).collect()
    };
    let within = |service: &str, path: &str| {
        let found = mounted(service).into_iter().find_map(|(source, target)| {
            let rest = path.strip_prefix(&target)?.trim_start_matches('/').to_owned();
            Some(if rest.is_empty() { contrib.join(source) } else { contrib.join(source).join(rest) })
        });
        found.unwrap_or_else(|| panic!("{service} has no {path}"))
    };
    for service in ["prometheus", "grafana"] {
        for (source, _) in mounted(service) {
            let known = compose["volumes"].as_object().unwrap().contains_key(&source);
            assert!(known || contrib.join(&source).exists(), "{source}");
        }
    }
    let config = within("prometheus", "/etc/prometheus/prometheus.yml");
    assert_eq!(config, contrib.join("./monitoring/prometheus.yaml"));
    let config = &documents("monitoring/prometheus.yaml")[0];
    for rules in config["rule_files"].as_array().unwrap() {
        assert!(within("prometheus", rules.as_str().unwrap()).is_file(), "{rules}");
    }
    let scrape = &config["scrape_configs"][0];
    // The expressions of the dashboard name this job.
    assert_eq!(scrape["job_name"], "hapax");
    let (service, port) = scrape["static_configs"][0]["targets"][0].as_str().unwrap().split_once(':').unwrap();
    let hapax = &documents("compose.yaml")[0]["services"][service];
    assert!(hapax["ports"][0].as_str().unwrap().ends_with(&format!(":{port}")), "{hapax}");
    let secret = scrape["authorization"]["credentials_file"].as_str().unwrap().strip_prefix("/run/secrets/").unwrap();
    assert_eq!(compose["services"]["prometheus"]["secrets"][0], secret);
    let file = compose["secrets"][secret]["file"].as_str().unwrap().strip_prefix("../").unwrap();
    assert!(page().contains(&format!("> {file}")), "the page on running hapax makes {file}");
    let source = &documents("monitoring/grafana/datasources/prometheus.yaml")[0]["datasources"][0];
    assert_eq!(source["url"], "http://prometheus:9090");
    let folder = &documents("monitoring/grafana/dashboards/hapax.yaml")[0]["providers"][0]["options"]["path"];
    assert!(within("grafana", folder.as_str().unwrap()).join("hapax.json").is_file());
}

#[test]
fn prometheus_takes_its_configuration() {
    let found = Command::new("promtool").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "CI has no promtool; install the package prometheus");
        return eprintln!("LEFT OUT: there is no promtool");
    }
    let dir = library::dir();
    let key = dir.path().join("key");
    fs::write(&key, "a-key").unwrap();
    let rules = root().join("config/prometheus");
    let config = text("monitoring/prometheus.yaml")
        .replace("/etc/prometheus/rules", rules.to_str().unwrap())
        .replace("/run/secrets/hapax-metrics.key", key.to_str().unwrap());
    let path = dir.path().join("prometheus.yaml");
    fs::write(&path, config).unwrap();
    let output = Command::new("promtool").args(["check", "config"]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
