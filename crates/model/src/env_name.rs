//! The names of variables in the environment of workers.

/// The form of a variable's name: what every shell and every language can read.
pub const ENV_NAME_PATTERN: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// Whether a text has the form of a variable's name, [`ENV_NAME_PATTERN`].
pub fn is_env_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_of_the_pattern() {
        for name in ["A", "a", "_", "_1", "HF_TOKEN", "a9", &["A"; 300].concat()] {
            assert!(is_env_name(name), "{name}");
        }
        for text in ["", "1A", "A-B", "A.B", "A B", "A=B", "A\0", "Ä", "AÄ", "A\n", " A", "$A", "A٣"] {
            assert!(!is_env_name(text), "{text:?}");
        }
    }
}
