//! Prepared HTTP requests.

use std::io::Write as _;

/// The parts that all requests of one kind share: method, path and headers.
#[derive(Clone, Debug)]
pub struct Request {
    method: &'static str,
    path: String,
    headers: String,
}

impl Request {
    /// A `POST` request with a JSON body.
    pub fn post(path: impl Into<String>) -> Self {
        Self { method: "POST", path: path.into(), headers: "Content-Type: application/json\r\n".to_owned() }
    }

    /// A `GET` request without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), headers: String::new() }
    }

    /// Returns the request with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(name);
        self.headers.push_str(": ");
        self.headers.push_str(value);
        self.headers.push_str("\r\n");
        self
    }

    /// Returns the bytes of the request with `body`.
    pub fn with_body(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.path.len() + self.headers.len() + body.len() + 64);
        let Self { method, path, headers } = self;
        // Writing to memory cannot fail.
        let _ = write!(
            bytes,
            "{method} {path} HTTP/1.1\r\nHost: bench\r\n{headers}Content-Length: {}\r\n\r\n",
            body.len()
        );
        bytes.extend_from_slice(body);
        bytes
    }

    /// Returns the bytes of the request without a body.
    pub fn bare(&self) -> Vec<u8> {
        let Self { method, path, headers } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: bench\r\n{headers}\r\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_long_its_body_is() {
        let request = Request::post("/run").header("Authorization", "k").with_body(b"{}");
        assert_eq!(
            String::from_utf8(request).unwrap(),
            "POST /run HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: k\r\n\
             Content-Length: 2\r\n\r\n{}"
        );
        let bare = Request::get("/a?b").header("Connection", "keep-alive").bare();
        assert_eq!(bare, b"GET /a?b HTTP/1.1\r\nHost: bench\r\nConnection: keep-alive\r\n\r\n");
    }
}
