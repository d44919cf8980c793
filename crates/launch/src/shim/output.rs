//! Copies a worker's output to the log, and ends the worker if the server is absent for too long.

use std::io::{PipeReader, Read as _};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use longshore_model::StopReason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::WorkerDir;
use crate::fold::Folding;
use crate::log::RotatedLog;
use crate::presence::Absence;
use crate::proc::ProcessId;

/// How often the shim checks whether the server runs, and the shortest time between two checks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY_MIN: Duration = Duration::from_millis(20);
/// The stop grace of a worker whose server is absent.
const GRACE: Duration = Duration::from_secs(10);

/// When a worker without a server is ended.
pub(super) struct Orphaning {
    /// The file that a running server locks.
    pub(super) presence: PathBuf,
    /// How long the server may be absent; `None`: without end.
    pub(super) after: Option<Duration>,
    pub(super) dir: WorkerDir,
    pub(super) worker: Option<ProcessId>,
}

/// Starts a thread that copies the output to the log, and checks for the server until this process exits. The returned
/// channel gets a message when the worker's pipe is closed.
pub(super) fn keep(
    output: PipeReader,
    log: RotatedLog,
    orphaning: Orphaning,
) -> Result<mpsc::Receiver<()>, String> {
    // Bounded: the thread sends one message.
    let (ended, output_ended) = mpsc::channel();
    let every = orphaning.after.map_or(LOOK_EVERY, |after| (after / 4).clamp(LOOK_EVERY_MIN, LOOK_EVERY));
    let keeper = Keeper {
        output: Some(output),
        log,
        in_line: false,
        folding: None,
        absence: Absence::of(orphaning.presence.clone()),
        orphaning,
        every,
        ending: Ending::No,
    };
    thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(move || keeper.run(&ended))
        .map_err(|e| format!("cannot start a thread: {e}"))?;
    Ok(output_ended)
}

struct Keeper {
    /// `None` once the output has ended.
    output: Option<PipeReader>,
    log: RotatedLog,
    /// Whether the last written byte did not end a line.
    in_line: bool,
    /// The server's absence; `None` while it runs.
    folding: Option<Folding>,
    absence: Absence,
    orphaning: Orphaning,
    every: Duration,
    ending: Ending,
}

/// How far the worker has been ended after its server was absent for too long.
enum Ending {
    No,
    Asked { kill_at: Instant },
    Killed,
}

impl Keeper {
    fn run(mut self, ended: &mpsc::Sender<()>) {
        let mut look_at = Instant::now() + self.every;
        loop {
            if self.is_readable(look_at) && !self.copy() {
                self.stop_folding();
                self.output = None;
                let _ = ended.send(());
            }
            let now = Instant::now();
            if look_at <= now {
                self.look(now);
                look_at = now + self.every;
            }
        }
    }

    /// Waits for output until `deadline`.
    fn is_readable(&self, until: Instant) -> bool {
        let wait = until.saturating_duration_since(Instant::now());
        let Some(output) = &self.output else {
            thread::sleep(wait);
            return false;
        };
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut polled = [PollFd::new(output, PollFlags::IN)];
        // After an interruption the loop reads what there is, and checks the time.
        poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    /// Copies the available output; returns false at its end.
    fn copy(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let Some(Ok(bytes @ 1..)) = self.output.as_mut().map(|output| output.read(&mut buffer)) else {
            return false;
        };
        match &mut self.folding {
            None => self.write(&buffer[..bytes]),
            Some(folding) => {
                let written = folding.fold(&buffer[..bytes], Instant::now());
                self.write(&written);
            }
        }
        true
    }

    /// Writes to the log. An error is ignored: a full disk must not block the worker's pipe.
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.in_line = *last != b'\n';
            let _ = self.log.write(bytes);
        }
    }

    /// Checks whether the server runs.
    fn look(&mut self, now: Instant) {
        match (self.absence.look(now), &mut self.folding) {
            (Some(_), None) => self.folding = Some(Folding::begin(self.in_line)),
            (Some(_), Some(folding)) if folding.due().is_some_and(|due| due <= now) => {
                let mentioned = folding.mention();
                self.write(&mentioned);
            }
            (None, Some(_)) => self.stop_folding(),
            _ => {}
        }
        self.end_orphan(now);
    }

    fn stop_folding(&mut self) {
        if let Some(folding) = self.folding.take() {
            let held_back = folding.end();
            self.write(&held_back);
        }
    }

    /// Ends a worker whose server was absent for too long. A server that returns meanwhile goes on stopping the worker.
    fn end_orphan(&mut self, now: Instant) {
        let worker = self.orphaning.worker.as_ref().filter(|worker| worker.is_alive());
        let Some(group) = worker.and_then(ProcessId::pid) else { return };
        match self.ending {
            Ending::No => {
                let away = self.absence.lasts(now);
                if self.orphaning.after.is_none_or(|after| away.is_none_or(|away| away < after)) {
                    return;
                }
                let seconds = away.unwrap_or_default().as_secs();
                self.orphaning.dir.note_stopping(&StopReason::ServerAway(seconds));
                let line =
                    format!("[longshore] the server has been away for {seconds} s: ending the worker\n");
                self.stop_folding();
                self.write(line.as_bytes());
                let _ = rustix::process::kill_process_group(group, Signal::TERM);
                self.ending = Ending::Asked { kill_at: now + GRACE };
            }
            Ending::Asked { kill_at } if kill_at <= now => {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
                self.ending = Ending::Killed;
            }
            Ending::Asked { .. } | Ending::Killed => {}
        }
    }
}
