//! Links between documents lead somewhere.

use std::path::Path;

use super::{File, Finding};

/// Checks the links of a Markdown file to files of the project.
pub fn check(file: &File, root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(line) {
            let path = target.split(['#', '?']).next().unwrap_or_default();
            if path.is_empty() || is_elsewhere(target) {
                continue;
            }
            let folder = file.path.parent().unwrap_or(Path::new(""));
            if !root.join(folder).join(path).exists() {
                let text = format!("the link to `{target}` leads nowhere: correct or remove it");
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// What the links of a line point to: `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        Some(target.trim_matches(['<', '>']))
    })
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:") || target.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_that_exist_are_fine() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("docs/adr")).expect("a folder");
        std::fs::write(folder.path().join("docs/adr/0001.md"), "").expect("a file");
        let text = "[a](adr/0001.md#why) [b](../docs) [c](https://example.org/x) [d](#here) `[e](x.md)`\n\
                    ![f](missing.png)\n```\n[g](nowhere.md)\n```\n[h](gone.md \"title\")\n";
        let file = File { path: "docs/a.md".into(), text: text.to_owned() };
        let found: Vec<_> = check(&file, folder.path()).into_iter().map(|finding| finding.line).collect();
        assert_eq!(found, [1, 2, 6], "the link in code on line 1 counts too");
    }
}
