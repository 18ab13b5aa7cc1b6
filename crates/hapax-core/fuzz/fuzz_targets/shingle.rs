//! Token hashes -> shingles. All instructions give the same shingles, one for each window.

#![no_main]

use hapax_core::{SignScratch, Shingling, Stages};
use hapax_core_fuzz::Case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else { return };
    let text = case.text();
    let hashes: Vec<u64> = case.bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let mut expected: Option<(Vec<u64>, Vec<u64>)> = None;
    for pipeline in case.pipelines() {
        let (Shingling::Word(width) | Shingling::Char(width)) = pipeline.spec().shingling;
        let of_hashes = Stages::new(&pipeline).shingles(&hashes).to_owned();
        let windows = (hashes.len() + 1).saturating_sub(usize::from(width)).max(usize::from(!hashes.is_empty()));
        assert_eq!(of_hashes.len(), windows);
        let of_text = pipeline.shingle_set(&mut SignScratch::default(), &text);
        assert!(of_text.is_sorted_by(|a, b| a < b));
        let made = (of_hashes, of_text);
        assert_eq!(*expected.get_or_insert_with(|| made.clone()), made);
    }
});
