//! A string with placeholders -> the sentence that a person reads, with example values.

use proc_macro2::TokenStream;

use super::examples;

/// A string of a source file.
#[derive(Debug)]
pub struct Template {
    source: String,
    /// The expressions that fill the placeholders. `None` if the string is not a template, so braces are ordinary
    /// characters.
    arguments: Option<Vec<String>>,
    /// The types of a tuple variant's fields.
    fields: Vec<String>,
}

enum Part<'a> {
    Words(String),
    /// An expression and how it is shown: `path.display()` and `?`.
    Value(String, &'a str),
}

impl Template {
    pub fn plain(source: String) -> Self {
        Self { source, arguments: None, fields: Vec::new() }
    }

    pub fn filled(source: String, arguments: Vec<String>) -> Self {
        Self { source, arguments: Some(arguments), fields: Vec::new() }
    }

    pub fn with_fields(self, fields: Vec<String>) -> Self {
        Self { fields, ..self }
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn arguments(&self) -> &[String] {
        self.arguments.as_deref().unwrap_or_default()
    }

    /// Whether the string is more than names and values. It must have two words, and at least one of them must come
    /// from the string itself.
    pub fn is_sentence(&self) -> bool {
        let words = self.with_values("0");
        self.has_words() && words.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count() > 1
    }

    /// Whether the string is only one value. In this case, its words are in another string.
    fn is_one_value(&self) -> bool {
        let source = self.source.trim();
        self.arguments.is_some() && source.starts_with('{') && source.find('}') == Some(source.len() - 1)
    }

    fn has_words(&self) -> bool {
        self.with_values(" ").split(|c: char| !c.is_alphabetic()).any(|word| word.chars().count() > 1)
    }

    fn with_values(&self, value: &str) -> String {
        let shown = |part| match part {
            Part::Words(words) => words,
            Part::Value(..) => value.to_owned(),
        };
        self.parts().into_iter().map(shown).collect()
    }

    /// Returns the sentence. `Err` lists the expressions that have no example.
    pub fn read(&self, place: &str) -> Result<String, Vec<String>> {
        if self.is_one_value() {
            return Ok("(a text from elsewhere)".to_owned());
        }
        let (mut text, mut missing) = (String::new(), Vec::new());
        for part in self.parts() {
            match part {
                Part::Words(words) => text.push_str(&words),
                Part::Value(expression, format) => {
                    let Some(example) = examples::of(place, &expression) else {
                        missing.push(expression);
                        continue;
                    };
                    let quoted = format.ends_with('?') && example.parse::<f64>().is_err();
                    text.push_str(&if quoted { format!("{example:?}") } else { example.to_owned() });
                }
            }
        }
        if missing.is_empty() { Ok(text) } else { Err(missing) }
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let Some(arguments) = &self.arguments else { return vec![Part::Words(self.source.clone())] };
        let (mut parts, mut words, mut next) = (Vec::new(), String::new(), 0);
        let mut rest = self.source.as_str();
        while let Some(at) = rest.find(['{', '}']) {
            words.push_str(&rest[..at]);
            let (brace, behind) = (&rest[at..=at], &rest[at + 1..]);
            if behind.starts_with(brace) {
                words.push_str(brace);
                rest = &behind[1..];
                continue;
            }
            let end = behind.find('}').expect("a placeholder ends");
            let (name, format) = behind[..end].split_once(':').unwrap_or((&behind[..end], ""));
            parts.push(Part::Words(std::mem::take(&mut words)));
            parts.push(Part::Value(self.expression(arguments, name, &mut next), format));
            rest = &behind[end + 1..];
        }
        words.push_str(rest);
        parts.push(Part::Words(words));
        parts
    }

    fn expression(&self, arguments: &[String], name: &str, next: &mut usize) -> String {
        let number = if name.is_empty() {
            *next += 1;
            Some(*next - 1)
        } else {
            name.parse().ok()
        };
        let found = match number {
            Some(number) => arguments.get(number).or_else(|| self.fields.get(number)),
            None => None,
        };
        let named = || arguments.iter().find_map(|argument| argument.strip_prefix(&format!("{name}=")));
        found.map(String::as_str).or_else(named).unwrap_or(name).to_owned()
    }
}

/// Writes an expression without spaces, so that its layout does not matter.
pub fn no_spaces(tokens: TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}
