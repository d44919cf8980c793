//! Finds the known name that is closest to an unknown one.

/// Longer names get no suggestion: the comparison takes time and memory proportional to the product of both lengths.
const CHARS_MAX: usize = 64;
/// Lowest similarity of a suggestion, from 0 for no letter in common to 1 for the same name. `rn` is two thirds of
/// `run`.
const SIMILARITY_MIN: f64 = 0.6;

/// Returns the name among `known` that is most similar to `name`, ignoring case, by the Damerau-Levenshtein distance.
/// `None` if no name is similar, or if `name` is longer than 64 characters.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().nth(CHARS_MAX).is_some() {
        return None;
    }
    let name = name.to_lowercase();
    let similarity =
        |known: &'a str| (strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase()), known);
    let similar = known.map(similarity).filter(|(similarity, _)| *similarity >= SIMILARITY_MIN);
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_suggested_and_an_unrelated_one_is_not() {
        let known = ["run", "runsync", "workersMin", "workersMax", "idleTimeout"];
        for (name, suggested) in [
            ("rn", Some("run")),
            ("rnu", Some("run")),
            ("workers_max", Some("workersMax")),
            ("IDLETIMEOUT", Some("idleTimeout")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), suggested, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), known.into_iter()), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
