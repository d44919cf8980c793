//! Parses server-sent events from pieces of a response.

/// A complete server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `id`, if it is a number.
    pub id: Option<u64>,
    /// The name; empty if the event has none.
    pub name: String,
    /// The data; several `data` lines are joined with line breaks.
    pub data: String,
}

/// Parses the events of one response.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The start of an unfinished event.
    rest: Vec<u8>,
}

impl EventReader {
    /// Returns the events that end in this piece.
    pub fn read(&mut self, piece: &[u8]) -> Vec<Event> {
        // The end of an event may be split between two pieces.
        let mut looked_at = self.rest.len().saturating_sub(1);
        self.rest.extend_from_slice(piece);
        let (mut events, mut began) = (Vec::new(), 0);
        while let Some(at) = self.rest[looked_at..].windows(2).position(|two| two == b"\n\n") {
            let end = looked_at + at;
            events.extend(event(&String::from_utf8_lossy(&self.rest[began..end])));
            (began, looked_at) = (end + 2, end + 2);
        }
        self.rest.drain(..began);
        events
    }
}

/// `None` if there are only comments.
fn event(text: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut is_event = false;
    for line in text.lines().filter(|line| !line.starts_with(':')) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = value.parse().ok(),
            "event" => value.clone_into(&mut event.name),
            "data" => event.data.push_str(value),
            _ => continue,
        }
        is_event = true;
    }
    is_event.then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_wherever_their_answer_is_cut() {
        let text =
            "event: status\ndata: {}\n\n: still here\n\nid: 7\ndata: {\"output\":\"a: b\"}\n\nid: 8\ndata";
        let expected = [
            Event { id: None, name: "status".to_owned(), data: "{}".to_owned() },
            Event { id: Some(7), name: String::new(), data: r#"{"output":"a: b"}"#.to_owned() },
        ];
        for cut in 0..=text.len() {
            let mut reader = EventReader::default();
            let mut events = reader.read(&text.as_bytes()[..cut]);
            events.extend(reader.read(&text.as_bytes()[cut..]));
            assert_eq!(events, expected, "cut at {cut}");
        }
    }
}
