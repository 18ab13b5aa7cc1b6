//! Items that are compiled for tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

pub fn tests_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(|meta| needs_test(&meta))
    })
}

/// Returns whether a condition holds in tests only.
fn needs_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).expect("conditions")
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => parts(list).iter().all(needs_test),
        _ => false,
    }
}

#[test]
fn a_condition_that_only_tests_meet_is_known() {
    let only = |text: &str| {
        let item: syn::ItemFn = syn::parse_str(&format!("{text} fn f() {{}}")).expect("a function");
        tests_only(&item.attrs)
    };
    assert!(only("#[cfg(test)]") && only("#[test]") && only("#[cfg(all(test, not(loom)))]"));
    assert!(only("#[cfg(any(test, all(test, unix)))]"));
    assert!(!only("#[cfg(not(test))]") && !only("#[cfg(any(test, unix))]") && !only("#[inline]") && !only(""));
}
