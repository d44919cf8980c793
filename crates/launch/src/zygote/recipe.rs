//! What workers have in common that can be forks of the same zygote.

use std::collections::BTreeMap;
use std::path::Path;

use longshore_model::{CodeHash, EndpointId};

use crate::WorkerSpec;
use crate::proc::MARK;

/// Words of a variable's name that say that its value is a secret.
const SECRET_WORDS: &[&str] = &[
    "APIKEY",
    "AUTH",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "DSN",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PRIVATE",
    "SECRET",
    "SECRETS",
    "SIGNATURE",
    "TOKEN",
    "TOKENS",
];
/// Beginnings of the variables that differ between workers, or that the SDK reads, which each worker imports for itself.
const OWN_PREFIXES: &[&str] = &["LONGSHORE_", "RUNPOD_"];
/// Variables that the launcher sets for each worker, and those that a shell sets.
const OWN_NAMES: &[&str] = &["CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "OLDPWD", "PWD", "SHLVL", "_"];

/// What a zygote is started for. Workers with equal recipes are forks of the same zygote. Not `Debug`, because a variable
/// can be a secret that its name does not show.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Recipe {
    pub(crate) endpoint: EndpointId,
    command: Vec<String>,
    code: Option<CodeHash>,
    /// The environment of the zygote: the worker's, without its secrets and without what differs between workers. Many
    /// packages read their variables when they are imported.
    pub(super) env: BTreeMap<String, String>,
}

impl Recipe {
    /// The recipe of a worker, whose `inherited` variables are the server's; `None` if it cannot be a fork: `flashboot` is
    /// off, or its command is neither a Python interpreter nor that of deployed code.
    pub(crate) fn of(spec: &WorkerSpec, inherited: &BTreeMap<String, String>) -> Option<Self> {
        let command: Vec<String> = spec.entrypoint.iter().chain(&spec.cmd).cloned().collect();
        let runs_code = spec.code.is_some() && command.is_empty();
        if !spec.flashboot || !runs_code && !command.first().is_some_and(|program| is_python(program)) {
            return None;
        }
        let all = inherited.iter().filter(|(name, _)| !spec.env.contains_key(*name)).chain(&spec.env);
        let shared = |(name, value): &(&String, &String)| {
            !spec.secret_variables.contains(*name) && !is_own(name) && !is_secret(name, value)
        };
        let env = all.filter(shared).map(|(name, value)| (name.clone(), value.clone())).collect();
        Some(Self { endpoint: spec.endpoint, command, code: spec.code.clone(), env })
    }
}

/// Whether a program is a Python interpreter by its name, such as `/usr/bin/python3.11`.
fn is_python(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

fn is_own(name: &str) -> bool {
    name == MARK || OWN_NAMES.contains(&name) || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a variable is a secret by its name, or contains a password as `scheme://user:password@host` does.
fn is_secret(name: &str, value: &str) -> bool {
    let is_word = |word: &str| SECRET_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret));
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_word)
        || value.split_once("://").is_some_and(|(_, rest)| {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            authority.contains('@')
        })
}

#[cfg(test)]
impl Recipe {
    /// A recipe with this environment.
    pub(super) fn with_env(env: BTreeMap<String, String>) -> Self {
        Self { endpoint: EndpointId::mint(7), command: Vec::new(), code: None, env }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_known_by_their_name() {
        for python in ["python", "python3", "/venv/bin/python", "/usr/bin/python3.11"] {
            assert!(is_python(python), "{python}");
        }
        for other in ["sh", "/python/serve", "python-config", "pythonw", ""] {
            assert!(!is_python(other), "{other}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_name_or_value() {
        for (name, value) in [
            ("HF_TOKEN", "x"),
            ("OPENAI_API_KEY", "x"),
            ("aws_secret_access_key", "x"),
            ("DB", "postgres://ada:hush@db/jobs"),
            ("REDIS", "redis://:hush@cache"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("TOKENIZERS_PARALLELISM", "false"),
            ("HF_HOME", "/models"),
            ("KEYBOARD", "x"),
            ("MIRROR", "https://mirror/a@b"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }
}
