//! Where modules are, and what their types are called: one file layout, and one type for each name that a crate shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Finding;
use super::source::Source;

/// Words that begin the definition of a type.
const TYPE_WORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// A type: its name, and the line of its definition.
struct Type<'a> {
    name: &'a str,
    line: usize,
}

/// Checks the layout of modules and the names of types that more than one module of a crate can see.
pub fn check(sources: &[(&Path, Source)]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = sources.iter().filter_map(|(path, _)| misplaced(path)).collect();
    let mut first: BTreeMap<(PathBuf, &str), (&Path, usize)> = BTreeMap::new();
    for (path, source) in sources {
        let Some(package) = package_of(path) else { continue };
        for found in visible_types(source) {
            match first.get(&(package.clone(), found.name)) {
                Some((earlier, line)) => {
                    let (name, place) = (found.name, format!("{}:{line}", earlier.display()));
                    let text = format!("`{name}` is also at {place}: give each of the two a name of its own");
                    findings.push(Finding::new(path, found.line, text));
                }
                None => drop(first.insert((package.clone(), found.name), (path, found.line))),
            }
        }
    }
    findings
}

/// A finding if the file is a `mod.rs`. Cargo takes every other file directly in `tests/` for a test program, so `mod.rs`
/// is allowed below that folder.
fn misplaced(path: &Path) -> Option<Finding> {
    let is_misplaced = path.file_name()? == "mod.rs" && package_of(path).is_some();
    is_misplaced.then(|| Finding::new(path, 1, "move the module to the file that is named like its folder"))
}

/// The folder of the package whose `src` folder has the file.
fn package_of(path: &Path) -> Option<PathBuf> {
    let parts: Vec<_> = path.iter().collect();
    let src = parts.iter().position(|part| *part == "src")?;
    Some(parts[..src].iter().collect())
}

/// The types with `pub` in any form, outside of modules for tests.
fn visible_types(source: &Source) -> impl Iterator<Item = Type<'_>> {
    let lines = source.code.lines().enumerate().map(|(index, text)| (index + 1, text));
    lines.filter(|(line, _)| !source.is_test_line(*line)).filter_map(|(line, text)| {
        let name = visible_type(text.trim_start())?;
        Some(Type { name, line })
    })
}

fn visible_type(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (word, rest) = rest.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (TYPE_WORDS.contains(&word) && end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| (Path::new(*path), Source::parse(text))).collect();
        check(&sources).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_type_name_that_two_modules_of_a_crate_show_is_found() {
        let files = [
            ("crates/a/src/b.rs", "pub struct Row;"),
            ("crates/a/src/c.rs", "// pub struct Row;\n\npub(super) type Row<T> = Vec<T>;"),
        ];
        let text = "crates/a/src/c.rs:3: `Row` is also at crates/a/src/b.rs:1: give each of the two a name of its own";
        assert_eq!(found(&files), [text]);
    }

    #[test]
    fn private_types_tests_and_other_crates_may_repeat_a_name() {
        let files = [
            ("crates/a/src/b.rs", "pub(crate) enum Row {}\nstruct Line;"),
            ("crates/a/src/c.rs", "struct Row;\nstruct Line;\npub fn row() -> Row {}"),
            ("crates/a/src/d.rs", "#[cfg(test)]\nmod tests {\n    pub struct Row;\n}\n"),
            ("crates/e/src/b.rs", "pub struct Row;\npub struct Rows;"),
            ("crates/a/tests/b.rs", "pub struct Row;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_mod_rs_is_found_outside_of_integration_tests() {
        let files = [
            ("a/src/b/mod.rs", ""),
            ("a/src/tests/mod.rs", ""),
            ("a/tests/b/mod.rs", ""),
            ("a/src/c.rs", ""),
        ];
        let text = "move the module to the file that is named like its folder";
        assert_eq!(
            found(&files),
            [format!("a/src/b/mod.rs:1: {text}"), format!("a/src/tests/mod.rs:1: {text}")]
        );
    }
}
