//! Submits that a node repeats after the loss of an owner.

use longshore_model::JobId;

use super::direct::Direct;
use crate::gate::peer::{self, ChosenJob, Peer};

const BODY: &str = r#"{"input":{}}"#;
/// The default retention of jobs of `/run`, in ms.
const RETENTION_MS: u64 = 30 * 60 * 1_000;

/// Submits under an id that another node chose.
async fn submit(direct: &Direct, id: JobId, sent_ms_ago: u64) -> (u16, String) {
    let client = Peer::new([10, 0, 0, 7].into(), false);
    let asked = async {
        peer::set_client(client, Some(ChosenJob { id, sent_ms_ago }));
        direct.ask("POST", "/v2/demo/run", BODY).await
    };
    let reply = client.serve(asked).await;
    let key = if reply.status == 200 { "id" } else { "code" };
    (reply.status.as_u16(), reply.json()[key].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_submit_is_not_repeated_when_its_job_may_have_been_deleted() {
    let direct = Direct::start().await;
    let id = |number| JobId::mint_at(number << 12, number, false);
    let not_known = (503, "not_known".to_owned());
    assert_eq!(submit(&direct, id(1), RETENTION_MS).await, not_known, "it may have ended and been deleted");
    assert_eq!(submit(&direct, id(1), RETENTION_MS).await, not_known, "it was not submitted");
    for sent_ms_ago in [0, 1, RETENTION_MS - 1] {
        let job = id(2 + sent_ms_ago);
        assert_eq!(submit(&direct, job, sent_ms_ago).await, (200, job.to_string()));
        assert_eq!(submit(&direct, job, RETENTION_MS).await, (200, job.to_string()), "it is stored");
    }
}
