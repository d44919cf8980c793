//! `BullMQ` behind fastify, and its worker with 16 concurrent jobs.

use std::process::Command;
use std::rc::Rc;

use super::redis::Redis;
use super::web_queue::WebQueue;
use super::{Peer, SLOTS, installed, source};
use crate::http::Request;
use crate::load::{Role, Tally, Target};
use crate::program::free_address;
use crate::scenarios::ScenarioContext;

pub(super) struct BullMq(WebQueue);

impl Peer for BullMq {
    const NAME: &'static str = "bullmq";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (redis, address) = (Redis::start(ground)?, free_address()?);
        let mut command = node(ground, "bullmq/server.js", &redis)?;
        command.env("PORT", address.port().to_string());
        WebQueue::start(ground, redis, address, &mut command).map(Self)
    }

    fn dial(&self) -> Target {
        self.0.target()
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        Request::post("/run").with_body(body)
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        let mut command = node(self.0.context(), "bullmq/worker.js", self.0.redis())?;
        command.env("SLOTS", SLOTS.to_string());
        self.0.consumer(&mut command, tally)
    }
}

fn node(ground: &ScenarioContext, script: &str, redis: &Redis) -> Result<Command, String> {
    let mut command = Command::new("node");
    command.arg(source(script)).env("NODE_PATH", installed(ground)?.join("node_modules"));
    command.env("NODE_ENV", "production").env("REDIS_URL", redis.url());
    Ok(command)
}
