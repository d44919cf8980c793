//! The body of an error that the parser of HTTP answers itself, in the one shape of errors.

use http::StatusCode;

use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

/// hyper's head of an error with a body; `None` for all other bytes. `head_bytes_max` is the limit of heads.
pub(crate) fn in_shape(head: &[u8], head_bytes_max: usize) -> Option<Vec<u8>> {
    let head = std::str::from_utf8(head).ok()?;
    if head.strip_suffix("\r\n\r\n")?.contains("\r\n\r\n") {
        return None;
    }
    let error = match head.split(' ').nth(1)? {
        "400" => ApiError::bad_request("bad_head", "the request line or a header is not valid HTTP/1.1"),
        "414" | "431" => {
            let text = format!(
                "the request line and the headers are over {head_bytes_max} bytes or over 100 headers, or `Content-Length` is \
                 too large"
            );
            ApiError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", text)
        }
        _ => return None,
    };
    let (before, after) = head.split_once("content-length: 0\r\n")?;
    let mut body = JsonBody::new();
    body.text("{");
    error.write_members(&mut body);
    body.text("}");
    let body = body.buffer();
    let length = body.len();
    let mut answer =
        format!("{before}content-type: application/json\r\ncontent-length: {length}\r\n{after}").into_bytes();
    answer.append(body);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";

    #[test]
    fn a_head_of_an_error_gets_a_body_and_nothing_else_does() {
        let body = "{\"error\":\"the request line or a header is not valid HTTP/1.1\",\"code\":\"bad_head\"}";
        let expected = HEAD.replace(
            "content-length: 0",
            &format!("content-type: application/json\r\ncontent-length: {}", body.len()),
        );
        assert_eq!(String::from_utf8(in_shape(HEAD.as_bytes(), 7).unwrap()).unwrap(), expected + body);
        let large = HEAD.replace("400 Bad Request", "431 Request Header Fields Too Large");
        let large = in_shape(large.as_bytes(), 7).unwrap();
        assert!(large.ends_with(b",\"code\":\"head_too_large\"}"));
        for other in [
            "",
            "HTTP/1.1 400",
            &HEAD[..HEAD.len() - 2],
            &HEAD.replace("400", "200"),
            &HEAD.replace("length: 0", "length: 1"),
            &format!("{HEAD}x"),
            &format!("{HEAD}{HEAD}"),
        ] {
            assert_eq!(in_shape(other.as_bytes(), 7), None, "{other}");
        }
    }
}
