//! The requests of a load-balancing endpoint, as `endpoint get` shows them.

use longshore_client::Client;
use serde_json::{Map, Value, json};

use crate::exit::CommandResult;
use crate::members::Members;

/// Adds the numbers of a load-balancing endpoint to its record: lines for people, or one member `traffic` for programs. Does
/// nothing for other endpoints.
pub(super) async fn add(
    record: &mut Members,
    client: &Client,
    endpoint: &str,
    for_people: bool,
) -> CommandResult<()> {
    if record.text("type").as_deref() != Some("LB") {
        return Ok(());
    }
    // A key may read the endpoint and not its requests.
    let Ok(health) = client.health_text(endpoint).await else { return Ok(()) };
    let health: Value = serde_json::from_str(health.get()).unwrap_or_default();
    if !for_people {
        return record.set("traffic", Some(traffic(&health)));
    }
    for (name, text) in lines(&health) {
        record.set(name, Some(text))?;
    }
    Ok(())
}

/// The names of the lines for people.
pub(super) const NAMES: [&str; 7] =
    ["requestsPerSecond", "answers", "outstanding", "waiting", "queueWait", "firstByte", "workerHealth"];

fn traffic(health: &Value) -> Value {
    let mut traffic = health["lb"].as_object().cloned().unwrap_or_default();
    traffic.insert("outstanding".to_owned(), health["jobs"]["inProgress"].clone());
    traffic.insert("waiting".to_owned(), health["jobs"]["inQueue"].clone());
    Value::Object(traffic)
}

fn lines(health: &Value) -> [(&'static str, Value); 7] {
    let lb = &health["lb"];
    let values = [
        lb["requestsPerSecond"].clone(),
        counts(&lb["requests"]),
        health["jobs"]["inProgress"].clone(),
        health["jobs"]["inQueue"].clone(),
        times(&lb["queueWaitMs"]),
        times(&lb["firstByteMs"]),
        counts(&lb["workers"]),
    ];
    let mut values = values.into_iter();
    NAMES.map(|name| (name, values.next().unwrap_or_default()))
}

/// The counts that are not 0, such as `2xx 12, refused 1`.
fn counts(counts: &Value) -> Value {
    let none = Map::new();
    let counts = counts.as_object().unwrap_or(&none);
    let some = counts.iter().filter(|(_, count)| count.as_u64() != Some(0));
    let texts: Vec<String> = some.map(|(name, count)| format!("{name} {count}")).collect();
    json!(texts.join(", "))
}

fn times(times: &Value) -> Value {
    match (&times["p50"], &times["p95"]) {
        (Value::Null, _) => Value::Null,
        (p50, p95) => json!(format!("p50 ≤ {p50} ms, p95 ≤ {p95} ms, of {}", times["count"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_leave_out_what_is_zero() {
        let health = json!({
            "jobs": {"inProgress": 3, "inQueue": 1},
            "lb": {
                "requestsPerSecond": 12.5,
                "requests": {"2xx": 120, "5xx": 0, "refused": 1},
                "queueWaitMs": {"count": 0, "p50": null, "p95": null},
                "firstByteMs": {"count": 121, "p50": 5, "p95": 25},
                "workers": {"healthy": 2, "unhealthy": 0},
            },
        });
        let texts = lines(&health).map(|(name, value)| format!("{name}={value}"));
        assert_eq!(
            texts.join("; "),
            "requestsPerSecond=12.5; answers=\"2xx 120, refused 1\"; outstanding=3; waiting=1; queueWait=null; \
             firstByte=\"p50 ≤ 5 ms, p95 ≤ 25 ms, of 121\"; workerHealth=\"healthy 2\""
        );
        assert_eq!(traffic(&health)["outstanding"], 3);
    }
}
