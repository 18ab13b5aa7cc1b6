//! The start of a server: connects to the cluster, and returns an error if the cluster or the settings are not fit.

use super::cluster::{Cluster, ClusterConfig, ClusterError};
use super::fitness::Look;
use super::format::check_format;
use super::primaries::Primaries;
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, RedisSettings, Result, Settings};

/// Connects to a cluster that is fit. Returns its primaries, too.
pub(super) async fn connect(settings: &RedisSettings) -> Result<(Cluster, Primaries)> {
    let refused = |error: ClusterError| CollectionError::Store(error.to_string());
    let cluster = Cluster::new(ClusterConfig {
        nodes: settings.nodes.clone(),
        username: settings.username.clone(),
        password: settings.password.clone(),
        tls: settings.tls.clone(),
        timeout: settings.timeout,
        acks: settings.acks,
    });
    let cluster = cluster.map_err(refused)?;
    let discovered = cluster.discover().await;
    let nodes = match &discovered {
        // The user may lack other permissions, too.
        Err(ClusterError::NoPermission { node, .. }) => vec![node.clone()],
        _ => cluster.primaries(),
    };
    let look = Look::at(nodes, &cluster, settings).await;
    if let Some(problem) = look.problem() {
        return Err(CollectionError::Store(problem.clone()));
    }
    discovered.map_err(refused)?;
    if let Some(error) = look.silent() {
        return Err(refused(error.clone()));
    }
    let mut primaries = Primaries::new();
    primaries.note(look.infos(), true);
    look.warn(settings.acks);
    check_format(&cluster, &settings.prefix).await?;
    Ok((cluster, primaries))
}

/// Compares the settings of `default`, which another server has created, with those of the configuration.
pub(super) fn compare_default(held: &Settings, asked: &Settings) -> Result<()> {
    if held.spec != asked.spec {
        return Err(CollectionError::SpecMismatch {
            name: CollectionName::default_collection(),
            held: format!("spec `{}`", held.spec),
            asked: format!("[default_collection] of the configuration has spec `{}`", asked.spec),
        });
    }
    if held != asked {
        tracing::info!(
            %held, %asked,
            "`default` keeps its settings; those of the configuration apply only to new collections"
        );
    }
    Ok(())
}
