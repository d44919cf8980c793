//! What the operator writes.

use crate::dice::Dice;

/// An endpoint to create.
pub(super) struct New {
    pub(super) body: String,
    pub(super) slug: Option<String>,
    pub(super) is_external: bool,
    pub(super) workers_max: u64,
}

/// A template. Its number makes its name different from others.
pub(super) fn template(number: u64) -> String {
    let env = environment(number);
    format!(
        r#"{{"name":"template-{number}","imageName":"sim","dockerStartCmd":["worker"],{}"#,
        env.trim_start_matches('{')
    )
}

/// A change of a template that makes its workers old.
pub(super) fn environment(number: u64) -> String {
    format!(r#"{{"env":{{"NUMBER":"{number}"}}}}"#)
}

/// A change of how many workers there may be.
pub(super) fn workers(min: u64, max: u64) -> String {
    format!(r#"{{"workersMin":{min},"workersMax":{max}}}"#)
}

/// Any kind of endpoint.
pub(super) fn endpoint(dice: &mut Dice, number: u64, template: &str) -> New {
    let is_external = dice.chance(0.3);
    let slug = dice.chance(0.5).then(|| format!("slug-{number}"));
    let workers_max = dice.range(1..=5);
    let workers_min = if dice.chance(0.3) { dice.range(1..=workers_max.min(2)) } else { 0 };
    let mut members = vec![
        format!(r#""name":"endpoint-{number}","templateId":"{template}""#),
        format!(r#""provider":"{}""#, if is_external { "external" } else { "process" }),
        format!(r#""workersMin":{workers_min},"workersMax":{workers_max}"#),
    ];
    members.extend(slug.as_ref().map(|slug| format!(r#""slug":"{slug}""#)));
    for setting in SETTINGS {
        if dice.chance(0.6) {
            members.push(setting(dice));
        }
    }
    New { body: format!("{{{}}}", members.join(",")), slug, is_external, workers_max }
}

/// A change of one setting.
pub(super) fn change(dice: &mut Dice) -> String {
    let setting = *dice.pick(SETTINGS);
    format!("{{{}}}", setting(dice))
}

/// A member with some value.
type Setting = fn(&mut Dice) -> String;

/// What may be chosen freely, and changed.
const SETTINGS: &[Setting] = &[
    |dice| format!(r#""idleTimeout":{}"#, dice.skewed(1..=120)),
    |dice| {
        if dice.chance(0.5) {
            format!(r#""scalerType":"QUEUE_DELAY","scalerValue":{}"#, dice.skewed(1..=30))
        } else {
            format!(r#""scalerType":"REQUEST_COUNT","scalerValue":{}"#, dice.skewed(1..=10))
        }
    },
    |dice| format!(r#""executionTimeoutMs":{}"#, dice.skewed(5_000..=300_000)),
    |dice| format!(r#""maxRetries":{}"#, dice.skewed(0..=5)),
    |dice| {
        let on = dice.pick::<&str>(&[
            "[]",
            r#"["workerLost"]"#,
            r#"["workerLost","handlerError"]"#,
            r#"["handlerError"]"#,
        ]);
        format!(r#""retryOn":{on}"#)
    },
    |dice| format!(r#""resultRetentionMs":{}"#, dice.skewed(1_000..=120_000)),
    |dice| format!(r#""syncResultRetentionMs":{}"#, dice.skewed(1_000..=60_000)),
    |dice| {
        if dice.chance(0.6) {
            r#""maxQueueLength":null"#.to_owned()
        } else {
            format!(r#""maxQueueLength":{}"#, dice.skewed(1..=200))
        }
    },
    // No longer than the server's, by which the auditor reckons.
    |dice| format!(r#""stopGraceMs":{}"#, dice.skewed(0..=10_000)),
    |dice| format!(r#""maxConcurrency":{}"#, dice.skewed(1..=8)),
    |dice| format!(r#""durability":"{}""#, dice.pick(&["synced", "buffered"])),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_json() {
        let mut dice = Dice::new(1);
        let mut bodies = vec![template(1), environment(2), workers(0, 3)];
        for number in 0..50 {
            bodies.push(endpoint(&mut dice, number, "t").body);
            bodies.push(change(&mut dice));
        }
        for body in bodies {
            serde_json::from_str::<serde_json::Value>(&body).expect(&body);
        }
    }
}
