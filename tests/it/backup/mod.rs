//! Backups of a server at work, and what comes back: the state at the backup's position, whole or not at all.

mod restoring;
mod running;
mod series;
mod steps;
