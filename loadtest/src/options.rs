//! The options that all scenarios share.

use std::path::PathBuf;

use crate::schedule::Arrivals;

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Program of the server, which is started on an empty directory
    #[arg(long, default_value = "target/release/hapax", conflicts_with = "server")]
    pub(crate) binary: PathBuf,
    /// URL of a running server to use instead, with an empty collection `default`
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Process of the running server, to report its memory
    #[arg(long, requires = "server")]
    pub(crate) pid: Option<u32>,
    /// File with the API key to send
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// Setting of the server that is started, such as server.connections_max=8192; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Documents to import before the load begins
    #[arg(long, default_value_t = 20_000)]
    pub(crate) documents: u64,
    /// Bytes of each document
    #[arg(long, default_value_t = 2048)]
    pub(crate) bytes: usize,
    /// Requests per second [default: --load times the capacity, which is measured first]
    #[arg(long, conflicts_with_all = ["clients", "load"])]
    pub(crate) rate: Option<f64>,
    /// Clients that send the next request when they have their answer, in place of a rate
    #[arg(long, conflicts_with = "load")]
    pub(crate) clients: Option<usize>,
    /// Share of the capacity
    #[arg(long, default_value_t = 0.7)]
    pub(crate) load: f64,
    /// Intervals between requests
    #[arg(long, value_enum, default_value = "poisson")]
    pub(crate) arrivals: Arrivals,
    /// Connections for requests at a rate
    #[arg(long, default_value_t = 128)]
    pub(crate) connections: usize,
    /// Seconds of each phase
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// Seed of the documents and of the intervals
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Give the first half of the processors to the server, and the second half to this program
    #[arg(long)]
    pub(crate) pin: bool,
    /// Threads of this program [default: half of the processors]
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draw the report into this file as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Fail also if a bound on time or memory is exceeded, not only if an answer is wrong
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `server.connections_max=8192` -> its environment variable and value.
fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must have the form KEY=VALUE, such as cpu.threads=1")?;
    if !key.contains('.') {
        return Err(format!("{key:?} must have the form SECTION.KEY, such as cpu.threads"));
    }
    Ok((format!("HAPAX__{}", key.to_uppercase().replace('.', "__")), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_becomes_a_variable() {
        let expected = ("HAPAX__SERVER__CONNECTIONS_MAX".to_owned(), "8192".to_owned());
        assert_eq!(setting("server.connections_max=8192"), Ok(expected));
        assert!(setting("connections_max=1").is_err());
        assert!(setting("server.listen").is_err());
    }
}
