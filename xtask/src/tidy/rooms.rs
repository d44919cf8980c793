//! The modules at the root of `http` use one another in one direction only.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;
use super::source::Source;
use super::tokens::is_word;

/// The folder of `http`'s modules.
const SRC: &str = "crates/http/src";

/// The root modules of `http`, and which of them each one may use. A module may use only modules above it in this table,
/// so that there is no circle. A root module that is missing here is a finding.
const ROOMS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("services", &[]),
    ("audit", &["wire"]),
    ("fast_route", &["wire"]),
    ("sessions", &["wire"]),
    ("gate", &["wire", "audit", "sessions"]),
    ("readiness", &["wire"]),
    ("metrics", &["wire", "services", "gate"]),
    ("openapi", &["wire", "fast_route"]),
    ("lb", &["wire", "gate", "openapi"]),
    ("jobs", &["wire", "fast_route", "gate", "openapi", "lb"]),
    ("events", &["wire", "gate", "openapi"]),
    ("workers", &["wire", "fast_route", "gate"]),
    ("openai", &["wire", "gate", "openapi", "workers", "lb"]),
    (
        "management",
        &[
            "wire",
            "services",
            "readiness",
            "audit",
            "sessions",
            "gate",
            "openapi",
            "lb",
            "jobs",
            "events",
            "openai",
        ],
    ),
    ("console", &["wire", "audit", "sessions", "gate", "management"]),
    ("graphql", &["wire", "sessions", "gate", "openapi", "management"]),
    ("fast_path", &["wire", "fast_route", "jobs", "workers"]),
    ("edge", &["wire", "services", "readiness", "sessions", "gate", "openai", "lb", "fast_path"]),
    ("connection", &["services", "gate", "edge"]),
    ("cluster", &["wire", "services", "gate", "metrics", "workers", "lb", "openai", "edge", "connection"]),
];

/// The module that every handler gets. Every other one may use it, and it holds parts of many: a file that it uses must
/// not use it.
const STATE: &str = "state";

type Files<'a> = BTreeMap<&'a Path, &'a Source>;

/// A path of the crate in the code: its line and its names, from the root of the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CratePath {
    line: usize,
    names: Vec<String>,
}

/// Checks the arrows between the root modules of `http`.
pub fn check(sources: &[(&Path, Source)]) -> Vec<Finding> {
    let inside = sources.iter().filter_map(|(path, source)| Some((path.strip_prefix(SRC).ok()?, source)));
    let files: Files<'_> = inside.filter(|(path, _)| room_of(path) != "tests").collect();
    let exports = files.get(Path::new("lib.rs")).map(|source| exports(source)).unwrap_or_default();
    let mut findings = Vec::new();
    for (path, source) in &files {
        let room = room_of(path);
        if room == "lib" {
            continue;
        }
        for used in paths_in(source, &exports) {
            let problem = if room == STATE {
                let uses_back = file_of(&files, &used).is_some_and(|file| uses_state(file, &exports));
                uses_back.then(|| {
                    format!("`{STATE}` must not use `{}`, which uses `{STATE}`", used.names.join("::"))
                })
            } else {
                forbidden(&room, used.names.first().map_or("", String::as_str))
            };
            findings.extend(problem.map(|text| Finding::new(&Path::new(SRC).join(path), used.line, text)));
        }
    }
    findings
}

/// Why the module `room` must not use the module `target`; `None` if it may.
fn forbidden(room: &str, target: &str) -> Option<String> {
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return Some(format!(
            "`{room}` is not in the table of xtask/src/tidy/rooms.rs: add it with what it may use"
        ));
    };
    let may = target == room || target == STATE || allowed.contains(&target);
    (!may).then(|| format!("`{room}` must not use `{target}`: move what both need to a lower module"))
}

/// The name of the root module that a file belongs to.
fn room_of(path: &Path) -> String {
    let first = path.iter().next().map(Path::new).and_then(Path::file_stem);
    first.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What `lib.rs` exports, as the paths of its own modules.
fn exports(library: &Source) -> Vec<CratePath> {
    let statements = library.code.match_indices("pub use ").map(|(at, word)| at + word.len());
    let paths = statements.flat_map(|start| paths_of_tree(&library.code[start..]));
    paths.map(|names| CratePath { line: 0, names }).collect()
}

/// The paths that begin with `crate::`, outside of tests. An item that `lib.rs` exports has the path of its module.
fn paths_in(source: &Source, exports: &[CratePath]) -> Vec<CratePath> {
    let code = &source.code;
    let starts =
        code.match_indices("crate::").filter(|(at, _)| *at == 0 || !is_word(code.as_bytes()[at - 1]));
    let trees = starts.map(|(at, word)| (code[..at].matches('\n').count() + 1, &code[at + word.len()..]));
    let trees = trees.filter(|(line, _)| !source.is_test_line(*line));
    let paths = trees
        .flat_map(|(line, tree)| paths_of_tree(tree).into_iter().map(move |names| CratePath { line, names }));
    let resolved = paths.map(|path| {
        let is_item =
            |export: &&CratePath| path.names.len() == 1 && export.names.last() == path.names.first();
        let names = exports.iter().find(is_item).map_or(&path.names, |export| &export.names).clone();
        CratePath { names, ..path }
    });
    resolved.collect()
}

/// The paths of a use tree at the start of `text`: `a::{b, c::D}` has `a::b` and `a::c::D`.
fn paths_of_tree(text: &str) -> Vec<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let nested = members(group).into_iter().flat_map(paths_of_tree);
            return nested.map(|path| [names.clone(), path].concat()).collect();
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        names.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(next) => rest = next.trim_start(),
            None => break,
        }
    }
    vec![names]
}

