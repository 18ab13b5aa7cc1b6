//! A real Prometheus that scrapes servers each second.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A running Prometheus, with its data in its own directory.
pub struct Prometheus {
    process: Child,
    url: String,
    _dir: tempfile::TempDir,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes these addresses and evaluates these rules. `None` if it is not installed. In
    /// CI it must be installed.
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
        // Another test may take the port before Prometheus does.
        let started = (0..5).find_map(|_| Self::start(&file, dir.path()));
        let (process, url) = started.expect("prometheus starts");
        Some(Self { process, url, _dir: dir })
    }

    /// Starts Prometheus on a free port. `None` if it ended before it answered.
    fn start(config: &Path, dir: &Path) -> Option<(Child, String)> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        let mut process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus starts");
        let url = format!("http://{free}");
        while process.try_wait().expect("its state").is_none() {
            if ask(&url, "vector(1)").is_some() {
                return Some((process, url));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        None
    }

    /// Returns whether an expression has data.
    pub fn has(&self, expression: &str) -> bool {
        let answer = ask(&self.url, expression).expect("prometheus answers");
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        answer["data"]["result"].as_array().is_some_and(|series| !series.is_empty())
    }
}

/// Returns the answer to a query; `None` if there is none.
fn ask(url: &str, expression: &str) -> Option<Value> {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
    let mut answer = agent.get(format!("{url}/api/v1/query")).query("query", expression).call().ok()?;
    answer.body_mut().read_json().ok()
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
