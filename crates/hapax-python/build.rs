//! On macOS, a module for Python links only if it is told that Python will have the missing symbols.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
