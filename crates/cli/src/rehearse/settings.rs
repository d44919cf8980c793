//! The scaling settings of an endpoint, and changes of them.

use longshore_model::ScalerType;
use longshore_rehearse::{Scaler, ScalingRules};
use serde::Deserialize;
use serde_json::Value;

use crate::exit::{CommandError, CommandResult, cannot};

/// The names of the settings in the management API.
const NAMES: [&str; 7] = [
    "workersMin",
    "workersMax",
    "idleTimeout",
    "idleTimeoutMax",
    "scalerType",
    "scalerValue",
    "maxConcurrency",
];

/// The fields of an endpoint that determine the number of its workers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScalingSettings {
    workers_min: u32,
    workers_max: u32,
    idle_timeout: u32,
    /// Servers of earlier versions have no such field.
    #[serde(default)]
    idle_timeout_max: u32,
    scaler_type: ScalerType,
    scaler_value: u32,
    max_concurrency: u32,
}

/// Parses `SETTING=VALUE`. A value that is no number is a word.
pub(super) fn assignment(text: &str) -> Result<(String, Value), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write it as SETTING=VALUE, such as workersMax=4".to_owned());
    };
    if !NAMES.contains(&name) {
        return Err(format!("`{name}` is no scaling setting; they are {}", NAMES.join(", ")));
    }
    let number = value.parse::<u32>().map(Value::from);
    Ok((name.to_owned(), number.unwrap_or_else(|_| Value::from(value))))
}

/// The value as it was typed.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl ScalingSettings {
    /// The settings in an endpoint's record.
    pub(super) fn of(endpoint: &Value) -> CommandResult<Self> {
        Self::deserialize(endpoint).map_err(|error| cannot("read the endpoint's scaling settings", error))
    }

    /// The settings with these changes.
    pub(super) fn with(&self, changes: &[(String, Value)]) -> CommandResult<Self> {
        let mut new = self.clone();
        for (name, value) in changes {
            let number = || {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                number.ok_or_else(|| wrong(name, value, "a whole number from 0 on"))
            };
            match name.as_str() {
                "workersMin" => new.workers_min = number()?,
                "workersMax" => new.workers_max = number()?,
                "idleTimeout" => new.idle_timeout = number()?,
                "idleTimeoutMax" => new.idle_timeout_max = number()?,
                "scalerValue" => new.scaler_value = number()?,
                "maxConcurrency" => new.max_concurrency = number()?,
                _ => {
                    new.scaler_type = ScalerType::deserialize(value)
                        .map_err(|_| wrong(name, value, "QUEUE_DELAY, REQUEST_COUNT or IDLE_GAPS"))?;
                }
            }
        }
        Ok(new)
    }

    /// The rules by which the server plans.
    pub(super) fn rules(&self) -> ScalingRules {
        ScalingRules {
            workers_min: self.workers_min,
            workers_max: self.workers_max,
            idle_timeout_ms: u64::from(self.idle_timeout) * 1_000,
            idle_timeout_ms_max: (self.scaler_type == ScalerType::IdleGaps)
                .then(|| u64::from(self.idle_timeout_max) * 1_000),
            scaler: Scaler::of(self.scaler_type, self.scaler_value),
            max_concurrency: u64::from(self.max_concurrency),
            version: 1,
            is_balanced: false,
        }
    }
}

fn wrong(name: &str, value: &Value, expected: &str) -> CommandError {
    CommandError::usage(format!("{name} must be {expected}, not `{}`", shown(value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn today() -> ScalingSettings {
        ScalingSettings::of(&json!({
            "workersMin": 0, "workersMax": 3, "idleTimeout": 5, "idleTimeoutMax": 3600, "scalerType": "QUEUE_DELAY",
            "scalerValue": 4, "maxConcurrency": 1, "name": "hello",
        }))
        .unwrap()
    }

    #[test]
    fn changes_are_applied_and_others_stay() {
        let changes: Vec<_> = NAMES
            .iter()
            .zip(["1", "9", "30", "600", "IDLE_GAPS", "2", "8"])
            .map(|(name, value)| assignment(&format!("{name}={value}")).unwrap())
            .collect();
        let rules = today().with(&changes).unwrap().rules();
        assert_eq!(
            (rules.workers_min, rules.workers_max, rules.idle_timeout_ms, rules.idle_timeout_ms_max),
            (1, 9, 30_000, Some(600_000))
        );
        assert_eq!((rules.scaler, rules.max_concurrency), (Scaler::QueueDelay { ms: 2_000 }, 8));
        assert_eq!(today().with(&[]).unwrap(), today());
        assert_eq!(today().rules().idle_timeout_ms_max, None);
    }

    #[test]
    fn what_is_no_setting_or_no_value_is_said() {
        assert!(assignment("workersMax").unwrap_err().contains("SETTING=VALUE"));
        assert!(
            assignment("workersmax=4")
                .unwrap_err()
                .contains("`workersmax` is no scaling setting; they are workersMin")
        );
        for (text, part) in [
            ("workersMax=many", "workersMax must be a whole number from 0 on, not `many`"),
            ("workersMax=-1", "not `-1`"),
            ("scalerType=FAST", "QUEUE_DELAY, REQUEST_COUNT or IDLE_GAPS, not `FAST`"),
        ] {
            let error = today().with(&[assignment(text).unwrap()]).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
