//! A spec, with its text and its fingerprint computed once. Specs are shared: each signature has only a pointer to its
//! spec.

use std::sync::{Arc, Mutex};

use hapax_core::{Fingerprint, SignatureShape, SketchKind, Spec, TextSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// The specs that were named lately, by pickles or callers. A program uses few specs.
static NAMED: Mutex<Vec<Arc<SharedSpec>>> = Mutex::new(Vec::new());
const NAMED_MAX: usize = 64;

/// A spec, shared by the signatures that were made with it.
pub(crate) struct SharedSpec {
    spec: Spec,
    text: String,
    fingerprint: Fingerprint,
    /// One object, so that a pickle of many signatures contains the text only once.
    object: PyOnceLock<Py<PyString>>,
}

impl SharedSpec {
    pub(crate) fn new(spec: Spec) -> Arc<Self> {
        let (text, fingerprint) = (spec.to_string(), spec.fingerprint());
        Arc::new(Self { spec, text, fingerprint, object: PyOnceLock::new() })
    }

    /// Returns the spec with this text. The last few specs are cached.
    pub(crate) fn named(text: &str) -> PyResult<Arc<Self>> {
        let mut named = NAMED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = named.iter().find(|known| known.text == text) {
            return Ok(Arc::clone(known));
        }
        let spec = Spec::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let shared = Self::new(spec);
        if named.len() == NAMED_MAX {
            named.remove(0);
        }
        named.push(Arc::clone(&shared));
        Ok(shared)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text as an object, always the same one.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        self.object.get_or_init(py, || PyString::new(py, &self.text).unbind()).bind(py)
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn shape(&self) -> SignatureShape {
        self.spec.shape()
    }

    pub(crate) fn sketch(&self) -> Option<SketchKind> {
        self.spec.sketch()
    }

    /// Returns the part that names the sketch, such as `fss256x8`.
    pub(crate) fn sketch_name(&self) -> String {
        if self.sketch() == Some(SketchKind::None) {
            return SketchKind::None.name().to_owned();
        }
        let SignatureShape { k, bits } = self.shape();
        format!("{}{k}x{bits}", self.sketch().map_or("external", SketchKind::name))
    }

    /// Fails if signatures of the two specs cannot be compared.
    pub(crate) fn check_same(&self, other: &Self) -> PyResult<()> {
        if self.fingerprint == other.fingerprint {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "signatures of different specs cannot be compared: {} and {}; sign both texts with the same Signer",
            self.text, other.text
        )))
    }
}

/// The parts of a text spec, as keyword arguments give them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Parts<'a> {
    pub fold: Option<&'a str>,
    pub marks: Option<&'a str>,
    pub digits: Option<&'a str>,
    pub shingle: Option<&'a str>,
    pub sketch: Option<&'a str>,
}

impl Parts<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { fold, marks, digits, shingle, sketch } = self;
        [fold, marks, digits, shingle, sketch].iter().all(|part| part.is_none())
    }

    /// Returns the spec of these parts, with the key of this fingerprint. Absent parts have their default.
    pub(crate) fn spec(&self, key: Option<u64>) -> PyResult<TextSpec> {
        let Self { fold, marks, digits, shingle, sketch } = self;
        let named = TextSpec::default().to_string();
        let default = |name: &str| {
            let field = named.split(';').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            field.expect("the default spec has every field")
        };
        let text = format!(
            "hapax1;unicode=17;fold={};marks={};digits={};shingle={};sketch={};key=none",
            fold.unwrap_or_else(|| default("fold")),
            marks.unwrap_or_else(|| default("marks")),
            digits.unwrap_or_else(|| default("digits")),
            shingle.unwrap_or_else(|| default("shingle")),
            sketch.unwrap_or_else(|| default("sketch")),
        );
        Ok(TextSpec { key, ..text_spec(&text)? })
    }
}

/// Reads the text of a spec that signs texts.
pub(crate) fn text_spec(text: &str) -> PyResult<TextSpec> {
    match Spec::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))? {
        Spec::Text(spec) => Ok(spec),
        Spec::External { .. } => Err(PyValueError::new_err(format!(
            "{text} is the spec of signatures that are made elsewhere; a Signer needs the spec of a text"
        ))),
    }
}

/// Reads a sketch such as `fss256x8`.
pub(crate) fn sketch_of(name: &str) -> PyResult<(SketchKind, SignatureShape)> {
    let TextSpec { sketch, shape, .. } = Parts { sketch: Some(name), ..Parts::default() }.spec(None)?;
    Ok((sketch, shape))
}
