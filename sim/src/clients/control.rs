//! Clients change their jobs: ttl, cancel, retry, purge.

use super::Client;
use crate::raw_http::{get, post};

impl Client {
    /// Changes a job's deletion time with `status?ttl=`.
    pub(super) async fn keep_any(&self) {
        let Some(known) = self.any() else { return };
        let path = {
            let mut rng = self.rng();
            let ttl_ms = rng.skewed(1_000..=300_000);
            format!("{}/status/{}?ttl={ttl_ms}", self.mount(&known.endpoint, &mut rng), known.job)
        };
        if let Some(answer) = self.ask(get(path, &self.credential)).await {
            self.note(&known, &answer);
        }
    }

    pub(super) async fn cancel_any(&self) {
        let Some(known) = self.any() else { return };
        let (path, body) = {
            let mut rng = self.rng();
            let path = format!("{}/cancel/{}", self.mount(&known.endpoint, &mut rng), known.job);
            (path, if rng.chance(0.5) { "{}" } else { "" })
        };
        if let Some(answer) = self.ask(post(path, &self.credential, body)).await {
            self.note(&known, &answer);
        }
    }

    /// Retries a job. Most are retryable; a retry of the others must be refused.
    pub(super) async fn retry_any(&self) {
        let known = {
            let (mut rng, mut state) = (self.rng(), self.state());
            match rng.range(0..=9) {
                0 => state.pick_open(&mut rng),
                1..=2 => state.pick_over(&mut rng),
                _ => state.pick_failed(),
            }
        };
        let Some(known) = known else { return };
        let path = {
            let mut rng = self.rng();
            format!("{}/retry/{}", self.mount(&known.endpoint, &mut rng), known.job)
        };
        match self.ask(post(path, &self.credential, "")).await {
            Some(answer) if answer.status == 200 => self.state().reopened(&known),
            Some(answer) if answer.status == 404 => self.state().gone(&known),
            // The retry may have taken effect, so the job is requested again.
            None => self.state().reopened(&known),
            Some(_) => {}
        }
    }

    pub(super) async fn purge(&self) {
        let path = {
            let mut rng = self.rng();
            let Some(endpoint) = self.endpoints.pick(&mut rng) else { return };
            self.base(&endpoint, &mut rng) + "/purge-queue"
        };
        self.ask(post(path, &self.credential, "")).await;
    }
}
