//! A real Prometheus that scrapes servers each second.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running Prometheus, with its data in a directory of its own.
pub struct Prometheus {
    process: Child,
    url: String,
    _dir: tempfile::TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these addresses and evaluates these rules. `None` if it is not installed. In CI it must be.
    pub fn scraping(targets: &[&str], rules: Option<&Path>) -> Option<Self> {
        if Command::new("prometheus").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "CI has no prometheus; install the package");
            eprintln!("LEFT OUT: this test needs prometheus (the package prometheus)");
            return None;
        }
        let dir = tempfile::tempdir().expect("temporary directory");
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": rules.iter().collect::<Vec<_>>(),
            "scrape_configs": [{"job_name": "hapax", "static_configs": [{"targets": targets}]}],
        });
        let file = dir.path().join("prometheus.yml");
        std::fs::write(&file, config.to_string()).expect("written");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus starts");
        Some(Self { process, url: format!("http://{free}"), _dir: dir })
    }

    /// Returns whether an expression has data. It has none while Prometheus is starting.
    pub fn has(&self, expression: &str) -> bool {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
        let asked = agent.get(format!("{}/api/v1/query", self.url)).query("query", expression).call();
        let Ok(mut answer) = asked else { return false };
        let answer: Value = answer.body_mut().read_json().unwrap_or_default();
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        answer["data"]["result"].as_array().is_some_and(|series| !series.is_empty())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
