//! The request bodies of the operator.

use crate::rng::Rng;

/// An endpoint to create.
pub(super) struct New {
    pub(super) body: String,
    pub(super) slug: Option<String>,
    pub(super) is_external: bool,
    pub(super) workers_max: u64,
}

/// A template. The number makes its name unique.
pub(super) fn template(number: u64) -> String {
    let env = environment(number);
    format!(
        r#"{{"name":"template-{number}","imageName":"sim","dockerStartCmd":["worker"],{}"#,
        env.trim_start_matches('{')
    )
}

/// A change of a template that replaces its workers.
pub(super) fn environment(number: u64) -> String {
    format!(r#"{{"env":{{"NUMBER":"{number}"}}}}"#)
}

/// A change of the worker limits.
pub(super) fn workers(min: u64, max: u64) -> String {
    format!(r#"{{"workersMin":{min},"workersMax":{max}}}"#)
}

/// A random endpoint.
pub(super) fn endpoint(rng: &mut Rng, number: u64, template: &str) -> New {
    let is_external = rng.chance(0.3);
    let slug = rng.chance(0.5).then(|| format!("slug-{number}"));
    let workers_max = rng.range(1..=5);
    let workers_min = if rng.chance(0.3) { rng.range(1..=workers_max.min(2)) } else { 0 };
    let mut members = vec![
        format!(r#""name":"endpoint-{number}","templateId":"{template}""#),
        format!(r#""provider":"{}""#, if is_external { "external" } else { "process" }),
        format!(r#""workersMin":{workers_min},"workersMax":{workers_max}"#),
    ];
    members.extend(slug.as_ref().map(|slug| format!(r#""slug":"{slug}""#)));
    for setting in SETTINGS {
        if rng.chance(0.6) {
            members.push(setting(rng));
        }
    }
    New { body: format!("{{{}}}", members.join(",")), slug, is_external, workers_max }
}

/// A random change of one setting.
pub(super) fn change(rng: &mut Rng) -> String {
    let setting = *rng.pick(SETTINGS);
    format!("{{{}}}", setting(rng))
}

/// Returns one member with a random value.
type Setting = fn(&mut Rng) -> String;

/// The settings that are drawn freely and changed.
const SETTINGS: &[Setting] = &[
    |rng| format!(r#""idleTimeout":{}"#, rng.skewed(1..=120)),
    |rng| {
        if rng.chance(0.5) {
            let value = rng.skewed(1..=30);
            let scaler = if value % 2 == 0 { "IDLE_GAPS" } else { "QUEUE_DELAY" };
            format!(r#""scalerType":"{scaler}","scalerValue":{value}"#)
        } else {
            format!(r#""scalerType":"REQUEST_COUNT","scalerValue":{}"#, rng.skewed(1..=10))
        }
    },
    |rng| format!(r#""executionTimeoutMs":{}"#, rng.skewed(5_000..=300_000)),
    |rng| format!(r#""maxRetries":{}"#, rng.skewed(0..=5)),
    |rng| {
        let on = rng.pick::<&str>(&[
            "[]",
            r#"["workerLost"]"#,
            r#"["workerLost","handlerError"]"#,
            r#"["handlerError"]"#,
        ]);
        format!(r#""retryOn":{on}"#)
    },
    |rng| format!(r#""resultRetentionMs":{}"#, rng.skewed(1_000..=120_000)),
    |rng| format!(r#""syncResultRetentionMs":{}"#, rng.skewed(1_000..=60_000)),
    |rng| {
        if rng.chance(0.6) {
            r#""maxQueueLength":null"#.to_owned()
        } else {
            format!(r#""maxQueueLength":{}"#, rng.skewed(1..=200))
        }
    },
    // At most the server's default, which the auditor assumes.
    |rng| format!(r#""stopGraceMs":{}"#, rng.skewed(0..=10_000)),
    |rng| format!(r#""maxConcurrency":{}"#, rng.skewed(1..=8)),
    |rng| format!(r#""durability":"{}""#, rng.pick(&["synced", "buffered"])),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_json() {
        let mut rng = Rng::new(1);
        let mut bodies = vec![template(1), environment(2), workers(0, 3)];
        for number in 0..50 {
            bodies.push(endpoint(&mut rng, number, "t").body);
            bodies.push(change(&mut rng));
        }
        for body in bodies {
            serde_json::from_str::<serde_json::Value>(&body).expect(&body);
        }
    }
}
