//! The options `--env` and `--secret`: variables of workers on the command line.

use std::collections::BTreeMap;
use std::fmt;

use clap::Args;
use longshore_model::{ENV_NAME_PATTERN, EnvValue, SecretName, is_env_name};

use crate::exit::{CommandError, CommandResult};

/// The variables that a command line sets. They are parsed later than other options, because clap's errors would contain
/// the values.
#[derive(Args)]
pub(crate) struct EnvArgs {
    /// A variable for the workers; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A variable with a secret's value; repeatable
    #[arg(long, value_name = "[NAME=]SECRET")]
    secret: Vec<String>,
}

impl EnvArgs {
    /// Sets the variables in `env`. The others stay.
    ///
    /// # Errors
    ///
    /// A usage error for a variable that both options set, or a text that sets none. It contains no value.
    pub(crate) fn set_in(&self, env: &mut BTreeMap<String, EnvValue>) -> CommandResult<()> {
        let set = parsed("--env", &self.env, assignment)?;
        let secrets = parsed("--secret", &self.secret, secret)?;
        if let Some((name, _)) = secrets.iter().find(|(name, _)| set.iter().any(|(set, _)| set == name)) {
            return Err(CommandError::usage(format!("--env and --secret both set `{name}`")).next("give one"));
        }
        env.extend(set.into_iter().map(|(name, value)| (name, value.into())));
        env.extend(secrets.into_iter().map(|(name, secret)| (name, EnvValue::secret(secret))));
        Ok(())
    }

    /// Whether the command line sets no variable.
    pub(crate) fn is_empty(&self) -> bool {
        self.env.is_empty() && self.secret.is_empty()
    }
}

/// Omits the values, which may be confidential.
impl fmt::Debug for EnvArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvArgs").field("env", &self.env.len()).field("secret", &self.secret.len()).finish()
    }
}

/// Parses all texts of an option.
fn parsed<T>(option: &str, texts: &[String], parse: fn(&str) -> Result<T, String>) -> CommandResult<Vec<T>> {
    let parsed = texts.iter().map(|text| parse(text)).collect::<Result<_, _>>();
    parsed.map_err(|error| CommandError::usage(format!("{option}: {error}")))
}

/// Parses `NAME=VALUE`. The error message must not contain the value.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((variable(name)?, value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Parses the name of a variable.
fn variable(name: &str) -> Result<String, String> {
    if is_env_name(name) {
        return Ok(name.to_owned());
    }
    Err(format!("the name of a variable must be of the form {ENV_NAME_PATTERN}, not {name:?}"))
}

/// Parses `SECRET`, whose variable has the same name, or `NAME=SECRET`.
fn secret(text: &str) -> Result<(String, SecretName), String> {
    let (name, secret) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() {
        return Err("write it as NAME=SECRET, or as SECRET".to_owned());
    }
    let secret = secret.parse().map_err(|error| format!("{error}"))?;
    // A secret's name can have hyphens, a variable's cannot.
    let name = variable(name).map_err(|error| format!("{error}; write it as NAME={secret}"))?;
    Ok((name, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(env: &[&str], secrets: &[&str]) -> EnvArgs {
        EnvArgs {
            env: env.iter().map(|&text| text.to_owned()).collect(),
            secret: secrets.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    #[test]
    fn options_are_laid_over_the_variables_that_are_set() {
        let mut env = BTreeMap::from([("A".to_owned(), "old".into()), ("B".to_owned(), "kept".into())]);
        args(&["A=x=y", "C="], &["HF_TOKEN", "KEY=HF_TOKEN"]).set_in(&mut env).unwrap();
        let shown = serde_json::to_string(&env).unwrap();
        let reference = r#"{"secret":"HF_TOKEN"}"#;
        assert_eq!(
            shown,
            format!(r#"{{"A":"x=y","B":"kept","C":"","HF_TOKEN":{reference},"KEY":{reference}}}"#)
        );
        let error = args(&["T=x"], &["T"]).set_in(&mut env).unwrap_err();
        assert_eq!(error.message, "--env and --secret both set `T`");
    }

    #[test]
    fn what_is_no_variable_is_refused_without_its_value() {
        for text in ["hush", "=hush", "1A=hush", "A B=hush"] {
            let error = args(&[text], &[]).set_in(&mut BTreeMap::new()).unwrap_err();
            assert!(!error.message.contains("hush"), "{error}");
        }
        let error = args(&[], &["A=hush hush"]).set_in(&mut BTreeMap::new()).unwrap_err();
        assert!(error.message.starts_with("--secret: ") && !error.message.contains("hush"), "{error}");
        assert!(secret("hf-token").unwrap_err().ends_with("; write it as NAME=hf-token"));
        secret("HF_TOKEN=hf-token").unwrap();
        for text in ["", "=A", "A=", "A=b c", "0", "1A=A"] {
            assert!(secret(text).is_err(), "{text}");
        }
        assert!(!format!("{:?}", args(&["A=hush"], &["T"])).contains("hush"));
    }
}
