//! Plain English: phrases that hide the subject, the unit or the bound, docs that are too short to say anything, and names
//! that the field has a term for.

mod function_names;
mod names;
mod phrases;
mod short_docs;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use super::source::Source;
use super::{File, Finding};

/// Kinds of files that contain prose: comments and texts in the code, help texts, the manual, settings.
const EXTENSIONS: [&str; 6] = ["rs", "md", "py", "js", "toml", "txt"];

/// The sources of this check, which contain the phrases, and the files of other projects.
const NOT_CHECKED: [&str; 3] =
    ["xtask/src/tidy/prose", "xtask/src/tidy/prose.rs", "crates/console/assets/vendor"];

/// Finds phrases, short docs and names in every file that contains prose.
pub fn check(files: &[File], sources: &[(&Path, Source)]) -> Vec<Finding> {
    let sources: BTreeMap<&Path, &Source> = sources.iter().map(|(path, source)| (*path, source)).collect();
    let checked = files.iter().filter(|file| {
        EXTENSIONS.iter().any(|extension| file.has_extension(extension))
            && !NOT_CHECKED.iter().any(|path| file.path.starts_with(path))
    });
    checked.flat_map(|file| check_file(file, sources.get(&*file.path).copied())).collect()
}

fn check_file(file: &File, source: Option<&Source>) -> Vec<Finding> {
    let Some(source) = source else {
        let mut findings = phrases::find(&file.path, &file.text);
        if file.has_extension("py") {
            findings.extend(function_names::find(&file.path, &file.text));
        }
        return findings;
    };
    let text = words::without_code(&file.text, &source.code);
    let mut findings = phrases::find(&file.path, &text);
    findings.extend(short_docs::find(&file.path, source));
    findings.extend(names::find(&file.path, source));
    findings.extend(function_names::find(&file.path, &source.code));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let files = [File { path: path.into(), text: text.to_owned() }];
        let sources: Vec<_> = files
            .iter()
            .filter(|file| file.has_extension("rs"))
            .map(|file| (file.path.as_path(), Source::parse(&file.text)))
            .collect();
        check(&files, &sources).len()
    }

    #[test]
    fn comments_and_literals_of_rust_are_read_but_not_its_code() {
        let text = "/// Nobody may read it.\npub fn asked() {\n    let nobody = \"whoever asks\";\n}\n";
        assert_eq!(count("crates/x/src/lib.rs", text), 2);
    }

    #[test]
    fn functions_are_named_without_pronouns() {
        assert_eq!(count("crates/x/src/lib.rs", "fn it_delays_nobody() {}\n"), 1);
        assert_eq!(count("e2e/test_a.py", "def test_whatever_comes_is_read():\n    pass\n"), 1);
    }

    #[test]
    fn other_texts_are_read_whole_and_data_is_not() {
        assert_eq!(count("docs/manual/a.md", "Nobody, at once."), 2);
        assert_eq!(count("crates/x/settings.toml", "# So many jobs.\njobs = 1"), 1);
        assert_eq!(count("a.js", "// So many rows.\nconst nobody_knows = 1;"), 1);
        assert_eq!(count("crates/console/assets/vendor/a.js", "// Nobody."), 0);
        assert_eq!(count("data.json", "{\"text\": \"nobody\"}"), 0);
    }
}
