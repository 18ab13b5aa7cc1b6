//! Writes Parquet files, both valid and faulty ones.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{Field, Schema};
use hapax_core::{Pipeline, SignScratch, Signed, Spec};
use parquet::arrow::ArrowWriter;

/// A table, and the metadata of its file.
#[derive(Clone)]
pub struct Table {
    pub columns: Vec<(&'static str, ArrayRef)>,
    pub metadata: HashMap<String, String>,
}

/// The spec of a server without any settings.
pub fn spec() -> Spec {
    hapax::config::defaults().collections.default_settings.spec
}

impl Table {
    /// Signs texts as pyhapax does, and gives them these ids.
    pub fn of(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let Spec::Text(text_spec) = spec() else { panic!("the default is a spec for texts") };
        let pipeline = Pipeline::new(&text_spec, None).unwrap();
        let mut scratch = SignScratch::default();
        let (ids, texts): (Vec<String>, Vec<String>) = texts.into_iter().unzip();
        let signed: Vec<Option<Signed>> = texts.iter().map(|text| pipeline.sign(&mut scratch, text)).collect();
        let bytes = |of: fn(&Signed) -> Vec<u8>, width| -> ArrayRef {
            let values = signed.iter().map(|signed| signed.as_ref().map(of));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, width).unwrap())
        };
        let shingles = signed.iter().map(|signed| Some(signed.as_ref().map_or(0, |signed| signed.shingles)));
        let fingerprint = spec().fingerprint().to_string();
        let metadata = [("hapax.spec", spec().to_string()), ("hapax.fingerprint", fingerprint)];
        Self {
            columns: vec![
                ("id", Arc::new(StringArray::from(ids))),
                ("signature", bytes(|signed| signed.signature.clone(), 256)),
                ("content_hash", bytes(|signed| signed.content.0.to_be_bytes().to_vec(), 16)),
                ("shingles", Arc::new(UInt64Array::from_iter(shingles))),
            ],
            metadata: metadata.map(|(key, value)| (key.to_owned(), value)).into(),
        }
    }

    /// A table without columns.
    pub fn empty() -> Self {
        Self { columns: Vec::new(), metadata: HashMap::new() }
    }

    /// Replaces a column, or adds it.
    pub fn with(mut self, name: &'static str, values: impl Array + 'static) -> Self {
        self.columns.retain(|(column, _)| *column != name);
        self.columns.push((name, Arc::new(values)));
        self
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let fields: Vec<_> =
            self.columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields).with_metadata(self.metadata.clone()));
        let columns = self.columns.iter().map(|(_, values)| Arc::clone(values)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.bytes()).unwrap();
    }
}
