//! Clients change what becomes of their jobs.

use super::Client;
use crate::asking::{get, post};

impl Client {
    /// `status?ttl=`: the job shall go sooner, or later.
    pub(super) async fn keep_any(&self) {
        let Some(known) = self.any() else { return };
        let path = {
            let mut dice = self.dice();
            let ttl_ms = dice.skewed(1_000..=300_000);
            format!("{}/status/{}?ttl={ttl_ms}", self.mount(&known.endpoint, &mut dice), known.job)
        };
        if let Some(answer) = self.ask(get(path, &self.credential)).await {
            self.note(&known, &answer);
        }
    }

    pub(super) async fn cancel_any(&self) {
        let Some(known) = self.any() else { return };
        let (path, body) = {
            let mut dice = self.dice();
            let path = format!("{}/cancel/{}", self.mount(&known.endpoint, &mut dice), known.job);
            (path, if dice.chance(0.5) { "{}" } else { "" })
        };
        if let Some(answer) = self.ask(post(path, &self.credential, body)).await {
            self.note(&known, &answer);
        }
    }

    /// Retries a job, mostly one that may be retried; the others must be refused.
    pub(super) async fn retry_any(&self) {
        let known = {
            let (mut dice, mut book) = (self.dice(), self.book());
            match dice.range(0..=9) {
                0 => book.pick_open(&mut dice),
                1..=2 => book.pick_over(&mut dice),
                _ => book.pick_failed(),
            }
        };
        let Some(known) = known else { return };
        let path = {
            let mut dice = self.dice();
            format!("{}/retry/{}", self.mount(&known.endpoint, &mut dice), known.job)
        };
        match self.ask(post(path, &self.credential, "")).await {
            Some(answer) if answer.status == 200 => self.book().reopened(&known),
            Some(answer) if answer.status == 404 => self.book().gone(&known),
            // It may have been sent back all the same: somebody looks again.
            None => self.book().reopened(&known),
            Some(_) => {}
        }
    }

    pub(super) async fn purge(&self) {
        let path = {
            let mut dice = self.dice();
            let Some(endpoint) = self.endpoints.pick(&mut dice) else { return };
            self.base(&endpoint, &mut dice) + "/purge-queue"
        };
        self.ask(post(path, &self.credential, "")).await;
    }
}
