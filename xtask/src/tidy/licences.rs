//! Licences, bans and sources of the whole tree, by the rules of `deny.toml`.
//!
//! `cargo deny` knows more (advisories, for one), but it is not installed everywhere; these rules hold
//! everywhere.

use std::path::Path;

use serde::Deserialize;

use super::Finding;
use crate::workspace::{self, Metadata, Package};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// Checks every package of the tree.
pub fn check(metadata: &Metadata) -> Result<Vec<Finding>, String> {
    let path = workspace::root().join("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read deny.toml: {error}"))?;
    let rules: Rules =
        toml::from_str(&text).map_err(|error| format!("deny.toml is not readable: {error}"))?;
    Ok(metadata.packages.iter().flat_map(|package| check_package(package, &rules)).collect())
}

fn check_package(package: &Package, rules: &Rules) -> Vec<Finding> {
    let Package { name, version, license, source, .. } = package;
    let mut found = Vec::new();
    if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == *name) {
        found.push(format!(
            "`{name}` is banned ({}): find out with `cargo tree -i {name}` who wants it",
            ban.reason
        ));
    }
    let exception = rules.licenses.exceptions.iter().filter(|exception| exception.name == *name);
    let extra: Vec<&String> = exception.flat_map(|exception| &exception.allow).collect();
    let allowed =
        |id: &str| rules.licenses.allow.iter().chain(extra.iter().copied()).any(|allow| allow == id);
    match license {
        Some(license) if is_satisfied(license, &allowed) => {}
        Some(license) => {
            found.push(format!("`{name} {version}` has the licence `{license}`, which is not allowed"));
        }
        None => found.push(format!("`{name} {version}` names no licence")),
    }
    let registry = source.as_ref().map(|source| source.trim_start_matches("registry+"));
    if registry.is_some_and(|registry| !rules.sources.allow_registry.iter().any(|allow| allow == registry)) {
        let source = source.as_deref().unwrap_or_default();
        found.push(format!("`{name} {version}` comes from `{source}`, which is not allowed"));
    }
    found.into_iter().map(|text| Finding::new(Path::new("deny.toml"), 0, text)).collect()
}

/// Whether the allowed licences fulfil an SPDX expression. `/` is an old way to write `OR`.
fn is_satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (fulfilled, rest) = any_of(&words, allowed);
    fulfilled && rest.is_empty()
}

fn any_of<'a, 'b>(words: &'a [&'b str], allowed: &dyn Fn(&str) -> bool) -> (bool, &'a [&'b str]) {
    let (mut fulfilled, mut rest) = all_of(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (other, after) = all_of(after, allowed);
        fulfilled |= other;
        rest = after;
    }
    (fulfilled, rest)
}

fn all_of<'a, 'b>(words: &'a [&'b str], allowed: &dyn Fn(&str) -> bool) -> (bool, &'a [&'b str]) {
    let (mut fulfilled, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (other, after) = one(after, allowed);
        fulfilled &= other;
        rest = after;
    }
    (fulfilled, rest)
}

fn one<'a, 'b>(words: &'a [&'b str], allowed: &dyn Fn(&str) -> bool) -> (bool, &'a [&'b str]) {
    match words {
        ["(", inner @ ..] => {
            let (fulfilled, rest) = any_of(inner, allowed);
            match rest {
                [")", after @ ..] => (fulfilled, after),
                _ => (false, rest),
            }
        }
        [licence, "WITH", exception, rest @ ..] => (allowed(&format!("{licence} WITH {exception}")), rest),
        [licence, rest @ ..] => (allowed(licence), rest),
        [] => (false, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_spdx_says() {
        let allowed = |id: &str| ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].contains(&id);
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/GPL-3.0",
            "MIT AND Apache-2.0",
            "GPL-3.0 OR Apache-2.0 WITH LLVM-exception",
            "(GPL-3.0 OR MIT) AND Apache-2.0",
        ] {
            assert!(is_satisfied(good, &allowed), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR MIT) AND ISC", "MIT WITH x", "", "(MIT", "MIT MIT"]
        {
            assert!(!is_satisfied(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn banned_crates_and_strange_sources_are_found() {
        let rules: Rules = toml::from_str(
            "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"odd\", allow = [\"ISC\"] }]\n\
             [bans]\ndeny = [{ crate = \"openssl\", reason = \"rustls does it\" }]\n\
             [sources]\nallow-registry = [\"https://r\"]\n",
        )
        .expect("rules");
        let found = |name: &str, license: Option<&str>, source: Option<&str>| {
            let package = Package {
                id: String::new(),
                name: name.to_owned(),
                version: "1".to_owned(),
                source: source.map(str::to_owned),
                license: license.map(str::to_owned),
                manifest_path: "x".into(),
                dependencies: Vec::new(),
            };
            check_package(&package, &rules).len()
        };
        assert_eq!(found("good", Some("MIT"), Some("registry+https://r")), 0);
        assert_eq!(found("ours", Some("MIT"), None), 0);
        assert_eq!(found("odd", Some("ISC"), None), 0);
        assert_eq!(found("even", Some("ISC"), None), 1);
        assert_eq!(found("bare", None, None), 1);
        assert_eq!(found("openssl", Some("MIT"), None), 1);
        assert_eq!(found("far", Some("MIT"), Some("git+https://r")), 1);
    }
}
