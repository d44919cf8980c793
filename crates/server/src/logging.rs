//! Log lines: on standard error, for people or for machines. One that cannot be written is lost: its disk may be full,
//! or nobody reads, and jobs go on.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::settings::{LogFormat, Settings, SettingsError};

/// Starts logging. A second call changes nothing.
pub(crate) fn start(settings: &Settings) -> Result<(), SettingsError> {
    let filter = filter(&settings.log_level)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would say on standard error that standard error fails, and panic when that fails too: in the middle of a request.
        .log_internal_errors(false);
    let started = match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Pretty => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
    };
    // Somebody logs already, in a test for example.
    drop(started);
    Ok(())
}

fn filter(level: &str) -> Result<EnvFilter, SettingsError> {
    let useless = |cause: String| {
        SettingsError::Value(format!(
            "`log_level` is `{level}`: {cause}; use error, warn, info, debug or trace"
        ))
    };
    // The filter takes a word that is no level for a part of the program, and would show nothing of the others.
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_meant = |part: &str| part.contains(['=', '[']) || is_level(part);
    if let Some(word) = level.split(',').map(str::trim).find(|part| !is_meant(part)) {
        return Err(useless(format!("`{word}` is no level")));
    }
    EnvFilter::try_new(level).map_err(|error| useless(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_level_is_refused_instead_of_silencing_the_log() {
        for level in ["info", "WARN", "off", "info,longshore_http=debug", "longshore_engine=trace, warn"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for level in ["loud", "inof", "info,debgu", "", "info,", "l=o=u=d"] {
            assert!(filter(level).unwrap_err().to_string().contains("`log_level` is"), "{level}");
        }
    }
}
