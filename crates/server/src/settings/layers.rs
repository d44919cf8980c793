//! Merges layers of settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longshore_cli::ServeArgs;
use longshore_http::nearest;
use toml::{Table, Value};

use super::{CONFIG_VARIABLE, DEFAULTS, Settings, SettingsError};

const PREFIX: &str = "LONGSHORE_";
/// Tables with names that the operator chooses: each is set as a whole.
const OPEN_TABLES: [&str; 1] = ["prices"];
/// Environment variables with our prefix that are not settings.
const OTHER_VARIABLES: [&str; 7] = [
    "LONGSHORE_ADMIN_KEY",
    "LONGSHORE_SECRETS_KEY",
    CONFIG_VARIABLE,
    "LONGSHORE_URL",
    "LONGSHORE_API_KEY",
    super::console::FOLDER_VARIABLE,
    crate::confidential::MARK,
];
/// Edit distance up to which an unknown variable is rejected as a typing error. Orchestrators set further variables
/// with our prefix.
const TYPING_MISTAKES_MAX: usize = 2;

/// The merged settings. The lowest layer is the reference, which has every name.
pub(crate) struct Layers {
    reference: Table,
    merged: Table,
}

impl Layers {
    /// Starts with the reference.
    pub(crate) fn defaults() -> Result<Self, SettingsError> {
        let reference = parse(DEFAULTS, "defaults.toml")?;
        Ok(Self { merged: reference.clone(), reference })
    }

    /// Adds the operator's file.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| SettingsError::Unreadable { path: path.to_owned(), cause })?;
        let origin = path.display().to_string();
        for (name, value) in leaves(&parse(&text, &origin)?) {
            self.set(&origin, &name, value)?;
        }
        Ok(())
    }

    /// Adds environment variables named after settings.
    pub(crate) fn add_environment(
        &mut self,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), SettingsError> {
        let names: Vec<String> = leaves(&self.reference).into_iter().map(|(name, _)| name).collect();
        for (variable, text) in environment {
            if !variable.starts_with(PREFIX) || OTHER_VARIABLES.contains(&variable.as_str()) {
                continue;
            }
            let found = names.iter().map(String::as_str).chain(["rate_limits"]);
            if let Some(name) = found.clone().find(|name| variable_of(name) == variable) {
                self.set_text(&variable, name, &text)?;
                continue;
            }
            let variables: Vec<String> = found.map(variable_of).collect();
            let is_close = |known: &&String| strsim::osa_distance(&variable, known) <= TYPING_MISTAKES_MAX;
            let close = variables.iter().filter(is_close).map(String::as_str);
            if let Some(meant) = nearest(&variable, close) {
                return Err(unknown("the environment", &variable, Some(meant)));
            }
        }
        Ok(())
    }

    /// Adds flags of the command line.
    pub(crate) fn add_flags(&mut self, args: &ServeArgs) -> Result<(), SettingsError> {
        let path = |path: Option<&PathBuf>| path.map(|path| path.display().to_string());
        let flags = [
            ("--listen", "listen", args.listen.clone()),
            ("--data-dir", "data_dir", path(args.data_dir.as_ref())),
            ("--blobs", "blobs", args.blobs.clone()),
            ("--rate-limits", "rate_limits", args.rate_limits.map(|mode| mode.as_str().to_owned())),
            ("--log-format", "log_format", args.log_format.map(|format| format.as_str().to_owned())),
            ("--log-level", "log_level", args.log_level.clone()),
            ("--management-listen", "management_listen", args.management_listen.clone()),
            ("--tls-cert", "tls_cert", path(args.tls_cert.as_ref())),
            ("--tls-key", "tls_key", path(args.tls_key.as_ref())),
            ("--secrets-key-file", "secrets_key_file", path(args.secrets_key_file.as_ref())),
            (
                "--allow-private-webhooks",
                "allow_private_webhooks",
                args.allow_private_webhooks.then(|| "true".to_owned()),
            ),
            ("--metrics-public", "metrics_public", args.metrics_public.then(|| "true".to_owned())),
        ];
        for (flag, name, text) in flags {
            if let Some(text) = text {
                self.set_text(flag, name, &text)?;
            }
        }
        Ok(())
    }

    /// Returns the merged settings.
    pub(crate) fn finish(self) -> Result<Settings, SettingsError> {
        let changed = self.changed();
        let mut settings: Settings =
            self.merged.try_into().map_err(|error| SettingsError::Value(one_line(&error.to_string())))?;
        settings.changed = changed;
        settings.check()?;
        Ok(settings)
    }

    /// The settings whose value is not the reference's, by name.
    fn changed(&self) -> BTreeMap<String, serde_json::Value> {
        let defaults: BTreeMap<String, Value> = leaves(&self.reference).into_iter().collect();
        let is_changed = |(name, value): &(String, Value)| defaults.get(name) != Some(value);
        let changed = leaves(&self.merged).into_iter().filter(is_changed);
        changed.filter_map(|(name, value)| Some((name, serde_json::to_value(value).ok()?))).collect()
    }

    /// Sets a value given as text. The reference determines its type.
    fn set_text(&mut self, origin: &str, name: &str, text: &str) -> Result<(), SettingsError> {
        let text = text.trim();
        let value = match lookup(&self.reference, name) {
            Some(Value::Integer(_)) => text.replace('_', "").parse().ok().map(Value::Integer),
            Some(Value::Float(_)) => text.parse().ok().map(Value::Float),
            Some(Value::Boolean(_)) => match text {
                "true" | "on" | "yes" | "1" => Some(Value::Boolean(true)),
                "false" | "off" | "no" | "0" => Some(Value::Boolean(false)),
                _ => None,
            },
            _ => None,
        };
        self.set(origin, name, value.unwrap_or_else(|| Value::String(text.to_owned())))
    }

    fn set(&mut self, origin: &str, name: &str, value: Value) -> Result<(), SettingsError> {
        let unknown = || {
            let names: Vec<String> = leaves(&self.reference).into_iter().map(|(name, _)| name).collect();
            unknown(origin, name, nearest(name, names.iter().map(String::as_str)))
        };
        // Short form: `rate_limits = "off"` sets the table's `mode`.
        let name = if name == "rate_limits" && value.is_str() { "rate_limits.mode" } else { name };
        let reference = lookup(&self.reference, name).ok_or_else(unknown)?;
        // A number that needs no point may be written without one.
        let value = match (reference, value) {
            (Value::Float(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (_, value) => value,
        };
        if reference.type_str() != value.type_str() {
            return Err(SettingsError::Type {
                origin: origin.to_owned(),
                name: name.to_owned(),
                expected: kind(reference),
                found: shown(&value),
            });
        }
        let (path, last) = name.rsplit_once('.').map_or((None, name), |(path, last)| (Some(path), last));
        let mut table = &mut self.merged;
        for part in path.into_iter().flat_map(|path| path.split('.')) {
            let Some(Value::Table(inner)) = table.get_mut(part) else { return Err(unknown()) };
            table = inner;
        }
        table.insert(last.to_owned(), value);
        Ok(())
    }
}

fn unknown(origin: &str, name: &str, meant: Option<&str>) -> SettingsError {
    let hint = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
    SettingsError::Unknown { origin: origin.to_owned(), name: name.to_owned(), hint }
}

fn parse(text: &str, origin: &str) -> Result<Table, SettingsError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].lines().count().max(1));
        let place = line.map(|line| format!(" (line {line})")).unwrap_or_default();
        let cause = one_line(error.message());
        SettingsError::NotToml { origin: format!("{origin}{place}"), cause }
    })
}

