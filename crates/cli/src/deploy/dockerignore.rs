//! The patterns of a `.dockerignore`: which files of a folder are not sent to the builder.

/// The patterns, in their order. The last one that matches a path, or a folder around it, decides.
#[derive(Debug, Default)]
pub(super) struct Ignored(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    /// The names between the slashes.
    parts: Vec<String>,
    /// Whether the pattern begins with `!`: what it matches is sent.
    is_exception: bool,
}

impl Ignored {
    /// The patterns of a file.
    pub(super) fn of(text: &str) -> Self {
        let lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.starts_with('#'));
        let patterns = lines.map(str::trim).filter(|line| !line.is_empty()).map(|line| {
            let (is_exception, pattern) = match line.strip_prefix('!') {
                Some(pattern) => (true, pattern.trim()),
                None => (false, line),
            };
            let parts = pattern.split('/').filter(|part| !part.is_empty() && *part != ".");
            Pattern { parts: parts.map(str::to_owned).collect(), is_exception }
        });
        Self(patterns.filter(|pattern| !pattern.parts.is_empty()).collect())
    }

    /// Whether a file or folder is not sent. `path`: its names from the folder on.
    pub(super) fn ignores(&self, path: &[&str]) -> bool {
        let decides = |pattern: &&Pattern| (1..=path.len()).any(|len| matches(&pattern.parts, &path[..len]));
        self.0.iter().rev().find(decides).is_some_and(|pattern| !pattern.is_exception)
    }

    /// Whether something below an ignored folder may be sent.
    pub(super) fn has_exceptions(&self) -> bool {
        self.0.iter().any(|pattern| pattern.is_exception)
    }
}

/// Whether a pattern matches a whole path. `**` is any number of names.
fn matches(pattern: &[String], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "**" => {
            (0..=path.len()).any(|skipped| matches(rest, &path[skipped..]))
        }
        (Some((first, rest)), Some((name, names))) => {
            let (first, name): (Vec<char>, Vec<char>) = (first.chars().collect(), name.chars().collect());
            matches_name(&first, &name) && matches(rest, names)
        }
        _ => false,
    }
}

/// Whether a pattern without slashes matches a name: `*` is any text, `?` any character, `[a-c]` one of several, and `\` takes
/// the next character as it is.
fn matches_name(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|skipped| matches_name(rest, &name[skipped..])),
        ['?', rest @ ..] => name.split_first().is_some_and(|(_, names)| matches_name(rest, names)),
        ['[', rest @ ..] if rest.contains(&']') => {
            let end = rest.iter().position(|c| *c == ']').unwrap_or_default();
            name.split_first().is_some_and(|(c, names)| {
                is_one_of(&rest[..end], *c) && matches_name(&rest[end + 1..], names)
            })
        }
        ['\\', c, rest @ ..] | [c, rest @ ..] => {
            name.split_first().is_some_and(|(found, names)| found == c && matches_name(rest, names))
        }
    }
}

/// Whether a character is in a class such as `a-cx`, or not in it if the class begins with `^`.
fn is_one_of(class: &[char], c: char) -> bool {
    let (is_negated, mut class) = match class {
        ['^', class @ ..] => (true, class),
        class => (false, class),
    };
    let mut is_in = false;
    loop {
        class = match class {
            [] => return is_in != is_negated,
            [from, '-', to, rest @ ..] => {
                is_in |= (*from..=*to).contains(&c);
                rest
            }
            [one, rest @ ..] => {
                is_in |= *one == c;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_that_matches_decides() {
        let cases: [(&str, &[&str], &[&str]); 9] = [
            ("# a comment\n\n", &[], &["a", "# a comment"]),
            ("*.log", &["a.log"], &["b/a.log", "log"]),
            ("**/*.log", &["a.log", "b/c/a.log"], &["a.logs"]),
            ("/target/\n", &["target", "target/debug/x"], &["a/target"]),
            ("a/*/c", &["a/b/c", "a/b/c/d"], &["a/c", "a/b/b/c"]),
            ("*\n!src\n!a/keep.txt", &["b", "a/x"], &["src", "src/main.py", "a/keep.txt"]),
            ("*.md\n!README*.md\nREADME-secret.md", &["x.md", "README-secret.md"], &["README.md"]),
            (
                "temp?\nv[0-9]\nw[^0-9]\n\\*",
                &["temp1", "v7", "wx", "*"],
                &["temp", "temp12", "vx", "w7", "z"],
            ),
            ("a/**/z", &["a/z", "a/b/c/z"], &["a/b", "z"]),
        ];
        for (text, ignored, sent) in cases {
            let patterns = Ignored::of(text);
            let is_ignored = |path: &str| patterns.ignores(&path.split('/').collect::<Vec<_>>());
            for path in ignored {
                assert!(is_ignored(path), "{text:?} {path}");
            }
            for path in sent {
                assert!(!is_ignored(path), "{text:?} {path}");
            }
        }
        assert!(Ignored::of("*\n!a").has_exceptions() && !Ignored::of("*").has_exceptions());
    }
}
