//! The upper bounds of the buckets of histograms. `names.rs` says which histogram has which bounds.

/// From 10 µs to 10 s, in steps of 1, 2.5, 5.
pub const SECONDS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0,
];
/// From 0 to 4096, the default limit on candidates.
pub const CANDIDATES: &[f64] =
    &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
/// From 1 to 4096, the default limit on the operations of one transaction.
pub const COMMIT_SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
/// From 0 to a million documents that share a band key.
pub const BUCKET_SIZES: &[f64] =
    &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 1_048_576.0];

/// From 0 shingles to a million.
pub const SHINGLES: &[f64] =
    &[0.0, 1.0, 4.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 16_384.0, 65_536.0, 1_048_576.0];
/// From 0.5 to 1, finer around the thresholds that are used most.
pub const SIMILARITIES: &[f64] =
    &[0.5, 0.6, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.975, 0.99, 0.999, 1.0];
/// From a second to two years.
pub const AGES: &[f64] = &[
    1.0,
    10.0,
    60.0,
    600.0,
    3600.0,
    21_600.0,
    86_400.0,
    259_200.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    31_536_000.0,
    63_072_000.0,
];

/// From 0 to 1, finer near 0, where most documents are.
pub const RATIOS: &[f64] = &[0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
