//! Text -> canonical text. The result is the same with all instructions, and a second pass changes nothing.

#![no_main]

use hapax_core::Stages;
use hapax_core_fuzz::Case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else { return };
    let text = case.text();
    let mut expected: Option<String> = None;
    for pipeline in case.pipelines() {
        let mut stages = Stages::new(&pipeline);
        let canonical = stages.canonical(&text).to_owned();
        assert_eq!(canonical, pipeline.canonical(&text));
        // The only exception: a second pass removes a BOM that the first pass moved to the front.
        if !canonical.starts_with('\u{feff}') {
            assert_eq!(stages.canonical(&canonical), canonical);
        }
        assert_eq!(*expected.get_or_insert_with(|| canonical.clone()), canonical);
    }
});
