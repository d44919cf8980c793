//! The known name that someone who wrote another one probably meant.

/// Longer names are not compared: nobody mistypes that much, and the comparison is quadratic.
const CHARS_MAX: usize = 64;

/// The name among `known` that takes the fewest edits to get to, whatever its case. None for a name that is
/// far too long.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(CHARS_MAX + 1).flat_map(char::to_lowercase).collect();
    if name.len() > CHARS_MAX {
        return None;
    }
    known.min_by_key(|known| edits(&name, &known.to_lowercase()))
}

/// How many letters must be inserted, removed or replaced (Levenshtein's distance).
fn edits(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (line, wanted) in to.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, letter) in from.iter().enumerate() {
            let replaced = diagonal + usize::from(*letter != wanted);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[from.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (from, to, distance) in
            [("", "", 0), ("a", "", 1), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            let from: Vec<char> = from.chars().collect();
            assert_eq!(edits(&from, to), distance);
        }
    }

    #[test]
    fn the_nearest_name_is_found_in_any_case() {
        let known = ["workersMin", "workersMax", "idleTimeout"];
        assert_eq!(nearest("workers_max", known.into_iter()), Some("workersMax"));
        assert_eq!(nearest("IDLETIMEOUT", known.into_iter()), Some("idleTimeout"));
        assert_eq!(nearest(&"x".repeat(1_000), known.into_iter()), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
