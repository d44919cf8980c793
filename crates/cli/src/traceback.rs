//! Makes error texts of the SDK readable.

use std::borrow::Cow;

/// A worker runs in a directory of its own, with the handler's files linked. Its name is between these parts of a
/// path.
const WORKER_FOLDER: (&str, &str) = ("/.longshore/data/workers/live/", "/cwd/");

/// Returns the traceback of an exception that the SDK reported as JSON. Paths in any text are mapped to the user's
/// own files.
pub(crate) fn readable(text: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Reported {
        #[serde(rename = "error_type")]
        kind: String,
        #[serde(rename = "error_message")]
        message: String,
        #[serde(default, rename = "error_traceback")]
        traceback: String,
    }
    let text = match serde_json::from_str::<Reported>(text) {
        Ok(reported) if !reported.traceback.trim().is_empty() => Cow::Owned(reported.traceback),
        Ok(reported) => Cow::Owned(format!("{}: {}", reported.kind, reported.message)),
        Err(_) => Cow::Borrowed(text),
    };
    with_own_paths(text.trim_end())
}

/// `DIR/.longshore/data/workers/live/<worker>/cwd/handler.py` → `DIR/handler.py`.
fn with_own_paths(text: &str) -> String {
    let (before, after) = WORKER_FOLDER;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(before) {
        let tail = &rest[at + before.len()..];
        let name = tail.find('/').filter(|end| tail[*end..].starts_with(after));
        let Some(end) = name else {
            out.push_str(&rest[..at + before.len()]);
            rest = tail;
            continue;
        };
        out.push_str(&rest[..at]);
        out.push('/');
        rest = &tail[end + after.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_shown_as_its_traceback() {
        let error = r#"{"error_type": "<class 'ValueError'>", "error_message": "no", "error_traceback": "Traceback\n  x\n"}"#;
        assert_eq!(readable(error), "Traceback\n  x");
        assert_eq!(readable("plain"), "plain");
    }

    #[test]
    fn files_are_named_where_they_are_edited() {
        let line = r#"File "/p/.longshore/data/workers/live/abc/cwd/lib/a.py", line 3, /p/.longshore/data/workers/live/abc/log"#;
        assert_eq!(readable(line), r#"File "/p/lib/a.py", line 3, /p/.longshore/data/workers/live/abc/log"#);
    }
}
