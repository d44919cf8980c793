//! The options `--env` and `--secret`: variables of workers on the command line.

use std::collections::BTreeMap;
use std::fmt;

use clap::Args;
use longshore_model::{EnvValue, SecretName};

use crate::exit::{CommandError, CommandResult};

/// The variables that a command line sets.
#[derive(Args)]
pub(crate) struct EnvArgs {
    /// A variable for the workers; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    env: Vec<(String, String)>,
    /// A variable with a secret's value; repeatable
    #[arg(long, value_name = "[NAME=]SECRET", value_parser = secret)]
    secret: Vec<(String, SecretName)>,
}

impl EnvArgs {
    /// Sets the variables in `env`. The others stay.
    ///
    /// # Errors
    ///
    /// A usage error for a variable that both options set.
    pub(crate) fn set_in(&self, env: &mut BTreeMap<String, EnvValue>) -> CommandResult<()> {
        if let Some((name, _)) =
            self.secret.iter().find(|(name, _)| self.env.iter().any(|(set, _)| set == name))
        {
            return Err(CommandError::usage(format!("--env and --secret both set `{name}`")).next("give one"));
        }
        env.extend(self.env.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
        env.extend(self.secret.iter().map(|(name, secret)| (name.clone(), EnvValue::secret(secret.clone()))));
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
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("EnvArgs").field("env", &names).field("secret", &self.secret).finish()
    }
}

/// Parses `NAME=VALUE`. The error message must not contain the value.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Parses `SECRET`, whose variable has the same name, or `NAME=SECRET`.
fn secret(text: &str) -> Result<(String, SecretName), String> {
    let (name, secret) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() {
        return Err("write it as NAME=SECRET, or as SECRET".to_owned());
    }
    Ok((name.to_owned(), secret.parse().map_err(|error| format!("{error}"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(env: &[&str], secrets: &[&str]) -> EnvArgs {
        EnvArgs {
            env: env.iter().map(|text| assignment(text).unwrap()).collect(),
            secret: secrets.iter().map(|text| secret(text).unwrap()).collect(),
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
        for text in ["hush", "=hush"] {
            assert!(!assignment(text).unwrap_err().contains("hush"));
        }
        for text in ["", "=A", "A=", "A=b c", "0"] {
            assert!(secret(text).is_err(), "{text}");
        }
        assert!(!format!("{:?}", args(&["A=hush"], &["T"])).contains("hush"));
    }
}
