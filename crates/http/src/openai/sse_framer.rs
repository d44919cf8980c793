//! Converts a worker's chunks to the bytes of an event stream.
//!
//! A worker yields text from its model server: several events or a fragment of one. The text is sent unchanged; the framer
//! only keeps track of the ends of events and of the last event.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::error::OpenAiError;
use crate::wire::sse::on_one_line;
use crate::workers::plain_text;

/// The number of bytes of a line that are stored: enough for every line that the framer recognizes.
const LINE_BYTES_MAX: usize = 64;
/// The events after which clients disconnect.
const LAST_EVENTS: [&str; 4] =
    ["response.completed", "response.incomplete", "response.failed", "message_stop"];

/// The state of an event stream after the bytes that were written.
#[derive(Debug, Default)]
pub(super) struct SseFramer {
    /// The start of the current line.
    line: Vec<u8>,
    /// Whether the current event has lines.
    in_event: bool,
    /// The number of bytes that were written.
    written_bytes: usize,
    /// Whether `data: [DONE]` was written.
    pub(super) done: bool,
    /// Whether an event was written after which clients disconnect.
    pub(super) has_last_event: bool,
}

impl SseFramer {
    /// Whether a comment may be written next.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.line.is_empty()
    }

    /// Converts a chunk to text of the stream. An object is one event, and so is each element of a list.
    ///
    /// # Errors
    ///
    /// The error that the chunk reports.
    pub(super) fn chunk(&mut self, chunk: &Bytes) -> Result<Vec<u8>, OpenAiError> {
        let mut out = Vec::with_capacity(chunk.len() + 16);
        if let (Some(b'['), Ok(elements)) = (chunk.first(), serde_json::from_slice::<Vec<&RawValue>>(chunk)) {
            for element in elements {
                self.value(&chunk.slice_ref(element.get().as_bytes()), &mut out)?;
            }
        } else {
            self.value(chunk, &mut out)?;
        }
        Ok(out)
    }

    fn value(&mut self, value: &Bytes, out: &mut Vec<u8>) -> Result<(), OpenAiError> {
        if let (Some(b'"'), Ok(text)) = (value.first(), std::str::from_utf8(value)) {
            let text = plain_text(text);
            // A model server reports an error as one object, even if the client asked for events.
            if self.written_bytes == 0
                && let Some(error) = OpenAiError::in_result(text.as_bytes())
            {
                return Err(error);
            }
            self.watch(text.as_bytes());
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        if let Some(error) = OpenAiError::in_result(value) {
            return Err(error);
        }
        self.event(&on_one_line(value.clone()), out);
        Ok(())
    }

    /// Writes an event of this server, separated from the text before.
    pub(super) fn event(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(match (self.line.is_empty(), self.in_event) {
            (false, _) => b"\n\n",
            (true, true) => b"\n",
            (true, false) => b"",
        });
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(data);
        out.extend_from_slice(b"\n\n");
        self.watch(&out[start..]);
    }

    fn watch(&mut self, text: &[u8]) {
        self.written_bytes += text.len();
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            let (content, ends) = match piece.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (piece, false),
            };
            let room = LINE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&content[..content.len().min(room)]);
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = self.line.trim_ascii_end();
        if line == b"data: [DONE]" || line == b"data:[DONE]" {
            (self.done, self.has_last_event) = (true, true);
        }
        let name = line.strip_prefix(b"event:").map(<[u8]>::trim_ascii);
        if name.is_some_and(|name| LAST_EVENTS.iter().any(|last| last.as_bytes() == name)) {
            self.has_last_event = true;
        }
        self.in_event = !line.is_empty();
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(chunks: &[&str]) -> (String, SseFramer) {
        let mut framer = SseFramer::default();
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend(framer.chunk(&Bytes::copy_from_slice(chunk.as_bytes())).unwrap());
        }
        (String::from_utf8(out).unwrap(), framer)
    }

    #[test]
    fn fragments_are_passed_on_as_they_are() {
        let (text, framer) = written(&[
            r#""data: {\"id\":\"c\",\"spl""#,
            r#""it\":true}\n\nda""#,
            r#""ta: [DO""#,
            r#""NE]\n""#,
        ]);
        assert_eq!(text, "data: {\"id\":\"c\",\"split\":true}\n\ndata: [DONE]\n");
        assert!(framer.done && framer.has_last_event && framer.is_at_line_start() && framer.in_event);
    }

    #[test]
    fn what_a_model_says_is_not_mistaken_for_the_end() {
        let (_, framer) =
            written(&[r#""data: {\"text\":\"data: [DONE]\\ndata: [DONE]\"}\n\n: data: [DONE]\n""#]);
        assert!(!framer.done);
    }

    #[test]
    fn objects_and_lists_of_them_become_events() {
        let (text, _) = written(&["{\"a\":\n1.0}", "[{\"b\":2}, {\"c\":3}]", "[]", "null"]);
        assert_eq!(text, "data: {\"a\": 1.0}\n\ndata: {\"b\":2}\n\ndata: {\"c\":3}\n\ndata: null\n\n");
    }

    #[test]
    fn an_event_of_the_server_is_separated() {
        for (before, between) in [("", ""), ("data: x\\n\\n", ""), ("data: x\\n", "\n"), ("data: x", "\n\n")]
        {
            let (text, mut framer) = written(&[&format!("\"{before}\"")]);
            let mut out = Vec::new();
            framer.event(b"[DONE]", &mut out);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                format!("{between}data: [DONE]\n\n"),
                "after {text:?}"
            );
            assert!(framer.done);
        }
    }

    #[test]
    fn the_last_events_of_other_routes_are_known() {
        for name in LAST_EVENTS {
            let (_, framer) = written(&[&format!("\"event: {name}\\ndata: {{}}\\n\\n\"")]);
            assert!(framer.has_last_event && !framer.done, "{name}");
        }
    }

    #[test]
    fn an_error_in_a_chunk_is_none() {
        let mut framer = SseFramer::default();
        assert!(framer.chunk(&Bytes::from_static(b"{\"error\":{\"message\":\"m\"}}")).is_err());
        assert!(
            framer
                .chunk(&Bytes::from_static(b"{\"object\":\"error\",\"message\":\"m\",\"code\":400}"))
                .is_err()
        );
        let as_text = Bytes::from_static(b"\"{\\\"error\\\":{\\\"message\\\":\\\"m\\\"}}\"");
        assert!(framer.chunk(&as_text).is_err());
        assert!(framer.chunk(&Bytes::from_static(b"{\"error\":null,\"a\":1}")).is_ok());
        assert!(framer.chunk(&as_text).is_ok(), "written text must stay");
    }
}
