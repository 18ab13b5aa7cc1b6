//! hapax: near-duplicate lookup as a service. The modules are in the order of their floors, F1 to F8. A module imports
//! only from floors with a lower number, or from its own folder.

// F1
mod plain_file;
pub mod telemetry;
pub mod types;

// F2
pub mod audit;
pub mod cpu;
pub mod extract;
pub mod grams;
pub mod index;
pub mod keys;
pub mod store;
pub mod tls;

// F3
pub mod verdicts;

// F4
pub mod corpus;
pub mod engine;
pub mod load;
pub mod redis;

// F5
pub mod collections;
pub mod input;

// F6
pub mod config;

// F7
pub mod http;

// F8
pub mod cli;