/// Returns every value that is not a table, with its dotted name.
fn leaves(table: &Table) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) if !OPEN_TABLES.contains(&name.as_str()) => {
                found
                    .extend(leaves(inner).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => found.push((name.clone(), value.clone())),
        }
    }
    found
}

fn lookup<'a>(table: &'a Table, name: &str) -> Option<&'a Value> {
    let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    match (table.get(first)?, rest) {
        (Value::Table(inner), Some(rest)) => lookup(inner, rest),
        (Value::Table(_), None) if !OPEN_TABLES.contains(&first) => None,
        (_, Some(_)) => None,
        (value, None) => Some(value),
    }
}

/// Returns the environment variable of a setting: `rate_limits.run.per_10_s` →
/// `LONGSHORE_RATE_LIMITS_RUN_PER_10_S`.
fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('.', "_").to_uppercase())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list of tables",
        Value::Table(_) => "a table",
        _ => "text",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => format!("`{number}`"),
        Value::Boolean(flag) => format!("`{flag}`"),
        Value::String(text) => format!("`{}`", one_line(text)),
        other => format!("a value of the type {}", other.type_str()),
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn from_file(text: &str) -> Result<Settings, SettingsError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let args = ServeArgs { config: Some(file.path().to_owned()), ..ServeArgs::default() };
        Settings::load(&args, [])
    }

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file_which_beats_the_defaults() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "listen = \"file:1\"\ndata_dir = \"file\"\nlog_level = \"debug\"\n";
        std::fs::write(file.path(), text).unwrap();
        let args = ServeArgs {
            config: Some(file.path().to_owned()),
            listen: Some("flag:3".to_owned()),
            ..ServeArgs::default()
        };
        let environment = env(&[("LONGSHORE_LISTEN", "env:2"), ("LONGSHORE_DATA_DIR", "env")]);
        let settings = Settings::load(&args, environment).unwrap();
        assert_eq!(settings.listen, "flag:3");
        assert_eq!(settings.data_dir.to_str(), Some("env"));
        assert_eq!(settings.log_level, "debug");
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_one_that_was_meant() {
        let error = from_file("[rate_limits.run]\nper_10s = 1000\n").unwrap_err().to_string();
        assert!(error.contains("unknown setting `rate_limits.run.per_10s`"), "{error}");
        assert!(error.contains("did you mean `rate_limits.run.per_10_s`?"), "{error}");
        let error = from_file("colour = 1\n").unwrap_err().to_string();
        assert!(error.ends_with("has an unknown setting `colour`"), "{error}");
        let error = Settings::load(&ServeArgs::default(), env(&[("LONGSHORE_LISTN", "x")])).unwrap_err();
        assert!(error.to_string().contains("did you mean `LONGSHORE_LISTEN`?"), "{error}");
    }

    #[test]
    fn variables_that_an_orchestrator_sets_are_no_mistake() {
        let environment = env(&[("LONGSHORE_PORT_8080_TCP_ADDR", "10.0.0.1"), ("LONGSHORE_ADMIN_KEY", "k")]);
        Settings::load(&ServeArgs::default(), environment).unwrap();
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named() {
        let error = from_file("listen = 8080\n").unwrap_err().to_string();
        assert!(error.contains("`listen` must be text, not `8080`"), "{error}");
        let environment = env(&[("LONGSHORE_JOBS_MAX", "many")]);
        let error = Settings::load(&ServeArgs::default(), environment).unwrap_err().to_string();
        assert!(error.contains("must be a whole number"), "{error}");
        let error = from_file("log_format = \"xml\"\n").unwrap_err().to_string();
        assert!(error.contains("xml") && !error.contains('\n'), "{error}");
        let error = from_file("a = [\n").unwrap_err().to_string();
        assert!(error.contains("(line 1)") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn rate_limits_are_switched_off_in_three_ways() {
        use longshore_http::RateLimits;
        let off = |settings: Settings| matches!(settings.http().rate_limits, RateLimits::Off);
        assert!(off(from_file("rate_limits = \"off\"\n").unwrap()));
        assert!(off(from_file("[rate_limits]\nmode = \"off\"\n").unwrap()));
        let environment = env(&[("LONGSHORE_RATE_LIMITS", "off")]);
        assert!(off(Settings::load(&ServeArgs::default(), environment).unwrap()));
        assert!(!off(from_file("[rate_limits.run]\nper_10_s = 5\n").unwrap()));
    }

    #[test]
    fn gpus_and_prices_are_the_operators_own_lists() {
        let gpus = |text: &str| -> Result<Vec<String>, SettingsError> {
            let found = async { Ok(Vec::new()) };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let gpus = runtime.block_on(from_file(text)?.gpus(found))?;
            Ok(gpus
                .into_iter()
                .map(|gpu| format!("{} {} {}", gpu.device, gpu.type_id, gpu.memory_mib))
                .collect())
        };
        let two = "[[gpus]]\ntype = \"L4\"\ncount = 2\nmemory_gib = 24\n[[gpus]]\ntype = \"A\"\ndevices = [\"GPU-1\"]\n";
        assert_eq!(gpus(two).unwrap(), ["0 L4 24576", "1 L4 24576", "GPU-1 A 0"]);
        let shared = "[[gpus]]\ntype = \"L4\"\ncount = 2\nmemory_gib = 24\nshares = 2\n[[gpus]]\ntype = \"A\"\ncount = 1\n";
        let expected = ["0::1 L4 12288", "1::1 L4 12288", "0::2 L4 12288", "1::2 L4 12288", "2 A 0"];
        assert_eq!(gpus(shared).unwrap(), expected);
        assert!(gpus(&format!("gpu_sharing = \"off\"\n{two}")).unwrap().is_empty());
        assert!(gpus("[prices]\n\"NVIDIA RTX 4.0\" = 1\ncpu = 0.5\n").unwrap().is_empty());
        for (text, part) in [
            ("[[gpus]]\ntype = \"L4\"\n", "needs either `count`"),
            ("[[gpus]]\ntype = \"L4\"\ncount = 0\n", "needs either `count`"),
            ("[[gpus]]\ntype = \"L4\"\ncount = 1\ndevices = [\"7\"]\n", "needs either `count`"),
            ("[[gpus]]\ntype = \"L4\"\ndevices = [\"7\", \"7\"]\n", "is a duplicate"),
            ("[[gpus]]\ntype = \"L4\"\ndevices = [\"7::1\"]\n", "names a share"),
            ("[[gpus]]\ntype = \"L4\"\ncount = 1\nshares = 0\n", "must be from 1 to 64"),
            ("[[gpus]]\ntype = \" \"\ncount = 1\n", "an empty `type`"),
            ("[[gpus]]\ntype = \"L4\"\nmemory = 1\n", "memory"),
            ("gpus = 2\n", "`gpus` must be a list of tables, not `2`"),
            ("[prices]\ncpu = -1\n", "it must be 0 or more"),
            ("[prices]\ncpu = \"much\"\n", "cpu"),
            ("prices = 1\n", "`prices` must be a table"),
        ] {
            let error = gpus(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn no_two_settings_share_a_variable() {
        let names = leaves(&parse(DEFAULTS, "defaults").unwrap());
        let variables: BTreeSet<String> = names.iter().map(|(name, _)| variable_of(name)).collect();
        assert_eq!(variables.len(), names.len());
    }
}
