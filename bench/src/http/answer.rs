//! Parses HTTP responses: status, length and body, without copying.

use std::borrow::Cow;

/// One parsed HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The body: borrowed from the buffer, or joined if the response was chunked.
    pub body: Cow<'a, [u8]>,
    /// Whether the server closes the connection after the response.
    pub closes: bool,
}

/// What a buffer starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete response and its length in bytes.
    Whole(Answer<'a>, usize),
    /// An incomplete response, and the smallest length in bytes at which parsing again can succeed.
    Part(usize),
}

const STATUS_LINE_BYTES: usize = "HTTP/1.1 200".len();
/// Longest head of a response, in bytes. Measured servers send shorter ones.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Parses the first response in `bytes`.
///
/// # Errors
///
/// If `bytes` do not start an HTTP/1.1 response.
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, String> {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return match bytes.len() {
            0..HEAD_BYTES_MAX => Ok(Parsed::Part(bytes.len() + 1)),
            _ => Err("the head of the response is too long".to_owned()),
        };
    };
    let head = &bytes[..end];
    let body_at = end + 4;
    let status = status(head).ok_or_else(|| format!("not an HTTP/1.1 response: {}", excerpt(bytes)))?;
    let Headers { length, chunked, closes } =
        headers(head).map_err(|what| format!("{what}: {}", excerpt(bytes)))?;
    if chunked {
        let body = Chunked::read(&bytes[body_at..]);
        let body = body.ok_or_else(|| format!("a chunk without a length: {}", excerpt(bytes)))?;
        let Chunked::Whole(body, used) = body else { return Ok(Parsed::Part(bytes.len() + 1)) };
        return Ok(Parsed::Whole(Answer { status, body: body.into(), closes }, body_at + used));
    }
    let whole = body_at + length;
    if bytes.len() < whole {
        return Ok(Parsed::Part(whole));
    }
    Ok(Parsed::Whole(Answer { status, body: bytes[body_at..whole].into(), closes }, whole))
}

/// A chunked body. Each chunk follows its length in hexadecimal digits; an empty chunk is the last.
enum Chunked {
    Whole(Vec<u8>, usize),
    Part,
}

impl Chunked {
    /// Parses a chunked body. `None` if it is malformed.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut body, mut at) = (Vec::new(), 0);
        loop {
            let Some(line) = find(&bytes[at..], b"\r\n") else { return Some(Self::Part) };
            let length = usize::from_str_radix(std::str::from_utf8(&bytes[at..at + line]).ok()?, 16).ok()?;
            let begin = at + line + 2;
            let Some(chunk) = bytes.get(begin..begin + length) else { return Some(Self::Part) };
            body.extend_from_slice(chunk);
            at = begin + length + 2;
            if bytes.len() < at {
                return Some(Self::Part);
            }
            if length == 0 {
                return Some(Self::Whole(body, at));
            }
        }
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.get(..STATUS_LINE_BYTES)?.strip_prefix(b"HTTP/1.1 ")?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

struct Headers {
    length: usize,
    chunked: bool,
    closes: bool,
}

fn headers(head: &[u8]) -> Result<Headers, &'static str> {
    let mut found = Headers { length: 0, chunked: false, closes: false };
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        // Only headers with these first letters matter.
        match line.first() {
            Some(b'c' | b'C' | b't' | b'T') => {}
            _ => continue,
        }
        if let Some(text) = value(line, b"content-length") {
            found.length = text.parse().map_err(|_| "the content length is not a number")?;
        } else if let Some(text) = value(line, b"connection") {
            found.closes = text.eq_ignore_ascii_case("close");
        } else if let Some(text) = value(line, b"transfer-encoding") {
            found.chunked = text.eq_ignore_ascii_case("chunked");
        }
    }
    Ok(found)
}

/// Returns the value of a header line if it has this name, in any case.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let (found, rest) = line.split_at_checked(name.len())?;
    let rest = found.eq_ignore_ascii_case(name).then_some(rest)?.strip_prefix(b":")?;
    std::str::from_utf8(rest).ok().map(str::trim)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).take(HEAD_BYTES_MAX).position(|window| window == needle)
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> (u16, String, bool, usize) {
        match parse(text.as_bytes()) {
            Ok(Parsed::Whole(answer, used)) => {
                let body = String::from_utf8(answer.body.to_vec()).unwrap();
                (answer.status, body, answer.closes, used)
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length:  2 \r\n\r\n{}";
        assert_eq!(whole(text), (200, "{}".to_owned(), false, text.len()));
        assert_eq!(whole("HTTP/1.1 204 No Content\r\n\r\n").0, 204);
        assert!(whole("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").2);
        assert!(!whole("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n\r\n").2);
    }

    #[test]
    fn what_follows_an_answer_is_left() {
        let one = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na";
        assert_eq!(whole(&format!("{one}{one}")).3, one.len());
    }

    #[test]
    fn a_part_says_how_much_is_missing() {
        assert_eq!(parse(b""), Ok(Parsed::Part(1)));
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), Ok(Parsed::Part(18)));
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc";
        assert_eq!(parse(text), Ok(Parsed::Part(text.len() - 3 + 1000)));
    }

    #[test]
    fn chunks_are_put_together() {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n";
        assert_eq!(whole(text), (200, "0123456789x".to_owned(), false, text.len()));
        for cut in text.find("\r\n\r\n").unwrap() + 4..text.len() {
            assert_eq!(parse(&text.as_bytes()[..cut]), Ok(Parsed::Part(cut + 1)), "{cut}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for text in [
            "HTTP/1.0 200 OK\r\n\r\n",
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(parse(&[b'x'; HEAD_BYTES_MAX]).is_err());
    }
}
