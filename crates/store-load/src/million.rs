//! Waiting jobs, and how long an owner needs to read their rows.

use std::time::Instant;

use clap::Args;
use longshore_model::{Durability, EndpointNo};
use longshore_store::{Store as _, StoreError};
use serde::Serialize;

use crate::rows::{Jobs, Step};
use crate::{Target, print};

/// Jobs in a batch.
const BATCH: u64 = 4_096;
/// Rows in a page, as the engine reads them.
const PAGE: usize = 10_000;

#[derive(Args)]
pub struct Million {
    /// Number of jobs
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
}

#[derive(Serialize)]
struct MillionResult {
    fill_s: f64,
    load_ms: f64,
}

impl Million {
    /// Stores the jobs, reads their rows, and prints the times of both.
    ///
    /// # Errors
    ///
    /// If the store fails, or does not return all rows.
    pub async fn run(&self, target: &Target) -> Result<(), StoreError> {
        let began = Instant::now();
        for first in (1..=self.jobs).step_by(BATCH as usize) {
            let jobs = Jobs { first, count: BATCH.min(self.jobs + 1 - first) };
            jobs.commit(target, Step::Submit, Durability::Buffered).await?;
        }
        let (fill_s, began) = (began.elapsed().as_secs_f64(), Instant::now());
        let (mut rows, mut after) = (0, 0);
        loop {
            let page = target.store.jobs(EndpointNo(1), after, PAGE).await?;
            rows += page.len() as u64;
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.key.seq,
                _ => break,
            }
        }
        let load_ms = began.elapsed().as_secs_f64() * 1e3;
        if rows != self.jobs {
            return Err(StoreError::Corrupt(format!("{rows} rows instead of {}", self.jobs)));
        }
        print(&MillionResult { fill_s, load_ms })
    }
}
