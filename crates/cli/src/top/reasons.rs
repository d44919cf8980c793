//! Why the jobs of endpoints wait, as the server last explained it.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_client::{Client, Explanation};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::reading::EndpointRow;

/// Most endpoints whose reason is requested for one table. The others keep their last one.
const ENDPOINTS_MAX: usize = 32;
/// Longest wait for the reasons of one table.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the jobs of an endpoint wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    /// The reason as a word.
    pub(super) code: String,
    /// Whether no job starts before the reason is removed.
    #[serde(rename = "blocking")]
    pub(super) is_blocking: bool,
    pub(super) title: String,
    pub(super) text: String,
}

impl Reason {
    /// The cause for which jobs wait, or the one that would block the next job; `None` if there is none.
    fn of(explanation: Explanation) -> Option<Self> {
        let Explanation { cause, also, .. } = explanation;
        let waits = cause.code != "not_waiting";
        let mut causes = std::iter::once(cause).chain(also);
        let cause = if waits { causes.next() } else { causes.find(|cause| cause.blocking) }?;
        Some(Self { code: cause.code, is_blocking: cause.blocking, title: cause.title, text: cause.text })
    }
}

/// The last known reason of each endpoint with queued jobs or failing workers, by the endpoint's id.
#[derive(Default)]
pub(super) struct Reasons {
    known: BTreeMap<String, Reason>,
}

impl Reasons {
    /// Requests the reasons of the first rows that have one, and writes the last known ones into all rows.
    pub(super) async fn fill(&mut self, client: &Client, rows: &mut [EndpointRow]) {
        self.known.retain(|id, _| rows.iter().any(|row| row.id == *id && needs_reason(row)));
        let mut requests = JoinSet::new();
        for row in rows.iter().filter(|row| needs_reason(row)).take(ENDPOINTS_MAX) {
            let (client, id) = (client.clone(), row.id.clone());
            requests.spawn(async move { (client.explain(&id, None).await, id) });
        }
        let answers = async {
            while let Some(answer) = requests.join_next().await {
                let Ok((Ok(explanation), id)) = answer else { continue };
                match Reason::of(explanation) {
                    Some(reason) => drop(self.known.insert(id, reason)),
                    None => drop(self.known.remove(&id)),
                }
            }
        };
        // A server that is slow to explain does not stop the figures.
        let _ = timeout(ANSWER_TIMEOUT, answers).await;
        for row in rows {
            row.reason = self.known.get(&row.id).cloned();
        }
    }
}

fn needs_reason(row: &EndpointRow) -> bool {
    row.queued > 0 || row.workers("unhealthy") > 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cause_is_the_reason_and_of_an_idle_endpoint_what_would_block_it() {
        let cause = |code: &str, blocking: bool| json!({"code": code, "blocking": blocking, "title": code, "text": ""});
        let reason = |first, also| {
            let explanation = json!({"cause": first, "also": also});
            Reason::of(serde_json::from_value(explanation).unwrap()).map(|reason| reason.code)
        };
        let waits = reason(cause("all_busy", false), vec![cause("queue_full", false)]);
        assert_eq!(waits.as_deref(), Some("all_busy"));
        let blocked = vec![cause("ttl_near", false), cause("paused", true)];
        assert_eq!(reason(cause("not_waiting", false), blocked).as_deref(), Some("paused"));
        assert_eq!(reason(cause("not_waiting", false), vec![]), None);
    }
}
