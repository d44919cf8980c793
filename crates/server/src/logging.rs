//! Log lines on standard error, as text or JSON. A line that cannot be written is lost: a full disk or a closed
//! pipe must not stop jobs.

mod events;
mod json;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::JsonFields;

use crate::settings::{LogFormat, Settings, SettingsError};

/// Starts logging. A second call has no effect.
pub(crate) fn start(settings: &Settings) -> Result<(), SettingsError> {
    let filter = filter(&settings.log_level)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // The subscriber would print its own errors to standard error, and panic if that fails, in the middle of a
        // request.
        .log_internal_errors(false);
    let started = match settings.log_format {
        LogFormat::Json => {
            lines.fmt_fields(JsonFields::new()).event_format(json::JsonLines::default()).try_init()
        }
        LogFormat::Pretty => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
    };
    // Logging was started before, for example by a test.
    drop(started);
    Ok(())
}

fn filter(level: &str) -> Result<EnvFilter, SettingsError> {
    let useless = |cause: String| {
        SettingsError::Value(format!(
            "`log_level` is `{level}`: {cause}; use error, warn, info, debug or trace"
        ))
    };
    // The filter takes an unknown word for a module's name and would hide all other modules.
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_meant = |part: &str| part.contains(['=', '[']) || is_level(part);
    if let Some(word) = level.split(',').map(str::trim).find(|part| !is_meant(part)) {
        return Err(useless(format!("`{word}` is not a level")));
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
