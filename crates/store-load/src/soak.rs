//! Lives of jobs at a fixed rate, each deleted after a retention time: whether commits become slower over time.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use longshore_model::Durability;
use longshore_store::StoreError;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::rows::{Jobs, Step};
use crate::times::Times;
use crate::{Target, print};

/// Batches whose jobs are not done yet. A database that is slower than the rate is not flooded.
const IN_FLIGHT_MAX: usize = 128;

#[derive(Args)]
pub struct Soak {
    /// Lives a second
    #[arg(long, default_value_t = 5_000)]
    rate: u64,
    /// Jobs in a batch
    #[arg(long, default_value_t = 64)]
    batch: u64,
    /// Time of the load, in s
    #[arg(long, default_value_t = 180)]
    seconds: u64,
    /// Time from a job's result to its deletion, in s
    #[arg(long, default_value_t = 15)]
    retention: u64,
    /// Number of equal spans, each of which prints a line
    #[arg(long, default_value_t = 6)]
    spans: u32,
}

#[derive(Serialize)]
struct SpanResult {
    span: u32,
    lives_per_s: f64,
    commit_p50_us: u32,
    commit_p99_us: u32,
}

impl Soak {
    /// Runs the load. Prints the rate and the times of commits of each span.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn run(&self, target: Arc<Target>) -> Result<(), StoreError> {
        let span = Duration::from_secs(self.seconds) / self.spans;
        let mut ticks = interval(Duration::from_secs(1) * self.batch as u32 / self.rate as u32);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (places, mut batches) = (Arc::new(Semaphore::new(IN_FLIGHT_MAX)), JoinSet::new());
        let mut first = 1;
        for number in 1..=self.spans {
            let (began, mut times, mut lives) = (Instant::now(), Times::default(), 0);
            while began.elapsed() < span {
                ticks.tick().await;
                let place = Arc::clone(&places).acquire_owned().await;
                let place = place.map_err(|error| StoreError::Io(error.to_string()))?;
                let (target, jobs) = (Arc::clone(&target), Jobs { first, count: self.batch });
                let retention = Duration::from_secs(self.retention);
                batches.spawn(async move {
                    let taken = live(&target, jobs).await;
                    drop(place);
                    sleep(retention).await;
                    let mut taken = taken?;
                    taken.push(commit(&target, jobs, Step::Delete).await?);
                    Ok::<_, StoreError>(taken)
                });
                first += self.batch;
                while let Some(ended) = batches.try_join_next() {
                    lives += self.batch;
                    add(&mut times, ended)?;
                }
            }
            print(&SpanResult {
                span: number,
                lives_per_s: lives as f64 / began.elapsed().as_secs_f64(),
                commit_p50_us: times.quantile_us(0.5),
                commit_p99_us: times.quantile_us(0.99),
            })?;
        }
        Ok(())
    }
}

async fn live(target: &Target, jobs: Jobs) -> Result<Vec<Duration>, StoreError> {
    let mut taken = Vec::new();
    for step in [Step::Submit, Step::Take, Step::Done] {
        taken.push(commit(target, jobs, step).await?);
    }
    Ok(taken)
}

async fn commit(target: &Target, jobs: Jobs, step: Step) -> Result<Duration, StoreError> {
    let sent = Instant::now();
    jobs.commit(target, step, Durability::Synced).await?;
    Ok(sent.elapsed())
}

fn add(
    times: &mut Times,
    ended: Result<Result<Vec<Duration>, StoreError>, tokio::task::JoinError>,
) -> Result<(), StoreError> {
    let taken = ended.map_err(|error| StoreError::Io(error.to_string()))??;
    for took in taken {
        times.add(took);
    }
    Ok(())
}
