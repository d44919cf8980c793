//! Splits a JSON value into values that are short enough: a string between its characters, an array between its
//! elements, an object at its longest member, and nested values in the same way.
//!
//! The text is written piece by piece from left to right. When a piece is full, all open arrays and objects are closed,
//! and opened again in the next piece. The longest member of a split object comes after the others, so that those are
//! in the first piece. A value that cannot be split (a number, a long name, very deep nesting) becomes a string of its
//! JSON text.

use bytes::Bytes;

use super::characters::character_bytes;
use super::outline::{Container, Member, Outline, outline};
use super::scan::{skip_space, value_end};

/// Least limit of a piece, in bytes; a lower one counts as this one.
const LIMIT_MIN: usize = 40;
/// The longest character of a string in JSON, and two quotes, in bytes.
const STRING_BYTES_MIN: usize = 14;

/// One part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) json: Bytes,
    /// Bytes at the start that open again what the piece before has closed.
    pub(super) head: usize,
    /// Bytes at the end that close what the next piece continues.
    pub(super) tail: usize,
    /// A comma separates the piece from the one before.
    pub(super) after_comma: bool,
}

/// The length limits of pieces, in bytes: of the first one, and of each other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceLimits {
    pub(super) first: usize,
    pub(super) rest: usize,
}

/// Splits the value into pieces; returns the value itself if it is short enough.
pub(super) fn pieces(json: Bytes, limits: PieceLimits) -> Vec<Piece> {
    if json.len() <= limits.first {
        return vec![Piece { json, head: 0, tail: 0, after_comma: false }];
    }
    let limits = PieceLimits { first: limits.first.max(LIMIT_MIN), rest: limits.rest.max(LIMIT_MIN) };
    let outline = outline(&json, limits.rest.min(limits.first) / 2);
    let mut cutter = Cutter {
        text: &json,
        outline: &outline,
        limits,
        open: Vec::new(),
        reopening_bytes: 0,
        piece: Vec::with_capacity(limits.first),
        head: 0,
        after_comma: false,
        done: Vec::new(),
    };
    cutter.item(None, 0, json.len(), false);
    cutter.finish(0);
    cutter.done
}

/// An array or object that is being written.
struct Level<'a> {
    is_object: bool,
    name_bytes_max: usize,
    /// The name of the member that is being written.
    name: Option<&'a [u8]>,
    /// The array or object has an item in some piece.
    has_items: bool,
    /// The array or object has an item in this piece.
    has_items_here: bool,
}

impl Level<'_> {
    /// Bytes that opening the level in another piece and closing it take.
    fn reopening_bytes(&self) -> usize {
        2 + self.longest_name()
    }

    fn longest_name(&self) -> usize {
        if self.is_object { self.name_bytes_max + 1 } else { 0 }
    }

    fn closing(&self) -> u8 {
        if self.is_object { b'}' } else { b']' }
    }
}

struct Cutter<'a> {
    text: &'a [u8],
    outline: &'a Outline,
    limits: PieceLimits,
    open: Vec<Level<'a>>,
    /// Most bytes that opening and closing all open arrays and objects take.
    reopening_bytes: usize,
    piece: Vec<u8>,
    head: usize,
    after_comma: bool,
    done: Vec<Piece>,
}

impl<'a> Cutter<'a> {
    /// Bytes that fit before the piece must be closed.
    fn left(&self) -> usize {
        let room = if self.done.is_empty() { self.limits.first } else { self.limits.rest };
        room.saturating_sub(self.piece.len() + self.open.len())
    }

    /// Bytes that an item may take of a new piece.
    fn left_in_next(&self) -> usize {
        let name_bytes = self.open.last().map_or(0, Level::longest_name);
        (self.limits.rest + name_bytes).saturating_sub(self.reopening_bytes)
    }

    /// Bytes of a piece that further names and brackets may still take: half of a piece is left for content.
    fn opening_left(&self) -> usize {
        (self.limits.rest.min(self.limits.first) / 2).saturating_sub(self.reopening_bytes)
    }

