//! What a supervisor does while another process may own the rows.

use super::super::FleetEvent;
use super::fixture::*;

#[tokio::test(start_paused = true)]
async fn no_worker_is_started_or_stopped_while_another_process_may_own_the_rows() {
    let harness = Harness::start(an_endpoint());
    harness.wait_ms(SOON).await;
    harness.set_lease_over(true);
    harness.set_queued(1);
    harness.wait_ms(30_000).await;
    assert_eq!(harness.running(), [], "the next owner starts workers of its own");
    harness.set_lease_over(false);
    harness.wait_ms(1_000 + SOON).await;
    let workers = harness.running();
    assert_eq!(workers.len(), 1);
    harness.queue.set_running(&workers[0], 1);
    harness.set_queued(0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(SOON).await;

    harness.set_lease_over(true);
    harness.queue.set_running(&workers[0], 0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(60_000).await;
    assert_eq!(harness.running(), workers, "the next owner may have given it a job");
    harness.set_lease_over(false);
    harness.wait_ms(10_000).await;
    assert_eq!(harness.running(), []);
}

#[tokio::test(start_paused = true)]
async fn no_worker_is_started_if_the_lease_ends_between_the_plan_and_the_start() {
    let harness = Harness::start(an_endpoint());
    harness.wait_ms(SOON).await;
    harness.set_acts_left(1);
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.running(), [], "the plan was the last act");
    harness.wait_ms(30_000).await;
    assert_eq!(harness.running(), []);

    harness.set_lease_over(false);
    harness.wait_ms(1_000 + SOON).await;
    assert_eq!(harness.running().len(), 1, "a start that was not tried counts as no crash");
}
