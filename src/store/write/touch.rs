//! When a document was last seen -> its row, with the row's checksum and the ledger.

use rusqlite::params;

use super::writer::Writer;
use crate::store::error::Result;
use crate::store::format::ledger::Ledger;
use crate::store::format::rows::{SignatureRow, signature_columns};
use crate::types::{Seq, TimestampMs};

impl Writer {
    /// Notes when `target` was last seen. A document that is gone is passed over; so is a damaged row, with a word in the
    /// log: whoever reads it is told, and a time is no reason to refuse all writes.
    pub(in crate::store) fn touch(&mut self, target: Seq, seen: TimestampMs, ledger: &mut Ledger) -> Result<()> {
        let Some((old, new)) = self.sums(target, seen)? else { return Ok(()) };
        let sql = "UPDATE signature SET seen_ms = ?2, sum = ?3 WHERE seq = ?1";
        self.run(target, sql, params![target.0 as i64, seen.0, new as i64])?;
        ledger.signatures.exchange(old, new);
        Ok(())
    }

    /// The sum of the row as it stands, and with another time.
    fn sums(&mut self, target: Seq, seen: TimestampMs) -> Result<Option<(u64, u64)>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut read = || {
            let sql = concat!("SELECT ", signature_columns!(), " FROM signature s WHERE s.seq = ?1");
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([target.0 as i64])?;
            let Some(row) = rows.next()? else {
                let lost = self
                    .connection
                    .prepare_cached("SELECT 1 FROM document WHERE seq = ?1")?
                    .exists([target.0 as i64])?;
                if lost {
                    let collection = &self.collection;
                    tracing::error!(
                        collection,
                        seq = target.0,
                        "a record has lost its signature; it is not seen again"
                    );
                }
                return Ok(None);
            };
            Ok(match SignatureRow::read(row, 0, &mut buffer) {
                Ok((row, old)) => Some((old, SignatureRow { seen, ..row }.sum(&mut buffer))),
                Err(flaw) => {
                    let collection = &self.collection;
                    tracing::error!(
                        collection,
                        seq = target.0,
                        flaw,
                        "a record is damaged; when it was seen stays as it is"
                    );
                    None
                }
            })
        };
        let sums = read().map_err(|error| self.sqlite(error));
        self.buffer = buffer;
        sums
    }
}