/// The members of a group whose opening brace is before `text`.
fn members(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' | b'}' if depth == 0 => {
                found.extend(Some(text[start..at].trim()).filter(|member| !member.is_empty()));
                start = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// The file of the innermost module on a path.
fn file_of<'a>(files: &Files<'a>, path: &CratePath) -> Option<&'a Source> {
    let lengths = (1..=path.names.len()).rev();
    let mut candidates = lengths.map(|length| format!("{}.rs", path.names[..length].join("/")));
    candidates.find_map(|candidate| files.get(Path::new(&candidate)).copied())
}

fn uses_state(source: &Source, exports: &[CratePath]) -> bool {
    paths_in(source, exports).iter().any(|path| path.names.first().is_some_and(|name| name == STATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| (Path::new(*path), Source::parse(text))).collect();
        check(&sources).into_iter().map(|finding| finding.to_string()).collect()
    }

    const LIBRARY: (&str, &str) = (
        "crates/http/src/lib.rs",
        "pub use edge::{Edge, Surface};\npub use gate::rates::Limit;\npub use state::HttpState;\n",
    );

    #[test]
    fn the_table_has_no_circle() {
        for (at, (room, allowed)) in ROOMS.iter().enumerate() {
            let lower: Vec<_> = ROOMS[..at].iter().map(|(name, _)| name).collect();
            for target in *allowed {
                assert!(lower.contains(&target), "`{target}` must be above `{room}`");
            }
        }
    }

    #[test]
    fn arrows_to_lower_modules_and_to_the_state_are_fine() {
        let files = [
            LIBRARY,
            (
                "crates/http/src/gate/auth.rs",
                "use crate::wire::{body, query::Query};\nuse crate::HttpState;\n",
            ),
            ("crates/http/src/gate.rs", "use crate::gate::auth;\nfn f(e: crate::wire::E) {}\n"),
            ("crates/http/src/state.rs", "use crate::gate::rates::R;\nuse crate::Limit;\n"),
            ("crates/http/src/gate/rates.rs", "use crate::wire::api_error::ApiError;\n"),
            ("crates/http/src/wire.rs", "#[cfg(test)]\nmod tests {\n    use crate::jobs;\n}\n"),
            ("crates/http/src/tests/auth.rs", "use crate::edge;\n"),
            ("crates/store/src/wire.rs", "use crate::gate;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn arrows_to_higher_modules_are_found() {
        let files = [
            LIBRARY,
            ("crates/http/src/wire/a.rs", "\nuse crate::{\n    HttpState, jobs::{run, x}, Edge,\n};\n"),
            ("crates/http/src/gate.rs", "fn f() {\n    crate::edge::g();\n}\n"),
        ];
        let text = |path: &str, line: usize, from: &str, to: &str| {
            format!(
                "crates/http/src/{path}:{line}: `{from}` must not use `{to}`: move what both need to a lower module"
            )
        };
        let expected = [
            text("gate.rs", 2, "gate", "edge"),
            text("wire/a.rs", 2, "wire", "jobs"),
            text("wire/a.rs", 2, "wire", "jobs"),
            text("wire/a.rs", 2, "wire", "edge"),
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn a_file_that_the_state_uses_and_that_uses_the_state_is_found() {
        let files = [
            LIBRARY,
            ("crates/http/src/state.rs", "use crate::Limit;\n"),
            ("crates/http/src/gate/rates.rs", "use crate::HttpState;\n"),
        ];
        let text =
            "crates/http/src/state.rs:1: `state` must not use `gate::rates::Limit`, which uses `state`";
        assert_eq!(found(&files), [text]);
    }

    #[test]
    fn a_module_that_is_not_in_the_table_is_found() {
        let files = [LIBRARY, ("crates/http/src/novel.rs", "use crate::wire::body;\n")];
        let text = "`novel` is not in the table of xtask/src/tidy/rooms.rs: add it with what it may use";
        assert_eq!(found(&files), [format!("crates/http/src/novel.rs:1: {text}")]);
    }
}
