//! The start of a server: connects to the cluster, and returns an error if the cluster or the settings are not fit.

use super::cluster::{Cluster, ClusterConfig, ClusterError};
use super::fitness::{ACKS_MIN, Look};
use super::format::check_format;
use super::primaries::Primaries;
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, RedisSettings, Result, Settings};

/// Connects to a cluster that is fit. Returns its primaries, too, and the settings with the number of `acks`.
pub(super) async fn connect(settings: RedisSettings) -> Result<(Cluster, Primaries, RedisSettings)> {
    let cluster = client(&settings)?;
    let discovered = cluster.discover().await;
    let nodes = match &discovered {
        // The user may lack other permissions, too.
        Err(ClusterError::NoPermission { node, .. }) => vec![node.clone()],
        _ => cluster.primaries(),
    };
    let look = Look::at(nodes, &cluster, &settings).await;
    if let Some(problem) = look.problem() {
        return Err(CollectionError::Store(problem.clone()));
    }
    discovered.map_err(refused)?;
    if let Some(error) = look.silent() {
        return Err(refused(error.clone()));
    }
    let acks = settings.acks.unwrap_or_else(|| look.acks());
    let settings = RedisSettings { acks: Some(acks), ..settings };
    let cluster = if cluster.acks() == acks {
        cluster
    } else {
        let cluster = client(&settings)?;
        cluster.discover().await.map_err(refused)?;
        cluster
    };
    tracing::info!(acks, "a write to the Redis cluster is acknowledged when so many replicas have it");
    let mut primaries = Primaries::new();
    primaries.note(look.infos(), true);
    look.warn(acks);
    check_format(&cluster, &settings.prefix).await?;
    Ok((cluster, primaries, settings))
}

fn client(settings: &RedisSettings) -> Result<Cluster> {
    let cluster = Cluster::new(ClusterConfig {
        nodes: settings.nodes.clone(),
        username: settings.username.clone(),
        password: settings.password.clone(),
        tls: settings.tls.clone(),
        timeout: settings.timeout,
        acks: settings.acks.unwrap_or(ACKS_MIN),
    });
    cluster.map_err(refused)
}

fn refused(error: ClusterError) -> CollectionError {
    CollectionError::Store(error.to_string())
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
