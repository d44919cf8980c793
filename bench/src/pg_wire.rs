//! The parts of PostgreSQL's protocol, version 3, that prepared statements need.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use crate::http::{Answer, Parsed};

const VERSION: i32 = 3 << 16;
/// Bytes of a message's type and length.
const HEAD_BYTES: usize = 5;

/// A statement that each connection prepares once. All parameters and columns are text.
pub(super) struct Prepared {
    pub name: &'static str,
    pub query: &'static str,
}

impl Prepared {
    /// The message that prepares the statement on a connection.
    pub fn parse(&self) -> Vec<u8> {
        let no_types = 0_i16.to_be_bytes();
        message(b'P', &[text(self.name), text(self.query), no_types.to_vec()].concat())
    }

    /// The messages that execute the statement once.
    pub fn execute(&self, parameters: &[&[u8]]) -> Vec<u8> {
        let mut bind = [text(""), text(self.name), 0_i16.to_be_bytes().to_vec()].concat();
        bind.extend((parameters.len() as i16).to_be_bytes());
        for parameter in parameters {
            bind.extend((parameter.len() as i32).to_be_bytes());
            bind.extend_from_slice(parameter);
        }
        bind.extend(0_i16.to_be_bytes());
        let all_rows = [text(""), 0_i32.to_be_bytes().to_vec()].concat();
        [message(b'B', &bind), message(b'E', &all_rows), sync()].concat()
    }
}

/// The message that ends a group of messages.
pub(super) fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// The message that runs statements without parameters.
pub(super) fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &text(sql))
}

fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() + 4) as i32;
    [&[kind], &length.to_be_bytes()[..], content].concat()
}

fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// Starts a session of `user` in the database `postgres`.
pub(super) fn start(stream: &mut TcpStream, user: &str) -> io::Result<()> {
    let names = [text("user"), text(user), text("database"), text("postgres"), vec![0]].concat();
    let content = [&VERSION.to_be_bytes()[..], &names].concat();
    let length = (content.len() + 4) as i32;
    ask(stream, &[&length.to_be_bytes()[..], &content].concat())
}

/// Sends a query and waits for its complete response.
pub(super) fn ask(stream: &mut TcpStream, question: &[u8]) -> io::Result<()> {
    stream.write_all(question)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&buffer[..count]),
        }
        if let Parsed::Whole(..) = reply(&answer).map_err(io::Error::other)? {
            return Ok(());
        }
    }
}

/// Parses everything up to `ReadyForQuery`.
pub(super) fn reply(bytes: &[u8]) -> Result<Parsed<'_>, String> {
    for (kind, content, end) in messages(bytes) {
        match kind {
            b'E' => {
                return Err(format!(
                    "PostgreSQL says: {}",
                    String::from_utf8_lossy(content).replace('\0', " ")
                ));
            }
            b'Z' => {
                let answer = Answer { status: 200, body: bytes[..end].into(), closes: false };
                return Ok(Parsed::Whole(answer, end));
            }
            _ => {}
        }
    }
    Ok(Parsed::Part(bytes.len() + 1))
}

/// The first column of each row.
pub(super) fn first_columns(answer: &[u8]) -> Vec<String> {
    let rows = messages(answer).filter(|(kind, ..)| *kind == b'D');
    let value = |row: &[u8]| {
        let length = i32::from_be_bytes(row.get(2..6)?.try_into().ok()?);
        let value = row.get(6..6 + usize::try_from(length).ok()?)?;
        String::from_utf8(value.to_vec()).ok()
    };
    rows.filter_map(|(_, row, _)| value(row)).collect()
}

/// The complete messages: type, content, and the offset of the next one.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8], usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let head: [u8; HEAD_BYTES] = bytes.get(at..at + HEAD_BYTES)?.try_into().ok()?;
        let [kind, length @ ..] = head;
        let end = at + 1 + usize::try_from(i32::from_be_bytes(length)).ok()?;
        let content = bytes.get(at + HEAD_BYTES..end)?;
        at = end;
        Some((kind, content, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: &str) -> Vec<u8> {
        let columns = 1_i16.to_be_bytes();
        let length = (value.len() as i32).to_be_bytes();
        message(b'D', &[&columns[..], &length, value.as_bytes()].concat())
    }

    #[test]
    fn an_answer_ends_when_the_server_is_ready() {
        let ready = message(b'Z', b"I");
        let answer = [row("17"), row("18"), message(b'C', b"UPDATE 2\0"), ready].concat();
        let Ok(Parsed::Whole(whole, used)) = reply(&answer) else { panic!("not whole") };
        assert_eq!(
            (used, first_columns(&whole.body)),
            (answer.len(), vec!["17".to_owned(), "18".to_owned()])
        );
        for cut in 0..answer.len() {
            assert_eq!(reply(&answer[..cut]), Ok(Parsed::Part(cut + 1)));
        }
    }

    #[test]
    fn an_error_is_said() {
        let error = reply(&message(b'E', b"SERROR\0Mno such table\0\0")).unwrap_err();
        assert!(error.contains("no such table"), "{error}");
    }

    #[test]
    fn a_message_counts_its_own_length() {
        assert_eq!(sync(), b"S\0\0\0\x04");
        let statement = Prepared { name: "s", query: "q" };
        assert_eq!(statement.parse(), b"P\0\0\0\x0as\0q\0\0\0");
        let executed = statement.execute(&[b"ab"]);
        assert!(executed.starts_with(b"B\0\0\0\x13\0s\0\0\0\0\x01\0\0\0\x02ab\0\0E"), "{executed:?}");
    }
}
