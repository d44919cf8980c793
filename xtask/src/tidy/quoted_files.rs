//! A code block of a document that quotes a file has the file's text.
//!
//! Such a block opens with the language and `file=PATH`, from the root of the project.

use std::path::Path;

use super::{File, Finding};

const FENCE: &str = "```";

/// Compares the quoting blocks of a Markdown file with their files.
pub fn check(file: &File, root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = (1..).zip(file.text.lines());
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix(FENCE) else { continue };
        let block = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with(FENCE));
        let block: String = block.flat_map(|line| [line, "\n"]).collect();
        let Some(path) = info.split(' ').find_map(|word| word.strip_prefix("file=")) else { continue };
        match std::fs::read_to_string(root.join(path)) {
            Ok(text) if text == block => {}
            Ok(_) => findings.push(Finding::new(
                &file.path,
                number,
                format!("the block differs from `{path}`: copy the file's text"),
            )),
            Err(error) => {
                findings.push(Finding::new(&file.path, number, format!("cannot read `{path}`: {error}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_must_have_the_text_of_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.ini"), "[A]\n\nb=c\n").expect("a file");
        let text = "```sh\nx\n```\n```ini file=a.ini\n[A]\n\nb=c\n```\n```ini file=a.ini\n[A]\n```\n\
                    ```ini file=gone.ini\n```\n";
        let file = File { path: "docs/a.md".into(), text: text.to_owned() };
        let found: Vec<_> = check(&file, folder.path()).into_iter().map(|finding| finding.line).collect();
        assert_eq!(found, [9, 12]);
    }
}
