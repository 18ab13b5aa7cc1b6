//! Backups of a running server. Each contains the complete state at the backup's position, or it is not a backup.

mod restoring;
mod running;
mod series;
mod steps;
