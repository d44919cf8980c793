//! Redis lists: one push per job. Each slot moves a job to its own list, stores the result and removes the job.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;

use tempfile::TempDir;

use super::resp::{command, reply};
use super::{Peer, SLOTS, folder};
use crate::load::{Role, SlotProtocol, Slots, Tally, Target};
use crate::program::{CpuPlacement, Program, free_address};
use crate::scenarios::ScenarioContext;

/// A Redis server that syncs its log before each reply.
pub(super) struct Redis {
    _program: Program,
    _folder: TempDir,
    address: SocketAddr,
}

impl Redis {
    pub fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (folder, address) = (folder(ground)?, free_address()?);
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--port", &address.port().to_string(), "--dir"]).arg(folder.path());
        let mut program = Program::start(&mut command, CpuPlacement::Measured, ground.cores)?;
        program.wait_listening(address)?;
        Ok(Self { _program: program, _folder: folder, address })
    }

    /// The URL that clients use.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

pub(super) struct RedisLists(Redis);

impl Peer for RedisLists {
    const NAME: &'static str = "redis-lists";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        Redis::start(ground).map(Self)
    }

    fn dial(&self) -> Target {
        Target::new(self.0.address, reply)
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        command(&[b"RPUSH", b"jobs", body])
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        Ok(Box::new(Slots::new(SlotProtocol { take, done, dial: self.dial() }, SLOTS, tally)))
    }
}

fn take(slot: usize) -> Vec<u8> {
    command(&[b"BLMOVE", b"jobs", own_list(slot).as_bytes(), b"LEFT", b"RIGHT", b"0"])
}

/// Lists have no ids, so all results of a slot share one key. The cost is the same.
fn done(slot: usize, _taken: &[u8]) -> Vec<u8> {
    let result = format!("result:{slot}");
    let kept = command(&[b"SET", result.as_bytes(), br#"{"ok":true}"#]);
    [kept, command(&[b"LPOP", own_list(slot).as_bytes()])].concat()
}

fn own_list(slot: usize) -> String {
    format!("taken:{slot}")
}
