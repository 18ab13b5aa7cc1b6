//! The series that make each alert fire, and the series that do not. The values of a series are written minute by
//! minute, in the notation of promtool.

/// One alert.
pub(super) struct Case {
    pub(super) alert: &'static str,
    pub(super) fires: &'static [(&'static str, &'static str)],
    pub(super) quiet: &'static [(&'static str, &'static str)],
    /// The time at which the state of the alert is checked.
    pub(super) at: &'static str,
}

pub(super) const CASES: &[Case] = &[
    Case {
        alert: "HapaxRedisUnfit",
        fires: &[("hapax_redis_unfit", "0x2 1x10")],
        quiet: &[("hapax_redis_unfit", "0x2 1 0x9")],
        at: "8m",
    },
    Case {
        alert: "HapaxRedisGroupsLarge",
        fires: &[("hapax_redis_postings_per_group{collection='default'}", "390+1x40")],
        quiet: &[("hapax_redis_postings_per_group{collection='default'}", "400x40")],
        at: "30m",
    },
    Case {
        alert: "HapaxRedisMemory",
        // Two servers see the same node.
        fires: &[
            ("hapax_redis_memory_used_bytes{node='n:1',instance='a'}", "90x40"),
            ("hapax_redis_memory_max_bytes{node='n:1',instance='a'}", "100x40"),
            ("hapax_redis_memory_used_bytes{node='n:1',instance='b'}", "91x40"),
            ("hapax_redis_memory_max_bytes{node='n:1',instance='b'}", "100x40"),
        ],
        quiet: &[
            ("hapax_redis_memory_used_bytes{node='n:1'}", "80x40"),
            ("hapax_redis_memory_max_bytes{node='n:1'}", "100x40"),
            // A node without a limit.
            ("hapax_redis_memory_used_bytes{node='n:2'}", "90x40"),
            ("hapax_redis_memory_max_bytes{node='n:2'}", "0x40"),
        ],
        at: "30m",
    },
    Case {
        alert: "HapaxRedisNodeNotReady",
        fires: &[("hapax_redis_sent_again_total{node='n:1',reason='not_ready'}", "0x5 5+5x20")],
        // A failover takes a minute.
        quiet: &[
            ("hapax_redis_sent_again_total{node='n:1',reason='not_ready'}", "0x5 500x20"),
            ("hapax_redis_sent_again_total{node='n:1',reason='no_script'}", "0+5x25"),
        ],
        at: "15m",
    },
    Case {
        alert: "HapaxRedisShortAcknowledgements",
        fires: &[("hapax_redis_short_acknowledgements_total", "0x5 5+5x40")],
        // One replica is slow now and then.
        quiet: &[("hapax_redis_short_acknowledgements_total", "0x5 50x10 51+1x40")],
        at: "30m",
    },
    Case {
        alert: "HapaxRedisPrimaryChanged",
        fires: &[("hapax_redis_replication_ids_changed_total{kind='failover'}", "0x10 1x40")],
        quiet: &[("hapax_redis_replication_ids_changed_total{kind='failover'}", "3x50")],
        at: "15m",
    },
    Case {
        alert: "HapaxRedisRedirects",
        fires: &[("hapax_redis_sent_again_total{node='n:1',reason='ask'}", "0x5 1+1x120")],
        // Slots move for half an hour, and then the node is not ready.
        quiet: &[
            ("hapax_redis_sent_again_total{node='n:1',reason='moved'}", "0x5 1+1x30 31x90"),
            ("hapax_redis_sent_again_total{node='n:1',reason='not_ready'}", "0x35 1+1x90"),
        ],
        at: "90m",
    },
    Case {
        alert: "HapaxRedisAborts",
        fires: &[("hapax_redis_conflicts_total{kind='abort'}", "0x5 2+2x60")],
        // One server was killed, and others wait for each other.
        quiet: &[
            ("hapax_redis_conflicts_total{kind='abort'}", "0x5 500x60"),
            ("hapax_redis_conflicts_total{kind='wait'}", "0+90x65"),
        ],
        at: "45m",
    },
    Case { alert: "HapaxDown", fires: &[("up{job='hapax'}", "0x10")], quiet: &[("up{job='hapax'}", "1x10")], at: "5m" },
    Case {
        alert: "HapaxErrors",
        fires: &[("hapax_http_requests_total{status='500'}", "0x5 1x20")],
        // A busy server and a full index have their own alerts.
        quiet: &[
            ("hapax_http_requests_total{status='503'}", "0+5x30"),
            ("hapax_http_requests_total{status='507'}", "0+5x30"),
            ("hapax_http_requests_total{status='500'}", "1x30"),
        ],
        at: "10m",
    },
    Case {
        alert: "HapaxShedsLoad",
        fires: &[
            ("hapax_http_shed_total{class='single'}", "0+0.6x40"),
            ("hapax_cpu_refused_total", "0+0.6x40"),
            ("hapax_http_requests_total", "0+100x40"),
        ],
        quiet: &[("hapax_http_shed_total{class='single'}", "0+1x40"), ("hapax_http_requests_total", "0+1000x40")],
        at: "30m",
    },
    Case {
        alert: "HapaxQueueNearlyFull",
        fires: &[("hapax_commit_queue_depth", "900x20"), ("hapax_commit_queue_max", "1000x20")],
        quiet: &[
            ("hapax_commit_queue_depth", "500x20"),
            ("hapax_commit_queue_max", "1000x20"),
            ("hapax_cpu_queue_depth", "0x20"),
            ("hapax_cpu_queue_max", "100x20"),
        ],
        at: "10m",
    },
    Case {
        alert: "HapaxSlowSigning",
        fires: &[
            ("hapax_sign_duration_seconds_bucket{le='0.05'}", "0+95x60"),
            ("hapax_sign_duration_seconds_bucket{le='0.1'}", "0+100x60"),
            ("hapax_sign_duration_seconds_bucket{le='+Inf'}", "0+100x60"),
        ],
        quiet: &[
            ("hapax_sign_duration_seconds_bucket{le='0.05'}", "0+100x60"),
            ("hapax_sign_duration_seconds_bucket{le='+Inf'}", "0+100x60"),
        ],
        at: "45m",
    },
    Case {
        alert: "HapaxIncompleteVerdicts",
        fires: &[("hapax_incomplete_verdicts_total", "0+1x60"), ("hapax_verdicts_total", "0+100x60")],
        quiet: &[("hapax_incomplete_verdicts_total", "5x60"), ("hapax_verdicts_total", "0+100x60")],
        at: "45m",
    },
    Case {
        alert: "HapaxPostingsLost",
        fires: &[("hapax_canary_lost_postings_total", "0x5 31x10")],
        quiet: &[("hapax_canary_lost_postings_total", "0x20")],
        at: "10m",
    },
    Case {
        alert: "HapaxCanaryRecallLow",
        fires: &[("hapax_canary_recall_high_ratio", "1x4 0.9x20"), ("hapax_canary_recall_expected_ratio", "0.999x30")],
        quiet: &[("hapax_canary_recall_high_ratio", "0.9x30"), ("hapax_canary_recall_expected_ratio", "0.9x30")],
        at: "15m",
    },
    Case {
        alert: "HapaxGoldenRecallLow",
        fires: &[("hapax_golden_recall_ratio", "1x4 0.94x20")],
        quiet: &[("hapax_golden_recall_ratio", "0.96x20")],
        at: "15m",
    },
    Case {
        alert: "HapaxManyCandidates",
        fires: &[("hapax_check_candidates_sum", "0+6000x60"), ("hapax_check_candidates_count", "0+100x60")],
        quiet: &[("hapax_check_candidates_sum", "0+1000x60"), ("hapax_check_candidates_count", "0+100x60")],
        at: "45m",
    },
    Case {
        alert: "HapaxHotBuckets",
        fires: &[("hapax_bucket_documents_p99", "20000x40")],
        quiet: &[("hapax_bucket_documents_p99", "5000x40")],
        at: "30m",
    },
    Case {
        alert: "HapaxCandidatesWasted",
        // On the first day, two of ten candidates are not matches. Afterwards, nine of ten are not.
        fires: &[
            ("hapax_verified_candidates_total{result='below_threshold'}", "0+2x1440 2970+90x150"),
            ("hapax_verified_candidates_total{result='match'}", "0+8x1440 11530+10x150"),
        ],
        quiet: &[
            ("hapax_verified_candidates_total{result='below_threshold'}", "0+90x1600"),
            ("hapax_verified_candidates_total{result='match'}", "0+10x1600"),
        ],
        at: "26h",
    },
    Case {
        alert: "HapaxRefusesWrites",
        fires: &[("hapax_data_writable", "0x10")],
        quiet: &[("hapax_data_writable", "1x10")],
        at: "5m",
    },
    Case {
        alert: "HapaxCommitFailures",
        fires: &[("hapax_commit_failures_total", "0x5 2x20")],
        quiet: &[("hapax_commit_failures_total", "2x20")],
        at: "10m",
    },
    Case {
        alert: "HapaxCommitsStall",
        fires: &[("hapax_commit_queue_depth", "5x20"), ("hapax_commit_duration_seconds_count", "7x20")],
        quiet: &[("hapax_commit_queue_depth", "5x20"), ("hapax_commit_duration_seconds_count", "0+10x20")],
        at: "10m",
    },
    Case {
        alert: "HapaxDiskSoonFull",
        fires: &[("hapax_data_free_bytes", "100000000000-100000000x200")],
        quiet: &[("hapax_data_free_bytes", "100000000000-1000000x200")],
        at: "3h",
    },
    Case {
        alert: "HapaxCollectionDamaged",
        fires: &[("hapax_collection_damaged", "1x5")],
        quiet: &[("hapax_collection_damaged", "0x5")],
        at: "2m",
    },
    Case {
        alert: "HapaxCollectionNotOpen",
        fires: &[("hapax_collection_open", "0x60"), ("hapax_collection_damaged", "0x60")],
        // A damaged collection has its own alert.
        quiet: &[("hapax_collection_open", "0x60"), ("hapax_collection_damaged", "1x60")],
        at: "45m",
    },
    Case {
        alert: "HapaxScrubErrors",
        // The alert also fires if the damage was there before the first scrape.
        fires: &[("hapax_scrub_errors_total", "1x20")],
        quiet: &[("hapax_scrub_errors_total", "0x20")],
        at: "10m",
    },
    Case {
        alert: "HapaxBackupTooOld",
        fires: &[("hapax_backup_last_success_timestamp_seconds", "0x2400")],
        quiet: &[("hapax_backup_last_success_timestamp_seconds", "0+60x2400")],
        at: "40h",
    },
    Case {
        alert: "HapaxExpiryLate",
        fires: &[("hapax_expiry_lag_seconds", "7200x150")],
        quiet: &[("hapax_expiry_lag_seconds", "60x150")],
        at: "2h",
    },
    Case {
        alert: "HapaxIndexNearBudget",
        fires: &[("hapax_memory_budget_used_ratio", "0.9x40")],
        quiet: &[("hapax_memory_budget_used_ratio", "0.5x40")],
        at: "30m",
    },
    Case {
        alert: "HapaxMemory",
        fires: &[("hapax_memory_anonymous_bytes", "95x40"), ("hapax_memory_max_bytes", "100x40")],
        quiet: &[("hapax_memory_anonymous_bytes", "50x40"), ("hapax_memory_max_bytes", "100x40")],
        at: "30m",
    },
    Case {
        alert: "HapaxKeysFileBad",
        fires: &[("hapax_keys_file_bad", "1x10")],
        quiet: &[("hapax_keys_file_bad", "0x10")],
        at: "5m",
    },
    Case {
        alert: "HapaxAuditLinesDropped",
        fires: &[("hapax_audit_dropped_total", "0x5 3x20")],
        quiet: &[("hapax_audit_dropped_total", "3x20")],
        at: "10m",
    },
    Case {
        alert: "HapaxCertificateNotReloaded",
        fires: &[("hapax_tls_reload_errors_total", "0+60x30")],
        quiet: &[("hapax_tls_reload_errors_total", "600x30")],
        at: "15m",
    },
    Case {
        alert: "HapaxCertificateExpiresSoon",
        fires: &[("hapax_tls_certificate_expiry_timestamp_seconds", "86400x20")],
        quiet: &[("hapax_tls_certificate_expiry_timestamp_seconds", "100000000x20")],
        at: "10m",
    },
    Case {
        alert: "HapaxKeyExpiresSoon",
        fires: &[("hapax_keys_next_expiry_timestamp_seconds", "86400x20")],
        quiet: &[("hapax_keys_next_expiry_timestamp_seconds", "100000000x20")],
        at: "10m",
    },
];
