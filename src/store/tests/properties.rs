//! Random histories compared with a model, and random damage.

use proptest::prelude::*;

use super::*;

fn any_verdict() -> impl Strategy<Value = StoredVerdict> {
    let overlap = any::<[u64; 3]>().prop_map(|[both, query, found]| Overlap { both, query, found });
    let matching = (1..i64::MAX as u64, any::<u32>(), any::<bool>(), prop::option::of(overlap))
        .prop_map(|(seq, matching, exact, overlap)| StoredMatch { seq: Seq(seq), matching, exact, overlap });
    (
        0..4usize,
        prop::option::of(any_id()),
        0.0..=1.0f64,
        any::<u32>(),
        any::<u64>(),
        prop::collection::vec(matching, 0..4),
    )
        .prop_map(|(kind, duplicate_of, threshold, candidates, unread, matches)| StoredVerdict {
            kind: VerdictKind::ALL[kind],
            duplicate_of,
            threshold,
            candidates,
            unread,
            matches,
        })
}

fn any_id() -> impl Strategy<Value = DocId> {
    prop::collection::vec(any::<char>(), 1..40).prop_map(|id| DocId::new(id.into_iter().collect::<String>()).unwrap())
}

fn any_metadata() -> impl Strategy<Value = Option<Metadata>> {
    let text = prop::collection::vec(any::<char>(), 0..40);
    prop::option::of(text.prop_map(|text| Metadata::new(text.into_iter().collect::<String>()).unwrap()))
}

fn any_labels() -> impl Strategy<Value = Option<Labels>> {
    prop::option::of(prop::collection::btree_map("[a-z._-]{1,9}", "[^\\p{Cc}]{1,20}", 1..4).prop_map(|labels| {
        Labels::new(labels.iter().map(|(name, value)| Label::new(name, value).unwrap()).collect()).unwrap()
    }))
}

fn any_additions() -> impl Strategy<Value = Additions> {
    (any_metadata(), any_labels(), any_capture(), any_page()).prop_map(|(metadata, labels, capture, page)| Additions {
        metadata,
        labels,
        capture,
        page,
    })
}

fn any_capture() -> impl Strategy<Value = Capture> {
    let digit = || prop::option::of(0..10u64);
    (digit(), digit()).prop_map(|(date, digest)| capture(date, digest))
}

fn any_page() -> impl Strategy<Value = Option<PageMark>> {
    let page = (any::<u128>(), any::<u32>()).prop_map(|(hash, extractor)| PageMark { hash, extractor });
    prop::option::of(page)
}

fn any_record() -> impl Strategy<Value = Record> {
    let given = (any::<bool>(), any::<bool>(), any::<u128>(), any::<[i64; 2]>(), prop::option::of(any::<u64>()));
    let lasting = (any::<i64>(), 0..=u64::MAX >> 1);
    let signature = prop::collection::vec(any::<u8>(), 0..70);
    (any_id(), any::<u64>(), signature, any_additions(), given, lasting, any_verdict()).prop_map(
        |(
            id,
            id_fingerprint,
            signature,
            Additions { metadata, labels, capture, page },
            (given, linked, content, [first_seen, id_first_seen], shingles),
            (seen, cluster),
            verdict,
        )| Record {
            seq: Seq(0),
            id,
            id_fingerprint,
            signature,
            content: ContentHash(content),
            given,
            linked,
            metadata,
            labels,
            capture,
            first_seen: TimestampMs(first_seen),
            id_first_seen: TimestampMs(id_first_seen),
            seen: TimestampMs(seen),
            cluster: Seq(cluster),
            shingles,
            page,
            verdict,
            payload: None,
        },
    )
}

