//! Many writers at once, and clusters that are larger than the number of documents that a lookup reads.

use hapax::types::OnDuplicate;

use super::given::{all_clusters, base, cluster, insert, made, representative};
use crate::support::library::{self};

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_at_once_one_founds_and_the_others_join() {
    let dir = library::dir();
    let collections = library::open(library::config(&dir));
    let collection = made(&collections).await;
    let writers: Vec<_> = (0..32_u8)
        .map(|writer| {
            let collection = collection.clone();
            tokio::spawn(async move {
                let mut founded = 0;
                for group in 0..50_u8 {
                    let mut signature = [group; 64];
                    signature[usize::from(writer)] = 255;
                    let on_duplicate = if writer % 2 == 0 { OnDuplicate::Store } else { OnDuplicate::Link };
                    let verdict = insert(&collection, &format!("{group}/{writer}"), &signature, on_duplicate).await;
                    founded += u32::from(verdict.representative.is_none());
                }
                founded
            })
        })
        .collect();
    let mut founded = 0;
    for writer in writers {
        founded += writer.await.unwrap();
    }
    assert_eq!(founded, 50);
    let members = all_clusters(&collection, 1000).await;
    assert_eq!(members.len(), 50 * 32);
    assert_eq!(members.iter().filter(|member| member.representative.is_none()).count(), 50);
    for group in 0..50 {
        assert_eq!(cluster(&collection, &format!("{group}/7")).await.len(), 32);
    }
    library::close(collections).await;
}

/// A lookup reads only a few documents of a full bucket. In an earlier version, if the representative was not among
/// them, each new duplicate founded a new cluster.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_larger_than_a_lookup_reads_stays_one() {
    let dir = library::dir();
    let mut config = library::config(&dir);
    config.limits.bucket_read_max = 2;
    let collections = library::open(config);
    let collection = made(&collections).await;
    for number in 0..500 {
        let verdict = insert(&collection, &format!("{number}"), &base(), OnDuplicate::Store).await;
        assert_eq!(representative(&verdict), (number > 0).then_some("0"), "document {number}");
    }
    library::close(collections).await;
}
