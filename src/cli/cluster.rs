//! The configuration of the servers of a cluster, for commands that connect to the cluster themselves.

use std::path::Path;

use anyhow::{Context, Result};

use crate::collections::RedisSettings;
use crate::config::{self, Config, Sources};

/// Reads the file that was given with `flag`, and the environment. Returns the settings of the cluster, too.
pub(super) fn configuration(flag: &str, path: &Path) -> Result<(Config, RedisSettings)> {
    let config = config::load(&Sources::of_process(Some(path.to_owned())))?.config;
    let redis = config.collections.redis.clone().with_context(|| {
        format!(
            "{flag} {}: it has no `data.store = \"redis\"`; name the configuration file of the servers of the cluster",
            path.display()
        )
    })?;
    Ok((config, redis))
}
