//! beanstalkd: put, reserve, delete. beanstalkd stores no results.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;

use tempfile::TempDir;

use super::{Peer, SLOTS, folder};
use crate::http::{Answer, Parsed};
use crate::load::{Role, SlotProtocol, Slots, Tally, Target};
use crate::program::{CpuPlacement, Program, free_address};
use crate::scenarios::ScenarioContext;

pub(super) struct Beanstalkd {
    _program: Program,
    _folder: TempDir,
    address: SocketAddr,
}

impl Peer for Beanstalkd {
    const NAME: &'static str = "beanstalkd";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (folder, address) = (folder(ground)?, free_address()?);
        let mut command = Command::new("beanstalkd");
        command
            .args(["-l", "127.0.0.1", "-p", &address.port().to_string(), "-f", "0", "-b"])
            .arg(folder.path());
        let mut program = Program::start(&mut command, CpuPlacement::Measured, ground.cores)?;
        program.wait_listening(address)?;
        Ok(Self { _program: program, _folder: folder, address })
    }

    fn dial(&self) -> Target {
        Target::new(self.address, reply)
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        [format!("put 0 0 600 {}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat()
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        Ok(Box::new(Slots::new(SlotProtocol { take, done, dial: self.dial() }, SLOTS, tally)))
    }
}

fn take(_slot: usize) -> Vec<u8> {
    b"reserve\r\n".to_vec()
}

/// Builds the delete of a reserved job from `RESERVED <id> <bytes>`.
fn done(_slot: usize, taken: &[u8]) -> Vec<u8> {
    let line = taken.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let id = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    [b"delete ", id, b"\r\n"].concat()
}

/// Parses a line, and after `RESERVED` the job.
fn reply(bytes: &[u8]) -> Result<Parsed<'_>, String> {
    let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") else {
        return Ok(Parsed::Part(bytes.len() + 1));
    };
    let text = String::from_utf8_lossy(&bytes[..line]);
    let mut words = text.split(' ');
    let length = match (words.next(), words.nth(1).map(str::parse::<usize>)) {
        (Some("RESERVED"), Some(Ok(length))) => line + 2 + length + 2,
        (Some("INSERTED" | "DELETED"), _) => line + 2,
        _ => return Err(format!("beanstalkd says: {text}")),
    };
    if bytes.len() < length {
        return Ok(Parsed::Part(length));
    }
    Ok(Parsed::Whole(Answer { status: 200, body: bytes[..length].into(), closes: false }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_whole_or_not() {
        let whole = |bytes: &[u8]| match reply(bytes) {
            Ok(Parsed::Whole(_, used)) => Some(used),
            _ => None,
        };
        assert_eq!(whole(b"INSERTED 1\r\n"), Some(12));
        assert_eq!(whole(b"RESERVED 1 2\r\nab\r\n"), Some(18));
        assert_eq!(whole(b"RESERVED 1 2\r\nab"), None);
        assert!(reply(b"NOT_FOUND\r\n").is_err());
        assert_eq!(done(0, b"RESERVED 17 2\r\nab\r\n"), b"delete 17\r\n");
    }
}
