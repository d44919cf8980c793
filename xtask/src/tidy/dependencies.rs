//! The dependency arrows between the crates point inward, and the pure crates depend on nothing that could do
//! I/O.

use std::path::{Path, PathBuf};

use super::Finding;
use crate::workspace::{self, Metadata, Package};

/// Which of our crates each of them may depend on. A crate that is missing here is a finding.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("model", &[]),
    // Asked wherever a mistake can be planted for the simulator.
    ("planted", &[]),
    ("queue", &["model", "planted"]),
    ("fleet", &["model", "planted"]),
    // How files are read and written, not what is in them.
    ("direct-io", &[]),
    ("store", &["model", "direct-io"]),
    // Rows in a database, beside the stores of `store`.
    ("postgres", &["model", "planted", "store"]),
    ("blobs", &["model", "direct-io"]),
    // Payloads and code in object storage, beside the folder of `blobs`.
    ("objects", &["blobs", "trust"]),
    ("vault", &[]),
    // Reads files with certificate authorities; knows nothing of servers and receivers.
    ("trust", &[]),
    ("launch", &["model"]),
    // Containers of a daemon, beside the processes of `launch`.
    ("docker", &["model", "launch"]),
    (
        "engine",
        &["model", "planted", "queue", "fleet", "store", "blobs", "launch", "vault", "trust", "history"],
    ),
    // Files for browsers; knows nothing of servers.
    ("console", &[]),
    ("envelope", &["model"]),
    // What endpoints did, in memory and in files; knows nothing of queues.
    ("history", &["model"]),
    ("http", &["model", "planted", "engine", "console", "envelope", "history"]),
    ("client", &["model", "trust"]),
    // Replays past jobs; its caller reads them from files and servers.
    ("rehearse", &["model", "queue", "fleet"]),
    ("cli", &["model", "client", "rehearse"]),
    // Input and a disk for tests; only tests may depend on them.
    ("hostile", &["model"]),
    ("disk-faults", &[]),
    // The contract of a launcher, as cases; only tests may depend on it.
    ("launcher-suite", &["model", "launch"]),
    // Goes the hot paths one by one.
    ("hot-paths", &["model", "queue", "envelope", "history"]),
    // Commits to a store without a server, for the bench.
    ("store-load", &["model", "store", "postgres"]),
    // Puts the parts together, so it knows them all.
    (
        "server",
        &[
            "model", "planted", "store", "postgres", "blobs", "objects", "launch", "docker", "vault",
            "trust", "history", "engine", "console", "http", "client", "cli",
        ],
    ),
    // Puts the same parts together, on a simulated machine.
    ("sim", &["model", "planted", "store", "postgres", "blobs", "launch", "fleet", "engine", "http"]),
    // Calls the built program over HTTP and uses none of its crates.
    ("bench", &[]),
];

/// Crates without I/O, clock and randomness, and what else they may depend on.
const PURE: &[(&str, &[&str])] = &[("model", &["serde"]), ("planted", &[]), ("queue", &[]), ("fleet", &[])];

/// A crate of this name becomes the place for everything that has no place.
const VAGUE_NAMES: [&str; 5] = ["common", "util", "utils", "manager", "helpers"];

/// Checks the dependencies of our own crates.
pub fn check(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.members() {
        let manifest = relative(&package.manifest_path);
        let Some(name) = package.name.strip_prefix("longshore-") else { continue };
        findings.extend(check_package(name, package, &manifest));
        let library = package.manifest_path.with_file_name("src").join("lib.rs");
        let text = std::fs::read_to_string(&library).unwrap_or_default();
        if is_pure(name).is_some() && !text.contains("#![no_std]") {
            let text = "a pure crate must be `#![no_std]`, so that no clock and no socket can be reached";
            findings.push(Finding::new(&relative(&library), 1, text));
        }
    }
    findings
}

fn check_package(name: &str, package: &Package, manifest: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    if VAGUE_NAMES.iter().any(|vague| name.split('-').any(|part| part == *vague)) {
        let text = format!("a crate named `{name}` has no subject: name it after what it does");
        findings.push(Finding::new(manifest, 0, text));
    }
    let Some((_, inward)) = DEPENDENCIES.iter().find(|(from, _)| *from == name) else {
        let text = format!(
            "`{name}` is not in the table of arrows: say in xtask/src/tidy/dependencies.rs what it may use"
        );
        findings.push(Finding::new(manifest, 0, text));
        return findings;
    };
    for dependency in &package.dependencies {
        let is_dev = dependency.kind.as_deref() == Some("dev");
        match dependency.name.strip_prefix("longshore-") {
            Some(target) if !is_dev && !inward.contains(&target) => {
                let text = format!(
                    "`{name}` must not depend on `{target}`: the arrows point inward (ARCHITECTURE.md)"
                );
                findings.push(Finding::new(manifest, 0, text));
            }
            None if !is_dev && is_pure(name).is_some_and(|extra| !extra.contains(&&*dependency.name)) => {
                let text = format!("`{name}` is pure and must not depend on `{}`", dependency.name);
                findings.push(Finding::new(manifest, 0, text));
            }
            _ => {}
        }
    }
    findings
}

fn is_pure(name: &str) -> Option<&'static [&'static str]> {
    PURE.iter().find(|(pure, _)| *pure == name).map(|(_, extra)| *extra)
}

fn relative(path: &Path) -> PathBuf {
    path.strip_prefix(workspace::root()).unwrap_or(path).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn found(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: kind.map(str::to_owned) });
        let package = Package {
            id: name.to_owned(),
            name: format!("longshore-{name}"),
            manifest_path: "crates/x/Cargo.toml".into(),
            dependencies: dependencies.collect(),
        };
        let findings = check_package(name, &package, Path::new("Cargo.toml"));
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn arrows_that_point_inward_are_fine() {
        assert!(found("http", &[("longshore-engine", None), ("axum", None)]).is_empty());
        assert!(found("queue", &[("longshore-model", None), ("expect-test", Some("dev"))]).is_empty());
        assert!(found("engine", &[("longshore-http", Some("dev"))]).is_empty());
    }

    #[test]
    fn arrows_that_point_outward_are_found() {
        for (from, to) in [
            ("http", "store"),
            ("store", "queue"),
            ("launch", "store"),
            ("cli", "engine"),
            ("model", "queue"),
        ] {
            let found = found(from, &[(&format!("longshore-{to}"), None)]);
            assert_eq!(found.len(), 1, "{from} → {to}");
        }
    }

    #[test]
    fn pure_crates_stay_pure() {
        assert_eq!(found("queue", &[("tokio", None)]), ["`queue` is pure and must not depend on `tokio`"]);
        assert_eq!(found("fleet", &[("cc", Some("build"))]).len(), 1);
        assert!(found("model", &[("serde", None)]).is_empty());
    }

    #[test]
    fn vague_and_unknown_crates_are_found() {
        assert_eq!(found("util", &[]).len(), 2);
        assert_eq!(found("http-common", &[]).len(), 2);
        assert_eq!(found("novel", &[]).len(), 1);
    }
}
