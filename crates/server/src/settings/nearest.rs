//! Finds the name that was meant.

/// The candidate that takes the fewest typing mistakes to become `name`.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates.into_iter().min_by_key(|candidate| distance(name, candidate))
}

/// Levenshtein's distance: inserted, missing and wrong letters.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_mistakes_win() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("lisen", ["data_dir", "listen", "log_level"]), Some("listen"));
    }
}
