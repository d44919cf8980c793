//! Redis lists: a push per job; each slot moves one to a list of its own, keeps its result, and drops it.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;

use tempfile::TempDir;

use super::resp::{command, reply};
use super::{Peer, SLOTS, folder};
use crate::load::{Role, SlotProtocol, Slots, Tally, Target};
use crate::program::{CpuPlacement, Program, free_address};
use crate::scenarios::ScenarioContext;

/// A Redis that syncs its log before it answers.
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

    /// As its clients write it.
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

/// A list holds no ids, so all results of a slot have one name; it costs the same.
fn done(slot: usize, _taken: &[u8]) -> Vec<u8> {
    let result = format!("result:{slot}");
    let kept = command(&[b"SET", result.as_bytes(), br#"{"ok":true}"#]);
    [kept, command(&[b"LPOP", own_list(slot).as_bytes()])].concat()
}

fn own_list(slot: usize) -> String {
    format!("taken:{slot}")
}
