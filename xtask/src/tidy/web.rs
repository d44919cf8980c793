//! The files of the console: what the browser refuses under the console's security policy, and what its design forbids.

use std::path::Path;

use super::{File, Finding};

/// The folder of the files that browsers get.
const ASSETS: &str = "crates/console/assets";
/// Folders in it with files of other projects.
const FOREIGN: [&str; 2] = ["crates/console/assets/vendor", "crates/console/assets/fonts"];
/// The one file with colours.
const TOKENS: &str = "crates/console/assets/tokens.css";

const LINES_MAX: usize = 300;

const AS_TEXT: &str = "build nodes with `html`: text must never become markup";
const AS_CODE: &str = "the security policy refuses to run text as code";

/// What may not be in any of these files.
const FORBIDDEN: [(&str, &str); 10] = [
    ("innerHTML", AS_TEXT),
    ("outerHTML", AS_TEXT),
    ("insertAdjacentHTML", AS_TEXT),
    ("dangerouslySetInnerHTML", AS_TEXT),
    ("document.write", AS_TEXT),
    ("eval(", AS_CODE),
    ("Function(", AS_CODE),
    ("javascript:", AS_CODE),
    ("style=\"", "the security policy refuses it: use a class, or an object in `style=${…}`"),
    ("crypto.randomUUID", "it does not exist on a page of plain HTTP"),
];

/// Names that XML needs, and that no browser asks for.
const NAMESPACE: &str = "http://www.w3.org/";

const SCHEMES: [&str; 2] = ["http://", "https://"];

/// Checks a file, if it is one of the console.
pub fn check(file: &File) -> Vec<Finding> {
    let is_checked = ["js", "css", "html"].iter().any(|extension| file.has_extension(extension));
    if !file.path.starts_with(ASSETS)
        || FOREIGN.iter().any(|folder| file.path.starts_with(folder))
        || !is_checked
    {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let count = file.text.lines().count();
    if count > LINES_MAX {
        let text = format!("{count} lines, more than {LINES_MAX}: give each responsibility its own file");
        findings.push(Finding::new(&file.path, 0, text));
    }
    let begins_with = if file.has_extension("js") { "//" } else { "" };
    if !file.text.starts_with(begins_with) {
        findings.push(Finding::new(&file.path, 1, "the file does not begin with `//`: say what it is for"));
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        findings.extend(check_line(&file.path, line).map(|text| Finding::new(&file.path, number, text)));
    }
    findings
}

fn check_line(path: &Path, line: &str) -> impl Iterator<Item = String> {
    let forbidden = FORBIDDEN.iter().filter(|(needle, _)| line.contains(needle));
    let forbidden: Vec<String> =
        forbidden.map(|(needle, advice)| format!("`{needle}` is forbidden: {advice}")).collect();
    let host = names_a_host(line).then(|| "another host: the console asks for its own files only".to_owned());
    let is_coloured = path != Path::new(TOKENS) && has_colour(line);
    let colour =
        is_coloured.then(|| "a colour outside of tokens.css: name it there, and use the name".to_owned());
    forbidden.into_iter().chain(host).chain(colour)
}

/// Whether the line has the address of a host. A scheme alone is none, nor is XML's namespace.
fn names_a_host(line: &str) -> bool {
    SCHEMES.iter().any(|scheme| {
        line.match_indices(scheme).any(|(at, _)| {
            let rest = &line[at..];
            let host = rest[scheme.len()..].chars().next();
            !rest.starts_with(NAMESPACE) && host.is_some_and(|c| c.is_ascii_alphanumeric())
        })
    })
}

/// Whether the line has a colour as numbers: `#rgb`, `#rrggbb`, with or without alpha, `rgb(…)` or `hsl(…)`.
fn has_colour(line: &str) -> bool {
    if ["rgb(", "rgba(", "hsl(", "hsla(", "oklch("].iter().any(|function| line.contains(function)) {
        return true;
    }
    line.match_indices('#').any(|(at, _)| {
        let digits = line[at + 1..].chars().take_while(char::is_ascii_hexdigit).count();
        let next = line[at + 1 + digits..].chars().next();
        let before = line[..at].chars().next_back();
        let is_bounded = next.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
        let is_value = before.is_some_and(|c| " :(,\"'`".contains(c));
        [3, 4, 6, 8].contains(&digits) && is_bounded && is_value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.into(), text: text.to_owned() };
        check(&file).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn what_the_policy_refuses_is_found_in_our_files_only() {
        for (needle, _) in FORBIDDEN {
            let text = format!("// A.\nx {needle} y\n");
            assert_eq!(lines("crates/console/assets/a.js", &text), [2], "{needle}");
            assert_eq!(lines("crates/console/assets/vendor/a.js", &text), [] as [usize; 0], "{needle}");
            assert_eq!(lines("docs/a.js", &text), [] as [usize; 0], "{needle}");
        }
    }

    #[test]
    fn hosts_are_found_and_namespaces_and_bare_schemes_are_not() {
        let text = "// A.\na(\"https://example.com/x\")\nb(\"http://www.w3.org/2000/svg\")\nc(/^https?:\\/\\//, \"https://\")\n";
        assert_eq!(lines("crates/console/assets/a.js", text), [2]);
    }

    #[test]
    fn colours_are_found_outside_of_the_tokens() {
        let text =
            "a { color: #fff; }\n#abc { margin: 0 }\nb { color: rgb(1 2 3); }\nc { color: var(--ink); }\n";
        assert_eq!(lines("crates/console/assets/a.css", text), [1, 3]);
        assert_eq!(lines("crates/console/assets/tokens.css", text), [] as [usize; 0]);
    }

    #[test]
    fn long_files_and_files_without_a_first_comment_are_found() {
        assert_eq!(lines("crates/console/assets/a.js", &format!("// A.\n{}", "x();\n".repeat(300))), [0]);
        assert_eq!(lines("crates/console/assets/a.js", "x();\n"), [1]);
    }
}
