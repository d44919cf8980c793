//! The event loop: moves the bytes of all connections and passes each response to its role.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::connection::Connection;
use super::target::Target;
use super::timer::Timer;
use crate::http::{Answer, Parsed};

/// A load without any response for this time fails as stuck.
const SILENCE_MAX: Duration = Duration::from_mins(1);
const TIMER: Token = Token(usize::MAX);
/// Longest wait of the loop.
const LOOK_ROUND: Duration = Duration::from_secs(1);
/// Size of the read buffer. Nearly every response fits and is parsed without copying.
const BUFFER_BYTES: usize = 256 * 1024;

/// The number of one connection of an [`EventLoop`], from 0.
pub type ConnectionId = usize;

/// One kind of participant of a load, such as a client or a worker.
pub trait Role {
    /// Opens the role's connections with [`EventLoop::open`].
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String>;
    /// Sends the first requests.
    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String>;
    /// Handles a response on one of the role's connections.
    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String>;
    /// Handles further bytes of a streamed response, see [`EventLoop::listen`].
    fn heard(&mut self, line: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        let _ = (line, bytes);
        Ok(())
    }
    /// Runs after all received responses were handled, for timed work. Returns when to run next.
    fn turn(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        let _ = (event_loop, now);
        Ok(None)
    }
    /// Whether the role has no further work.
    fn is_done(&self) -> bool;
}

/// All connections of a load.
pub struct EventLoop {
    poll: Poll,
    timer: Timer,
    /// Whether the loop polls without sleeping.
    is_awake: bool,
    lines: Vec<Connection>,
    /// The role that is running; new connections belong to it.
    role: usize,
}

impl EventLoop {
    /// Runs a load until all roles are done.
    ///
    /// # Errors
    ///
    /// If a connection or a role fails, or no response arrives for a minute.
    pub fn run(roles: &mut [&mut dyn Role]) -> Result<(), String> {
        Self::new(false)?.take_on(roles)
    }

    /// Like [`EventLoop::run`], but polls without sleeping, which uses a whole processor. Waking a sleeping virtual
    /// processor costs its sender microseconds per response, which would count against a server that answers in
    /// bursts after a commit.
    pub fn run_awake(roles: &mut [&mut dyn Role]) -> Result<(), String> {
        Self::new(true)?.take_on(roles)
    }

    fn take_on(mut self, roles: &mut [&mut dyn Role]) -> Result<(), String> {
        for (at, role) in roles.iter_mut().enumerate() {
            self.role = at;
            role.open(&mut self)?;
        }
        let now = Instant::now();
        for (at, role) in roles.iter_mut().enumerate() {
            self.role = at;
            role.begin(&mut self, now)?;
        }
        self.serve(roles)
    }

    fn new(is_awake: bool) -> Result<Self, String> {
        let failed = |error| format!("cannot poll: {error}");
        let poll = Poll::new().map_err(failed)?;
        let timer = Timer::new(poll.registry(), TIMER).map_err(failed)?;
        Ok(Self { poll, timer, is_awake, lines: Vec::new(), role: 0 })
    }

    fn wait(&mut self, events: &mut Events, due: Option<Instant>, now: Instant) -> Result<(), String> {
        let waited = self.timer.set(due, now).and_then(|()| self.poll_for(events, now));
        match waited {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(format!("cannot poll: {error}")),
            _ => Ok(()),
        }
    }

