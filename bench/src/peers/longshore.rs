//! Longshore as one of the compared queues.

use std::rc::Rc;

use super::{Peer, SLOTS};
use crate::load::{Role, Tally, Target, Worker};
use crate::scenarios::ScenarioContext;
use crate::server::{Endpoint, Server};

pub(super) struct Longshore {
    _server: Server,
    endpoint: Endpoint,
}

impl Peer for Longshore {
    const NAME: &'static str = "longshore";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let server = ground.start_server()?;
        let endpoint = server.endpoint()?;
        Ok(Self { _server: server, endpoint })
    }

    fn dial(&self) -> Target {
        self.endpoint.address().into()
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        self.endpoint.post("run").with_body(body)
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        Ok(Box::new(Worker::new(&self.endpoint, "worker", SLOTS, tally)))
    }
}
