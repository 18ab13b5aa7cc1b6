//! Canonical text -> token hashes. The hashes are the same with all instructions, and equal to the hashes of the tokens
//! that `Pipeline::tokens` returns.

#![no_main]

use hapax_core::{Stages, TOKEN_BYTES_MAX};
use hapax_core_fuzz::Case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else { return };
    let text = case.text();
    let mut expected: Option<Vec<u64>> = None;
    for pipeline in case.pipelines() {
        let tokens = pipeline.tokens(&text);
        assert!(tokens.iter().all(|token| !token.is_empty() && token.len() <= TOKEN_BYTES_MAX));
        let named: Vec<u64> = tokens.iter().map(|token| pipeline.token_hash(token)).collect();
        assert_eq!(Stages::new(&pipeline).token_hashes(&pipeline.canonical(&text)), named);
        assert_eq!(*expected.get_or_insert_with(|| named.clone()), named);
    }
});