    /// Writes an element, a member or the whole value. `starts_here`: the item is split rather than moved to the next
    /// piece.
    fn item(&mut self, name: Option<&'a [u8]>, start: usize, end: usize, starts_here: bool) {
        let name_bytes = name.map_or(0, |name| name.len() + 1);
        let comma = usize::from(self.open.last().is_some_and(|level| level.has_items_here));
        let bytes = name_bytes + end - start;
        let cuts_here = bytes > self.left_in_next() || (starts_here && self.can_cut(start));
        let needed = if cuts_here { bytes.min(name_bytes + STRING_BYTES_MIN) } else { bytes };
        // Before the value itself there is nothing to split off.
        if comma + needed > self.left() && !self.open.is_empty() {
            self.cut(false);
        }
        self.begin(name);
        if end - start <= self.left() {
            self.piece.extend_from_slice(&self.text[start..end]);
        } else {
            self.cut_value(start, end);
        }
    }

    /// Whether a value that would fit the next piece can begin in this one.
    fn can_cut(&self, start: usize) -> bool {
        self.text.get(start) == Some(&b'"') || self.outline.contains_key(&start)
    }

    /// Writes what separates an item from the one before, and its name.
    fn begin(&mut self, name: Option<&'a [u8]>) {
        let Some(level) = self.open.last_mut() else { return };
        if level.has_items_here {
            self.piece.push(b',');
        }
        (level.has_items, level.has_items_here, level.name) = (true, true, name);
        if let Some(name) = name {
            self.piece.extend_from_slice(name);
            self.piece.push(b':');
        }
    }

    fn cut_value(&mut self, start: usize, end: usize) {
        let text = self.text;
        let container = self.outline.get(&start).filter(|container| {
            // Brackets, and a name with its colon.
            container.name_bytes_max + 3 <= self.opening_left()
        });
        match (text.get(start), container) {
            (Some(b'"'), _) => self.string(&text[start + 1..end.saturating_sub(1).max(start + 1)]),
            (Some(b'['), Some(_)) => self.array(start + 1),
            (Some(b'{'), Some(container)) => self.object(start + 1, container),
            _ => {
                let as_text = String::from_utf8_lossy(&text[start..end]);
                let string = serde_json::to_vec(&*as_text).unwrap_or_default();
                self.string(string.get(1..string.len() - 1).unwrap_or_default());
            }
        }
    }

    /// Writes a string with this content.
    fn string(&mut self, content: &[u8]) {
        self.piece.push(b'"');
        let mut rest = content;
        loop {
            let room = self.left().saturating_sub(1);
            let mut end = 0;
            while end < rest.len() {
                let character = character_bytes(&rest[end..]);
                if end + character > room {
                    break;
                }
                end += character;
            }
            self.piece.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
            self.cut(true);
        }
        self.piece.push(b'"');
    }

