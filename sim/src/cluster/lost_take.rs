//! A take that an owner got and that a node sends to the next owner, because the first one is lost.
//!
//! The first owner may have handed out a job that no worker gets. The worker sees one take, and the auditor would not know that a
//! server got two. So the lost one is observed as a take of the worker that no response follows.

use std::cell::Cell;

use bytes::Bytes;
use http::Request;

use crate::network::Network;
use crate::observation::{HttpRequest, Party};

/// A take at an owner, which is lost if this is dropped before the answer.
pub(super) struct LostTake {
    network: Network,
    worker: String,
    path: String,
    is_answered: Cell<bool>,
}

impl LostTake {
    /// The take that a request is; `None` if it is another one.
    pub(super) fn of<B>(network: &Network, request: &Request<B>) -> Option<Self> {
        let path = request.uri().path();
        let (before, worker) = path.rsplit_once('/')?;
        let is_take = before.ends_with("/job-take") || before.ends_with("/job-take-batch");
        is_take.then(|| Self {
            network: network.clone(),
            worker: worker.to_owned(),
            path: request.uri().to_string(),
            is_answered: Cell::new(false),
        })
    }

    /// The node has the answer.
    pub(super) fn is_answered(&self) {
        self.is_answered.set(true);
    }
}

impl Drop for LostTake {
    fn drop(&mut self) {
        if !self.is_answered.get() {
            let (path, from) = (std::mem::take(&mut self.path), Party::Worker(self.worker.clone()));
            let request = HttpRequest { method: "GET", path, headers: Vec::new(), body: Bytes::new() };
            self.network.observe_lost(from, request);
        }
    }
}
