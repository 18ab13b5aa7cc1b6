//! Backups of a running server. A folder either contains the complete state at the backup's position, or is not a
//! backup.

mod restoring;
mod running;
mod series;
mod steps;
