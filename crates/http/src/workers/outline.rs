//! Finds the long arrays and objects of a JSON text, and the long members of those objects, in one pass. A text of any
//! depth is then split in time proportional to its length.

use std::collections::HashMap;

use super::python_json::string_end;
use super::scan::{value_end, word_end};

/// Arrays and objects that are nested deeper are not searched.
const DEPTH_MAX: usize = 512;

/// The long arrays and objects of a text, by the byte at which they begin.
pub(super) type Outline = HashMap<usize, Container>;

/// One long array or object.
#[derive(Clone, Debug, Default)]
pub(super) struct Container {
    pub(super) end: usize,
    /// The longest name of a member, in bytes with its quotes.
    pub(super) name_bytes_max: usize,
    /// The long members in order.
    pub(super) long: Vec<Member>,
    /// Bytes of the other members, each with a comma.
    pub(super) short_bytes: usize,
}

/// A long member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The byte at which the member's name begins.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Member {
    pub(super) fn bytes(&self) -> usize {
        self.end - self.start
    }
}

/// An array or object whose end is not found yet.
struct Open {
    start: usize,
    is_object: bool,
    /// The byte at which the current member begins.
    member: Option<usize>,
    container: Container,
}

/// Returns the arrays and objects longer than `long_bytes`. A member is long if it is longer than a 32nd of that.
pub(super) fn outline(text: &[u8], long_bytes: usize) -> Outline {
    let (mut found, mut open): (Outline, Vec<Open>) = (HashMap::new(), Vec::new());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let start = at;
        match byte {
            b'[' | b'{' if open.len() < DEPTH_MAX => {
                let is_object = *byte == b'{';
                open.push(Open { start, is_object, member: None, container: Container::default() });
                at += 1;
                continue;
            }
            b']' | b'}' => {
                at += 1;
                let Some(closed) = open.pop() else { continue };
                if at - closed.start > long_bytes {
                    found.insert(closed.start, Container { end: at, ..closed.container });
                }
            }
            b'"' => {
                at = string_end(text, at);
                if let Some(Open { is_object: true, member: member @ None, container, .. }) = open.last_mut()
                {
                    *member = Some(start);
                    container.name_bytes_max = container.name_bytes_max.max(at - start);
                    continue;
                }
            }
            b'[' | b'{' => at = value_end(text, at),
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                at += 1;
                continue;
            }
            _ => at = word_end(text, at).max(at + 1),
        }
        // The end of a value.
        if let Some(Open { member, container, .. }) = open.last_mut()
            && let Some(start) = member.take()
        {
            let member = Member { start, end: at };
            if member.bytes() > long_bytes / 32 {
                container.long.push(member);
            } else {
                container.short_bytes += member.bytes() + 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_and_their_long_members_are_found() {
        let text = br#"{"a": [1, {"b": "]}", "c": 2}], "d" : "\"" }"#;
        let found = outline(text, 20);
        let mut starts: Vec<_> = found.iter().map(|(start, container)| (*start, container.end)).collect();
        starts.sort_unstable();
        assert_eq!(starts, [(0, text.len()), (6, 30)]);
        let whole = &found[&0];
        assert_eq!((whole.name_bytes_max, whole.short_bytes), (3, 0));
        assert_eq!(whole.long, [Member { start: 1, end: 30 }, Member { start: 32, end: 42 }]);
    }

    #[test]
    fn depth_costs_nothing() {
        let text = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(outline(text.as_bytes(), 1_000).len(), DEPTH_MAX);
    }
}
