//! Claims about the whole service, each tested against the real thing. One binary, so that it links once.
#![allow(clippy::print_stdout, clippy::print_stderr, unreachable_pub, missing_docs)]

mod auth;
mod backup;
mod best_match;
mod bounds;
mod bulk;
mod churn;
mod cli;
mod clusters;
mod commit_window;
mod config;
mod crash;
mod damaged;
mod errors;
mod exact;
mod expiry;
mod export;
mod floors;
mod hostile_ids;
mod hot_buckets;
mod leftovers;
mod linearizable;
mod logs;
mod long_documents;
mod memory_budget;
mod metrics;
mod not_kept;
mod openapi;
mod quality;
mod races;
mod ranks;
mod readme;
mod reference_tokens;
mod routes;
mod support;
mod upgrade;