/// One step of a history. A `pick` chooses one of the stored documents.
#[derive(Clone, Debug)]
enum Step {
    Insert(Record),
    Replace(prop::sample::Index, Record),
    Delete(prop::sample::Index),
    Update(prop::sample::Index, Additions),
    Commit,
    Reopen,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_record().prop_map(Step::Insert),
        3 => (any::<prop::sample::Index>(), any_record()).prop_map(|(pick, record)| Step::Replace(pick, record)),
        3 => any::<prop::sample::Index>().prop_map(Step::Delete),
        2 => (any::<prop::sample::Index>(), any_additions()).prop_map(|(pick, additions)| Step::Update(pick, additions)),
        3 => Just(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

/// Promotes the first link from `target` on, if there is one.
fn promote(model: &mut BTreeMap<u64, Record>, target: u64) -> Option<Seq> {
    let (&seq, record) = model.range_mut(target..).find(|(_, record)| record.linked)?;
    record.linked = false;
    Some(Seq(seq))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Inserts, replaces, updates and deletes in random batches, and reopens the file from time to time, with and
    /// without closing it. The file must contain the same records as the model.
    #[test]
    fn the_file_holds_what_was_committed(steps in prop::collection::vec(any_step(), 1..60), close in any::<bool>()) {
        let place = place();
        let (mut store, mut writer) = Store::create(&place.path, &meta()).unwrap();
        let (mut model, mut batch, mut last) = (BTreeMap::<u64, Record>::new(), Vec::new(), 0);
        for step in steps.into_iter().chain([Step::Commit]) {
            last += 1;
            match step {
                Step::Insert(record) => {
                    let record = Record { seq: Seq(last), ..record };
                    model.insert(last, record.clone());
                    batch.push(Change::Insert(Arc::new(record)));
                }
                Step::Replace(pick, record) if !model.is_empty() => {
                    let target = *pick.get(&model.keys().copied().collect::<Vec<_>>());
                    let record = Record { seq: Seq(last), ..record };
                    model.remove(&target);
                    let promoted = promote(&mut model, target);
                    model.insert(last, record.clone());
                    batch.push(Change::Replace { record: Arc::new(record), target: Seq(target), promoted });
                }
                Step::Delete(pick) if !model.is_empty() => {
                    let target = *pick.get(&model.keys().copied().collect::<Vec<_>>());
                    model.remove(&target);
                    let promoted = promote(&mut model, target);
                    batch.push(Change::Delete { seq: Seq(last), target: Seq(target), promoted });
                }
                Step::Update(pick, additions) if !model.is_empty() => {
                    let target = *pick.get(&model.keys().copied().collect::<Vec<_>>());
                    let held = model.get_mut(&target).unwrap();
                    *held = held.clone().with_additions(additions.clone());
                    batch.push(Change::Update { seq: Seq(last), target: Seq(target), additions: Box::new(additions) });
                }
                Step::Replace(..) | Step::Delete(_) | Step::Update(..) => {}
                Step::Commit => writer.commit(&std::mem::take(&mut batch), Seq(last)).unwrap(),
                Step::Reopen => {
                    writer.commit(&std::mem::take(&mut batch), Seq(last)).unwrap();
                    if close { writer.close().unwrap() } else { drop(writer) }
                    let opened;
                    (store, writer, opened) = Store::open(&place.path).unwrap();
                    prop_assert_eq!((opened.last_seq, opened.documents), (Seq(last), model.len() as u64));
                }
            }
        }
        prop_assert_eq!(seqs(&store).unwrap(), model.keys().copied().collect::<Vec<_>>());
        for (seq, record) in &model {
            let held = store.record(Seq(*seq)).unwrap();
            prop_assert_eq!(held.as_ref(), Some(record));
        }
        let listed: Vec<_> = store.page(Seq(0), 1000).unwrap().into_iter().map(|document| document.id).collect();
        prop_assert_eq!(listed, model.values().map(|record| record.id.clone()).collect::<Vec<_>>());
        for seq in (1..=last).filter(|seq| !model.contains_key(seq)) {
            prop_assert_eq!(store.head(Seq(seq), true).unwrap(), None);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// If a crash cuts the log at any place, the commits before the cut are read, and the file is never refused. This
    /// is true only without the `-shm` file, which would show how long the log was.
    #[test]
    fn a_cut_log_keeps_the_commits_before_the_cut(at in any::<prop::sample::Index>()) {
        let (place, log) = left_open(8);
        let bytes = fs::read(&log).unwrap();
        fs::remove_file(place.dir.path().join("pages.sqlite-shm")).unwrap();
        fs::write(&log, &bytes[..at.index(bytes.len() + 1)]).unwrap();
        let (store, _writer, opened) = Store::open(&place.path).unwrap();
        prop_assert!(opened.documents.is_multiple_of(3));
        prop_assert_eq!(seqs(&store).unwrap(), (1..=opened.documents).collect::<Vec<_>>());
    }

    /// A flipped bit in the log is refused, is harmless, or is within the last commit and looks like a torn write.
    #[test]
    fn a_flipped_bit_in_the_log_drops_no_earlier_commit(at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let (place, log) = left_open(8);
        let mut bytes = fs::read(&log).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(&log, bytes).unwrap();
        let Ok((store, _writer, opened)) = Store::open(&place.path) else { return Ok(()) };
        prop_assert!(opened.documents >= 21, "{} documents are left", opened.documents);
        prop_assert_eq!(seqs(&store).unwrap(), (1..=opened.documents).collect::<Vec<_>>());
    }

    /// A flipped bit in a closed file is refused, or changes nothing that is read.
    #[test]
    fn a_flipped_bit_is_never_another_answer(at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let place = filled(60);
        let mut bytes = fs::read(&place.path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(&place.path, bytes).unwrap();
        let Ok((store, _writer, opened)) = Store::open(&place.path) else { return Ok(()) };
        prop_assert_eq!(opened.meta, meta());
        let seen = Mutex::new(BTreeMap::new());
        let visit = |row: SignatureRow<'_>| drop(seen.lock().unwrap().insert(row.seq.0, row.bytes.to_vec()));
        if store.scan(2, visit, &AtomicU64::new(0)).is_err() {
            return Ok(());
        }
        let wanted: Vec<_> = (1..=60).map(record).collect();
        let signatures: Vec<_> = wanted.iter().map(|record| record.signature.clone()).collect();
        prop_assert_eq!(seen.into_inner().unwrap().into_values().collect::<Vec<_>>(), signatures);
        for wanted in &wanted {
            if let Ok(held) = store.record(wanted.seq) {
                prop_assert_eq!(held.as_ref(), Some(wanted));
            }
        }
        if let Ok(page) = store.page(Seq(0), 100) {
            let ids = |records: &[Record]| records.iter().map(|record| record.id.clone()).collect::<Vec<_>>();
            prop_assert_eq!(page.into_iter().map(|document| document.id).collect::<Vec<_>>(), ids(&wanted));
        }
    }
}
