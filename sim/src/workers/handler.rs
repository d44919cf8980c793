//! A handler that runs one job.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::output::{OutputTag, closed};
use super::profile::HandlerPlan;
use super::sdk::Sdk;
use crate::faults::Fault;

/// Interval at which a long handler checks whether the faults have stopped.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

impl Sdk {
    /// Runs a handler and posts its result.
    pub(super) async fn handle(self: &Arc<Self>, job: &Arc<str>, run: u64, stop: &Notify) {
        let ignores_stop = self.world.faults.inject(Fault::HandlerDeaf);
        let is_stuck = self.world.faults.inject(Fault::HandlerStuck);
        let mut plan = {
            let healthy = self.world.faults.are_over();
            let mut rng = self.rng();
            self.profile.plan(&mut rng, healthy)
        };
        plan.work = plan.work.filter(|_| !is_stuck);
        let stopped = async {
            stop.notified().await;
            if ignores_stop {
                std::future::pending::<()>().await;
            }
        };
        let answer = tokio::select! {
            biased;
            () = stopped => None,
            answer = self.work(job, run, &plan) => Some(answer),
        };
        self.wait_while_suspended().await;
        self.handler_ended(run);
        // A stopped handler posts nothing.
        if let Some(answer) = answer {
            self.inject_faults();
            self.post_result(job, answer, plan.chunks.is_some()).await;
        }
    }

    /// Returns the body of the result.
    async fn work(self: &Arc<Self>, job: &Arc<str>, run: u64, plan: &HandlerPlan) -> String {
        let signature = OutputTag { job, worker: &self.env.worker, run };
        for step in 0..plan.progress {
            self.post_progress(job, signature.progress(step));
        }
        let mut yielded = Vec::new();
        let sizes = plan.chunks.as_deref().unwrap_or_default();
        let pieces = sizes.len() as u32 + 1;
        for (number, bytes) in sizes.iter().enumerate() {
            self.busy(plan.work.map(|work| work / pieces)).await;
            let chunk = signature.chunk(number, *bytes);
            self.post_chunk(job, &chunk).await;
            if plan.aggregates {
                yielded.push(chunk);
            }
        }
        self.busy(plan.work.map(|work| work / pieces)).await;
        if self.world.faults.inject(Fault::HandlerFails) {
            return closed(signature.error(run), plan.asks_for_replacement);
        }
        let result = match &plan.chunks {
            Some(_) if plan.aggregates => format!(r#"{{"output":[{}]"#, yielded.join(",")),
            Some(_) => r#"{"output":[]"#.to_owned(),
            None => signature.result(plan.output_bytes, plan.oddity),
        };
        closed(result, plan.asks_for_replacement)
    }

    /// Waits for `work`; `None` waits until the faults have stopped.
    async fn busy(&self, work: Option<Duration>) {
        let mut left = work.unwrap_or(Duration::MAX);
        while !left.is_zero() {
            let slice = left.min(CHECK_INTERVAL);
            sleep(slice).await;
            left -= slice;
            if self.world.faults.are_over() {
                left = left.min(CHECK_INTERVAL / 5);
                if left < slice {
                    sleep(left).await;
                    return;
                }
            }
        }
    }
}
