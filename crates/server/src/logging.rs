//! Log lines: on standard error, for people or for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, Settings, SettingsError};

/// Starts logging. A second call changes nothing.
pub(crate) fn start(settings: &Settings) -> Result<(), SettingsError> {
    let level = &settings.log_level;
    let filter = EnvFilter::try_new(level).map_err(|error| {
        SettingsError::Value(format!(
            "`log_level` is `{level}`: {error}; use error, warn, info, debug or trace"
        ))
    })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Pretty => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
    };
    // Somebody logs already, in a test for example.
    drop(started);
    Ok(())
}
