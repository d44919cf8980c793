//! Rust files that no module declares: the compiler ignores them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Finding;
use super::source::Source;

/// Files from which a crate begins.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "build.rs"];
/// Folders whose files are crates each.
const ROOT_FOLDERS: [&str; 4] = ["bin", "tests", "examples", "benches"];

/// Checks that every file is declared by the one above it.
pub fn check(sources: &[(&Path, Source)]) -> Vec<Finding> {
    let by_path: BTreeMap<&Path, &Source> = sources.iter().map(|(path, source)| (*path, source)).collect();
    let is_dead = |path: &&Path| {
        let Some((name, parents)) = declared_by(path) else { return false };
        let mut parents = parents.iter().filter_map(|parent| by_path.get(parent.as_path()));
        !parents.any(|parent| declares(parent, &name))
    };
    let dead = by_path.keys().copied().filter(is_dead);
    dead.map(|path| Finding::new(path, 1, "no module declares this file: declare or remove it")).collect()
}

/// The name of a file's module and the files that may declare it; none for the root of a crate.
fn declared_by(path: &Path) -> Option<(String, [PathBuf; 4])> {
    let file = path.file_name()?.to_str()?;
    let folder = path.parent()?;
    let in_root_folder = folder.file_name().is_some_and(|name| ROOT_FOLDERS.iter().any(|root| name == *root));
    if ROOTS.contains(&file) || in_root_folder && file != "mod.rs" {
        return None;
    }
    let (name, folder) = match file {
        "mod.rs" => (folder.file_name()?, folder.parent()?),
        _ => (path.file_stem()?, folder),
    };
    let parents = ["lib.rs", "main.rs", "mod.rs"].map(|file| folder.join(file));
    let [lib, main, module] = parents;
    Some((name.to_str()?.to_owned(), [lib, main, module, folder.with_extension("rs")]))
}

fn declares(source: &Source, name: &str) -> bool {
    source
        .code
        .match_indices(&format!("mod {name};"))
        .any(|(at, _)| !source.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| (Path::new(*path), Source::parse(text))).collect();
        check(&sources).into_iter().map(|finding| finding.path.display().to_string()).collect()
    }

    #[test]
    fn declared_files_are_alive() {
        let files = [
            ("a/src/lib.rs", "mod b;\npub(crate) mod e;"),
            ("a/src/b.rs", "mod c;"),
            ("a/src/b/c.rs", ""),
            ("a/src/e/mod.rs", "mod f;"),
            ("a/src/e/f.rs", ""),
            ("a/src/bin/tool.rs", ""),
            ("a/tests/whole.rs", ""),
            ("a/tests/suite/main.rs", "mod part;"),
            ("a/tests/suite/part.rs", ""),
        ];
        assert_eq!(dead(&files), [] as [&str; 0]);
    }

    #[test]
    fn files_without_a_declaration_are_dead() {
        let files = [
            ("a/src/lib.rs", "// mod b;\nmod bc;\nmod xb;"),
            ("a/src/b.rs", ""),
            ("a/src/bc.rs", "mod e;"),
            ("a/src/xb.rs", ""),
            ("a/src/e.rs", ""),
            ("a/tests/suite/main.rs", ""),
            ("a/tests/suite/part.rs", ""),
        ];
        assert_eq!(dead(&files), ["a/src/b.rs", "a/src/e.rs", "a/tests/suite/part.rs"]);
    }
}
