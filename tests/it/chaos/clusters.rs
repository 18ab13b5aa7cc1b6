//! The clusters of a quiet collection. Each document is in the cluster that its record names, and the first document of
//! each cluster can be found.

use std::collections::BTreeMap;

use hapax::collections::{ClusterMember, Collection};
use hapax::types::DocId;

use super::answers::Quiet;

async fn members(collection: &Collection) -> Vec<ClusterMember> {
    let (mut members, mut after) = (Vec::new(), None);
    loop {
        let page = collection.clusters(after, 7).await.unwrap();
        members.extend(page.members);
        after = page.next;
        if after.is_none() {
            return members;
        }
    }
}

/// Checks the clusters, and returns them as a text.
pub(super) async fn consistent(quiet: &Quiet<'_>) -> String {
    let (seed, all) = (quiet.chaos.seed, members(quiet.collection).await);
    let mut representatives = BTreeMap::<&DocId, Option<&DocId>>::new();
    for cluster in all.chunk_by(|_, next| next.representative.is_some()) {
        let first = &cluster[0];
        assert!(first.representative.is_none() && !first.linked, "seed {seed}: the first of {cluster:?}");
        assert!(cluster.len() > 1, "seed {seed}: alone: {cluster:?}");
        assert!(cluster.is_sorted_by(|a, b| a.seq < b.seq), "seed {seed}: not in order: {cluster:?}");
        for member in cluster {
            is_right(quiet, first, member);
            let twice = representatives.insert(&member.id, member.representative.as_ref()).is_some();
            assert!(!twice, "seed {seed}: {} is in two clusters", member.id);
        }
        let last = cluster[cluster.len() - 1].id.clone();
        let page = quiet.collection.cluster(last, None, 1000).await.unwrap().unwrap();
        assert_eq!((&page.representative, page.documents), (&first.id, Some(cluster.len() as u64)), "seed {seed}");
        let alone = |member: &ClusterMember| ClusterMember { representative: None, ..member.clone() };
        assert_eq!(page.members, cluster.iter().map(alone).collect::<Vec<_>>(), "seed {seed}: one cluster and all");
    }
    for (id, (_, document)) in &quiet.documents {
        let representative = document.representative.as_ref();
        let listed = representatives.get(id).copied().flatten();
        assert_eq!(listed, representative, "seed {seed}: the representative of {document:?}");
        assert!(!document.linked || representative.is_some(), "seed {seed}: a link to nothing: {document:?}");
    }
    format!("{all:?}")
}

fn is_right(quiet: &Quiet<'_>, first: &ClusterMember, member: &ClusterMember) {
    let seed = quiet.chaos.seed;
    let Some((of, document)) = quiet.documents.get(&member.id) else { panic!("seed {seed}: not listed: {member:?}") };
    let told = (member.seq, member.first_seen, member.linked);
    assert_eq!(told, (document.seq, document.first_seen, document.linked), "seed {seed}: {member:?}, {document:?}");
    if member.id == first.id {
        return;
    }
    assert_eq!(member.representative.as_ref(), Some(&first.id), "seed {seed}: {member:?}");
    let pair = quiet.chaos.truth.of(quiet.documents[&first.id].0, *of);
    let Some(pair) = pair else { panic!("seed {seed}: {member:?} is of another group than {first:?}") };
    let similarity = member.similarity.expect("it is compared").value;
    assert!((similarity - pair.similarity).abs() < 1e-9, "seed {seed}: {}, not {member:?}", pair.similarity);
    assert_eq!(member.below_threshold, !pair.alike, "seed {seed}: {member:?}");
}
