//! Why `longshore.toml` cannot be used, in the words of its readers.

use toml::de::Error;

/// Longer names get no suggestion.
const NAME_CHARS_MAX: usize = 64;
/// Lowest similarity of a suggestion, from 0 for no letter in common to 1 for the same name.
const SIMILARITY_MIN: f64 = 0.6;

/// Types of values in the words of the parser and of people.
const EXPECTED: &[(&str, &str)] = &[
    ("u8", "a whole number from 0 on"),
    ("u16", "a whole number from 0 on"),
    ("u32", "a whole number from 0 on"),
    ("u64", "a whole number from 0 on"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "a text"),
    ("a sequence", "a list"),
    ("a map", "a table"),
];
const GIVEN: &[(&str, &str)] = &[
    ("string ", "the text "),
    ("integer ", "the number "),
    ("floating point ", "the number "),
    ("boolean ", ""),
    ("sequence", "a list"),
    ("map", "a table"),
];

/// Returns the name that is probably meant, if any, and the lines that show the error in its place in `text`.
pub(super) fn explained(text: &str, error: &Error) -> (Option<String>, Vec<String>) {
    let message = error.message();
    let meant = meant(message);
    let words = match meant {
        // The other known names would hide the one that is meant.
        Some(_) => message.split_once(", expected ").map(|(unknown, _)| unknown.to_owned()),
        None => wrong_type(message, &field(text, error)),
    };
    let shown = error.to_string();
    let shown = words.map_or_else(|| shown.clone(), |words| shown.replace(message, &words));
    (meant.map(str::to_owned), shown.lines().map(str::to_owned).collect())
}

/// Returns the known name that is most similar to the unknown one, without regard to case and underscores. `message`
/// quotes the unknown name first and then the known ones.
fn meant(message: &str) -> Option<&str> {
    let quoted =
        ["unknown field `", "unknown variant `"].iter().find_map(|start| message.strip_prefix(start));
    let mut names = quoted?.split('`').step_by(2);
    let folded = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let unknown = folded(names.next().filter(|name| name.len() <= NAME_CHARS_MAX)?);
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&unknown, &folded(known));
    let similar =
        names.map(|known| (similarity(known), known)).filter(|(similarity, _)| *similarity >= SIMILARITY_MIN);
    similar.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, known)| known)
}

/// Returns the message about a value of the wrong type in other words; `None` for any other message.
fn wrong_type(message: &str, field: &str) -> Option<String> {
    let rest = ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start))?;
    // The given text may have the word, too.
    let (given, expected) = rest.rsplit_once(", expected ")?;
    let given =
        GIVEN.iter().find_map(|(theirs, ours)| Some(format!("{ours}{}", given.strip_prefix(theirs)?)));
    let given = given.unwrap_or_else(|| rest.to_owned()).replace('`', "");
    let known = EXPECTED.iter().find(|(theirs, _)| *theirs == expected).map(|(_, ours)| *ours);
    let expected = known.unwrap_or(if expected.starts_with("struct ") { "a table" } else { expected });
    Some(format!("{field} must be {expected}, not {given}"))
}

/// The quoted name of the field whose value has the error, if it is in the same line.
fn field(text: &str, error: &Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.split_once('=').map_or_else(|| "the value".to_owned(), |(name, _)| format!("`{}`", name.trim()))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use longshore_client::EndpointSpec;

    use super::*;

    fn check(texts: &[&str], expected: &Expect) {
        let shown = texts.iter().map(|text| {
            let error = toml::from_str::<EndpointSpec>(text).unwrap_err();
            let (meant, lines) = explained(text, &error);
            format!("{meant:?}\n{}\n", lines.join("\n"))
        });
        expected.assert_eq(&shown.collect::<String>());
    }

    #[test]
    fn a_wrong_type_has_the_field_what_was_given_and_what_is_expected() {
        let texts = [
            "workersMin = 0\nworkersMax = \"3\"\n",
            "idleTimeout = -1\n",
            "name = 3\n",
            "gpuTypeIds = \"L4\"\n",
            "flashboot = 1.5\n",
        ];
        check(
            &texts,
            &expect![[r#"
            None
            TOML parse error at line 2, column 14
              |
            2 | workersMax = "3"
              |              ^^^
            `workersMax` must be a whole number from 0 on, not the text "3"
            None
            TOML parse error at line 1, column 15
              |
            1 | idleTimeout = -1
              |               ^^
            `idleTimeout` must be a whole number from 0 on, not the number -1
            None
            TOML parse error at line 1, column 8
              |
            1 | name = 3
              |        ^
            `name` must be a text, not the number 3
            None
            TOML parse error at line 1, column 14
              |
            1 | gpuTypeIds = "L4"
              |              ^^^^
            `gpuTypeIds` must be a list, not the text "L4"
            None
            TOML parse error at line 1, column 13
              |
            1 | flashboot = 1.5
              |             ^^^
            `flashboot` must be true or false, not the number 1.5
        "#]],
        );
    }

    #[test]
    fn a_near_name_hides_the_list_of_all_names() {
        check(
            &["workerMax = 3\n", "computeType = \"GPUS\"\n"],
            &expect![[r#"
            Some("workersMax")
            TOML parse error at line 1, column 1
              |
            1 | workerMax = 3
              | ^^^^^^^^^
            unknown field `workerMax`
            Some("GPU")
            TOML parse error at line 1, column 15
              |
            1 | computeType = "GPUS"
              |               ^^^^^^
            unknown variant `GPUS`
        "#]],
        );
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        check(
            &["workersMax = zz\n", "computeType = \"zzz\"\n"],
            &expect![[r#"
            None
            TOML parse error at line 1, column 14
              |
            1 | workersMax = zz
              |              ^^
            string values must be quoted, expected literal string
            None
            TOML parse error at line 1, column 15
              |
            1 | computeType = "zzz"
              |               ^^^^^
            unknown variant `zzz`, expected `GPU` or `CPU`
        "#]],
        );
    }
}
