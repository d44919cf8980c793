//! The parts of the Redis protocol that the commands need.

use std::io::Write as _;

use crate::http::{Answer, Parsed};

/// Encodes a command and its arguments as a RESP array of bulk strings.
pub(super) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        // Writing to memory cannot fail.
        let _ = write!(bytes, "${}\r\n", word.len());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Parses a reply other than an error. A bare `OK` is the first of two replies to a pair of commands.
pub(super) fn reply(bytes: &[u8]) -> Result<Parsed<'_>, String> {
    let (mut at, count) = (0, if bytes.first() == Some(&b'+') { 2 } else { 1 });
    for _ in 0..count {
        match reply_length(&bytes[at..])? {
            Some(length) if bytes.len() >= at + length => at += length,
            Some(length) => return Ok(Parsed::Part(at + length)),
            None => return Ok(Parsed::Part(bytes.len() + 1)),
        }
    }
    Ok(Parsed::Whole(Answer { status: 200, body: bytes[..at].into(), closes: false }, at))
}

/// Length of a reply; `None` if more bytes are needed.
fn reply_length(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes[..line]);
    let head = line + 2;
    match text.split_at_checked(1) {
        Some(("+" | ":", _)) => Ok(Some(head)),
        Some(("$", "-1")) => Err("a reply without a value: a job was lost".to_owned()),
        Some(("$", length)) => match length.parse::<usize>() {
            Ok(length) => Ok(Some(head + length + 2)),
            Err(_) => Err(format!("not a length: {text}")),
        },
        _ => Err(format!("Redis says: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_the_length_of_each_word() {
        assert_eq!(command(&[b"RPUSH", b"q", b"{}"]), b"*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$2\r\n{}\r\n");
    }

    #[test]
    fn replies_are_whole_or_not() {
        let whole = |bytes: &[u8]| match reply(bytes) {
            Ok(Parsed::Whole(_, used)) => Some(used),
            _ => None,
        };
        assert_eq!(whole(b":12\r\n"), Some(5));
        assert_eq!(whole(b"$2\r\nab\r\n"), Some(8));
        assert_eq!(whole(b"$2\r\nab\r"), None);
        assert_eq!(whole(b"+OK\r\n"), None);
        assert_eq!(whole(b"+OK\r\n$1\r\na\r\n"), Some(12));
        for bad in ["-ERR no\r\n", "$-1\r\n", "$x\r\n", "*0\r\n"] {
            assert!(reply(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