    fn array(&mut self, mut at: usize) {
        self.push(false, 0);
        loop {
            at = skip_space(self.text, at);
            if self.text.get(at).is_none_or(|byte| *byte == b']') {
                break;
            }
            let end = self.outline.get(&at).map_or_else(|| value_end(self.text, at), |found| found.end);
            self.item(None, at, end, false);
            at = skip_space(self.text, end);
            if self.text.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        self.pop();
    }

    /// The longest members come last; as many of the others as fit are written before them.
    fn object(&mut self, mut at: usize, container: &Container) {
        self.push(true, container.name_bytes_max);
        let mut last = container.long.clone();
        last.sort_by_key(Member::bytes);
        let mut bytes = container.short_bytes;
        let fitting = last.iter().take_while(|member| {
            bytes += member.bytes() + 1;
            bytes <= self.left()
        });
        last.drain(..fitting.count());
        let mut long = container.long.iter().peekable();
        loop {
            at = skip_space(self.text, at);
            if self.text.get(at) != Some(&b'"') {
                break;
            }
            let known = long.next_if(|member| member.start == at);
            let end = match known {
                Some(member) if last.contains(member) => member.end,
                _ => self.member(at, known.map(|member| member.end), false),
            };
            at = skip_space(self.text, end);
            if self.text.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        for member in last {
            self.member(member.start, Some(member.end), true);
        }
        self.pop();
    }

    /// Writes the member that begins here, and returns the byte at which it ends.
    fn member(&mut self, start: usize, end: Option<usize>, starts_here: bool) -> usize {
        let text = self.text;
        let name_end = value_end(text, start);
        let colon = skip_space(text, name_end);
        let value = skip_space(text, (colon + 1).min(text.len()));
        let end = end.unwrap_or_else(|| value_end(text, value)).max(value);
        self.item(Some(&text[start..name_end]), value, end, starts_here);
        end
    }

    fn push(&mut self, is_object: bool, name_bytes_max: usize) {
        self.piece.push(if is_object { b'{' } else { b'[' });
        let level = Level { is_object, name_bytes_max, name: None, has_items: false, has_items_here: false };
        self.reopening_bytes += level.reopening_bytes();
        self.open.push(level);
    }

    fn pop(&mut self) {
        let Some(level) = self.open.pop() else { return };
        self.reopening_bytes -= level.reopening_bytes();
        self.piece.push(level.closing());
    }

    /// Ends the piece between two items, or within a string, and begins the next one with all that is open.
    fn cut(&mut self, in_string: bool) {
        if in_string {
            self.piece.push(b'"');
        }
        self.finish(self.open.len() + usize::from(in_string));
        self.after_comma = !in_string && self.open.last().is_some_and(|level| level.has_items);
        let innermost = self.open.len().saturating_sub(1);
        for (at, level) in self.open.iter_mut().enumerate() {
            self.piece.push(if level.is_object { b'{' } else { b'[' });
            level.has_items_here = in_string || at < innermost;
            if let Some(name) = level.name.filter(|_| level.has_items_here) {
                self.piece.extend_from_slice(name);
                self.piece.push(b':');
            }
        }
        if in_string {
            self.piece.push(b'"');
        }
        self.head = self.piece.len();
    }

    /// Ends the piece. The next one goes on without the last `tail` bytes.
    fn finish(&mut self, tail: usize) {
        self.piece.extend(self.open.iter().rev().map(Level::closing));
        let json = Bytes::from(std::mem::take(&mut self.piece));
        self.done.push(Piece { json, head: self.head, tail, after_comma: self.after_comma });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(json: &str, room: usize) -> Vec<String> {
        let pieces = pieces(Bytes::copy_from_slice(json.as_bytes()), PieceLimits { first: room, rest: room });
        let texts: Vec<String> =
            pieces.iter().map(|piece| String::from_utf8(piece.json.to_vec()).unwrap()).collect();
        for text in &texts {
            serde_json::from_str::<&serde_json::value::RawValue>(text).unwrap();
            assert!(text.len() <= room, "{text}");
        }
        texts
    }

    fn x(count: usize) -> String {
        "x".repeat(count)
    }

    #[test]
    fn a_short_value_is_left_alone() {
        assert_eq!(cut("{ \"a\" : 1.0 }", 13), ["{ \"a\" : 1.0 }"]);
    }

    #[test]
    fn a_string_is_cut_between_characters() {
        let pair = r"\ud83d\ude00";
        assert_eq!(
            cut(&format!("\"{}{pair}\"", x(30)), 40),
            [format!("\"{}\"", x(30)), format!("\"{pair}\"")]
        );
        assert_eq!(
            cut(&format!("\"{}\\\\\\\\\"", x(35)), 40),
            [format!("\"{}\\\\\"", x(35)), r#""\\""#.to_owned()]
        );
        assert_eq!(cut(&format!("\"{}ü\"", x(37)), 40), [format!("\"{}\"", x(37)), "\"ü\"".to_owned()]);
    }

    #[test]
    fn an_array_is_cut_between_elements_that_keep_their_bytes() {
        let element = r#"{"a": [1.0, "],"]}"#;
        assert_eq!(
            cut(&format!("[ {element} ,{element}, {element}]"), 40),
            [format!("[{element},{element}]"), format!("[{element}]")]
        );
        let long = format!("[1,\"{}\",2]", x(50));
        assert_eq!(cut(&long, 40), [format!("[1,\"{}\"]", x(34)), format!("[\"{}\",2]", x(16))]);
    }

    #[test]
    fn an_object_is_cut_at_its_largest_member_and_the_others_come_first() {
        let object = format!(r#"{{"id": 7,"text":"{}","usage":{{}}}}"#, x(60));
        assert_eq!(
            cut(&object, 44),
            [
                format!(r#"{{"id":7,"usage":{{}},"text":"{}"}}"#, x(15)),
                format!(r#"{{"text":"{}"}}"#, x(33)),
                format!(r#"{{"text":"{}"}}"#, x(12)),
            ]
        );
        // Holds even where each of them would fit a piece.
        let two = format!(r#"{{"a":"{}","b":"{}"}}"#, x(30), x(20));
        assert_eq!(
            cut(&two, 50),
            [format!(r#"{{"b":"{}","a":"{}"}}"#, x(20), x(15)), format!(r#"{{"a":"{}"}}"#, x(15))]
        );
    }

    #[test]
    fn an_object_of_many_small_members_is_cut_between_them() {
        let members: Vec<String> = (10..30).map(|n| format!("\"m{n}\":{n}")).collect();
        let pieces = cut(&format!("{{{}}}", members.join(",")), 40);
        assert!(pieces.len() <= 6, "{pieces:?}");
        let mut all: Vec<String> =
            pieces.iter().flat_map(|piece| piece[1..piece.len() - 1].split(',')).map(str::to_owned).collect();
        all.sort();
        assert_eq!(all, members);
    }

    #[test]
    fn values_inside_each_other_are_cut_and_their_names_stay() {
        let image = format!(r#"{{"created":1,"data":[{{"b64":"{}"}}]}}"#, x(60));
        let pieces = cut(&image, 60);
        assert_eq!(pieces[0], format!(r#"{{"created":1,"data":[{{"b64":"{}"}}]}}"#, x(27)));
        assert_eq!(pieces[1], format!(r#"{{"data":[{{"b64":"{}"}}]}}"#, x(33)));
    }

    #[test]
    fn what_cannot_be_cut_comes_as_its_text() {
        assert_eq!(
            cut(&"7".repeat(60), 40),
            [format!("\"{}\"", "7".repeat(38)), format!("\"{}\"", "7".repeat(22))]
        );
        let name = format!(r#"{{"{}":1}}"#, x(50));
        let text: String =
            cut(&name, 40).iter().map(|piece| serde_json::from_str::<String>(piece).unwrap()).collect();
        assert_eq!(text, name);
        let deep = "[".repeat(2_000) + &"]".repeat(2_000);
        assert!(cut(&deep, 1_100).iter().any(|piece| piece.contains('"')));
    }

    /// An algorithm that recurses on the depth, or is quadratic in the length, does not finish these texts.
    #[test]
    fn deep_and_long_texts_are_split() {
        let room = PieceLimits { first: 100_000, rest: 100_000 };
        for text in [
            "[".repeat(1_000_000) + &"]".repeat(1_000_000),
            r#"{"a":"#.repeat(300_000) + "1" + &"}".repeat(300_000),
            "[".repeat(500) + "\"" + &x(2_000_000) + "\"" + &"]".repeat(500),
            r#"{"a":"#.repeat(500) + "\"" + &x(2_000_000) + "\"" + &"}".repeat(500),
            format!("[{}1]", "1,".repeat(1_000_000)),
            format!("{{{}\"a\":1}}", "\"a\":1,".repeat(300_000)),
        ] {
            let pieces = pieces(Bytes::from(text), room);
            assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.json.len() <= room.rest));
        }
    }
}
