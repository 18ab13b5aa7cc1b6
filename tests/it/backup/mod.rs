//! Backups of a running server, and their contents: the state at the backup's position, whole or not at all.

mod restoring;
mod running;
mod series;
mod steps;
