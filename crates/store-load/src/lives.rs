//! As many lives of jobs as the store allows, with several batches in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use longshore_model::Durability;
use longshore_store::StoreError;
use serde::Serialize;

use crate::rows::{Jobs, Step};
use crate::times::Times;
use crate::{Target, print};

#[derive(Args)]
pub struct Lives {
    /// Jobs in a batch
    #[arg(long, default_value_t = 64)]
    batch: u64,
    /// Batches in flight
    #[arg(long, default_value_t = 16)]
    in_flight: u32,
    /// Time of the load, in ms
    #[arg(long, default_value_t = 2_000)]
    ms: u64,
}

#[derive(Serialize)]
struct LivesResult {
    lives: u64,
    seconds: f64,
    commits: usize,
    commit_p50_us: u32,
    commit_p99_us: u32,
}

impl Lives {
    /// Runs the load and prints its rate.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn run(&self, target: Arc<Target>) -> Result<(), StoreError> {
        let next = Arc::new(AtomicU64::new(1));
        let (began, span, count) = (Instant::now(), Duration::from_millis(self.ms), self.batch);
        let tasks: Vec<_> = (0..self.in_flight)
            .map(|_| {
                let (target, next) = (Arc::clone(&target), Arc::clone(&next));
                tokio::spawn(async move {
                    let mut taken = Vec::new();
                    while began.elapsed() < span {
                        let jobs = Jobs { first: next.fetch_add(count, Ordering::Relaxed), count };
                        for step in [Step::Submit, Step::Take, Step::Done] {
                            let sent = Instant::now();
                            jobs.commit(&target, step, Durability::Synced).await?;
                            taken.push(sent.elapsed());
                        }
                    }
                    Ok::<_, StoreError>(taken)
                })
            })
            .collect();
        let mut times = Times::default();
        for task in tasks {
            let taken = task.await.map_err(|error| StoreError::Io(error.to_string()))??;
            for took in taken {
                times.add(took);
            }
        }
        print(&LivesResult {
            lives: next.load(Ordering::Relaxed) - 1,
            seconds: began.elapsed().as_secs_f64(),
            commits: times.len(),
            commit_p50_us: times.quantile_us(0.5),
            commit_p99_us: times.quantile_us(0.99),
        })
    }
}
