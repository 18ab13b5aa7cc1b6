pub(crate) mod library;