    fn poll_for(&mut self, events: &mut Events, now: Instant) -> io::Result<()> {
        if !self.is_awake {
            return self.poll.poll(events, Some(LOOK_ROUND));
        }
        loop {
            self.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() || now.elapsed() > LOOK_ROUND {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    fn serve(&mut self, roles: &mut [&mut dyn Role]) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut heard = Instant::now();
        loop {
            let now = Instant::now();
            let mut due: Option<Instant> = None;
            for (at, role) in roles.iter_mut().enumerate() {
                self.role = at;
                due = due.into_iter().chain(role.turn(self, now)?).min();
            }
            if roles.iter().all(|role| role.is_done()) {
                return Ok(());
            }
            self.wait(&mut events, due, now)?;
            if events.iter().any(|event| event.token() != TIMER) {
                heard = now;
            } else if now - heard > SILENCE_MAX {
                return Err(format!("no answer for {} s", SILENCE_MAX.as_secs()));
            }
            for event in events.iter().filter(|event| event.token() != TIMER) {
                let line = event.token().0;
                if event.is_writable() {
                    self.lines[line].send_rest().map_err(|error| self.lost(line, &error))?;
                }
                if event.is_readable() {
                    self.receive(line, &mut buffer, roles)?;
                }
            }
        }
    }

    /// Opens a connection for the running role.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub fn open(&mut self, dial: impl Into<Target>) -> Result<ConnectionId, String> {
        let (id, dial) = (self.lines.len(), dial.into());
        let line = Connection::connect(dial, self.role);
        self.lines.push(line.map_err(|error| format!("cannot connect to {}: {error}", dial.address()))?);
        self.register(id)?;
        Ok(id)
    }

    /// Opens `count` connections for the running role. Returns the id of the first one; the others follow it.
    ///
    /// # Errors
    ///
    /// If a connection fails.
    pub fn open_all(&mut self, count: usize, dial: impl Into<Target>) -> Result<ConnectionId, String> {
        let (first, dial) = (self.lines.len(), dial.into());
        (0..count).try_for_each(|_| self.open(dial).map(drop))?;
        Ok(first)
    }

    fn reconnect(&mut self, id: ConnectionId) -> Result<(), String> {
        self.lines[id].reconnect().map_err(|error| self.lost(id, &error))?;
        self.register(id)
    }

    fn register(&mut self, id: ConnectionId) -> Result<(), String> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut self.lines[id].stream, Token(id), interest);
        registered.map_err(|error| format!("cannot watch a connection: {error}"))
    }

    /// Sends a request. The connection must have no request in flight.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub fn send(&mut self, line: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        self.lines[line].send(bytes).map_err(|error| self.lost(line, &error))
    }

    /// Sends a request with a streamed response, which is passed on as it arrives, starting with the head.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub fn listen(&mut self, line: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        self.lines[line].listens = true;
        self.send(line, bytes)
    }

    fn lost(&self, line: ConnectionId, error: &io::Error) -> String {
        format!("a connection to {} broke: {error}", self.lines[line].dial.address())
    }

    fn receive(
        &mut self,
        id: ConnectionId,
        buffer: &mut [u8],
        roles: &mut [&mut dyn Role],
    ) -> Result<(), String> {
        loop {
            let got = match self.lines[id].read(buffer) {
                // Servers close connections that were idle.
                Err(_) if !self.lines[id].asked => return self.reconnect(id),
                got => got.map_err(|error| self.lost(id, &error))?,
            };
            let Some(count) = got else { return Ok(()) };
            let line = &mut self.lines[id];
            if line.listens {
                let Some(role) = roles.get_mut(line.role) else { return Ok(()) };
                role.heard(id, &buffer[..count])?;
                continue;
            }
            let parse = line.dial.speech();
            if line.part.is_empty() {
                match parse(&buffer[..count])? {
                    // Only one request was in flight, so no bytes follow the response.
                    Parsed::Whole(answer, _) => return self.hand_out(id, &answer, roles),
                    Parsed::Part(bytes) => line.part_bytes = bytes,
                }
            }
            line.part.extend_from_slice(&buffer[..count]);
            if line.part.len() < line.part_bytes {
                continue;
            }
            let part = std::mem::take(&mut line.part);
            match parse(&part)? {
                Parsed::Whole(answer, _) => self.hand_out(id, &answer, roles)?,
                Parsed::Part(bytes) => {
                    let line = &mut self.lines[id];
                    line.part_bytes = bytes;
                    line.part = part;
                    line.part.reserve(bytes - line.part.len());
                }
            }
        }
    }

    fn hand_out(
        &mut self,
        id: ConnectionId,
        answer: &Answer<'_>,
        roles: &mut [&mut dyn Role],
    ) -> Result<(), String> {
        self.lines[id].asked = false;
        if answer.closes {
            self.reconnect(id)?;
        }
        self.role = self.lines[id].role;
        let Some(role) = roles.get_mut(self.role) else { return Ok(()) };
        role.answered(self, id, answer)
    }
}

/// Returns an error unless the response is 200.
pub fn must_be_200(answer: &Answer<'_>) -> Result<(), String> {
    match answer.status {
        200 => Ok(()),
        status => Err(format!("{status}: {}", String::from_utf8_lossy(&answer.body))),
    }
}

/// Sends one request and returns the body of its response.
///
/// # Errors
///
/// If the connection fails or the status is not 200.
pub fn ask(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>, String> {
    let mut question = OpenRequest { address, request, answer: None };
    EventLoop::run(&mut [&mut question])?;
    match question.answer {
        Some((200, body)) => Ok(body),
        Some((status, body)) => {
            let (asked, said) = (String::from_utf8_lossy(request), String::from_utf8_lossy(&body));
            Err(format!("{}: {status} {said}", asked.lines().next().unwrap_or_default()))
        }
        None => Err("no answer".to_owned()),
    }
}

struct OpenRequest<'a> {
    address: SocketAddr,
    request: &'a [u8],
    answer: Option<(u16, Vec<u8>)>,
}

impl Role for OpenRequest<'_> {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        event_loop.open(self.address).map(|_| ())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, _: Instant) -> Result<(), String> {
        event_loop.send(0, self.request)
    }

    fn answered(&mut self, _: &mut EventLoop, _: ConnectionId, answer: &Answer<'_>) -> Result<(), String> {
        self.answer = Some((answer.status, answer.body.to_vec()));
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.answer.is_some()
    }
}
