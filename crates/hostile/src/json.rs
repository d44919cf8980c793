//! Strategies for JSON texts by the grammar of RFC 8259, with many edge cases.
//!
//! The strategies generate texts and not values, because no value type represents all that the grammar allows: a number
//! of a thousand digits, half of a surrogate pair, a duplicate name.

use proptest::prelude::*;

/// Limit of the nesting of generated texts, in levels. Unbounded recursion overflows the stack at this depth.
pub const DEPTH: usize = 20_000;

/// Member names that the parser under test reads. Generated objects have them more often than other names.
pub type Names = &'static [&'static str];

/// Generates any JSON text.
pub fn json(names: Names) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        2 => prop::sample::select(vec!["null", "true", "false", "{}", "[]", "[ ]"]).prop_map(str::to_owned),
        3 => number(),
        4 => string(),
    ];
    let tree = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), blank())
                .prop_map(|(items, blank)| format!("[{blank}{}{blank}]", items.join(","))),
            members(names, inner, 0..4).prop_map(|members| format!("{{{members}}}")),
        ]
    });
    prop_oneof![40 => tree, 1 => deep()]
}

/// Generates any JSON object as text.
pub fn object(names: Names) -> impl Strategy<Value = String> {
    members(names, json(names), 0..6).prop_map(|members| format!("{{{members}}}"))
}

/// Generates any JSON number as text, including numbers out of the range of every type.
pub fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,5})?",
        prop::sample::select(vec!["-0", "0.0", "1e400", "-1E-999", "18446744073709551616", "1.0", "9e3"])
            .prop_map(str::to_owned),
    ]
}

/// Generates any JSON string with its quotes: plain characters, escapes, and halves of surrogate pairs.
pub fn string() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        6 => any::<char>().prop_map(escaped_if_needed),
        1 => any::<u16>().prop_map(|unit| format!("\\u{unit:04X}")),
        1 => (0xd800..=0xdfff_u16).prop_map(|half| format!("\\u{half:04x}")),
        1 => prop::sample::select(vec!["\\\"", "\\\\", "\\/", "\\n", "\\u0000", "NaN", "-Infinity", "{", "]", ","])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(letter, 0..12).prop_map(|letters| format!("\"{}\"", letters.concat()))
}

fn escaped_if_needed(letter: char) -> String {
    match letter {
        '"' | '\\' | '\0'..='\x1f' => format!("\\u{:04x}", letter as u32),
        _ => letter.to_string(),
    }
}

/// Generates the members of an object; names may repeat.
fn members(
    names: Names,
    value: impl Strategy<Value = String>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = String> {
    let known = prop::sample::select(if names.is_empty() { vec![""] } else { names.to_vec() });
    let name = prop_oneof![3 => known.prop_map(|name| format!("\"{name}\"")), 1 => string()];
    let member = (name, blank(), value)
        .prop_map(|(name, blank, value)| format!("{blank}{name}{blank}:{value}{blank}"));
    prop::collection::vec(member, count).prop_map(|members| members.join(","))
}

/// Generates up to two white-space characters.
fn blank() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}

/// Generates texts of 130 to [`DEPTH`] nested arrays or objects.
fn deep() -> impl Strategy<Value = String> {
    (130..DEPTH, any::<bool>()).prop_map(|(depth, array)| {
        let (open, close) = if array { ("[", "]") } else { ("{\"a\":", "}") };
        format!("{}0{}", open.repeat(depth), close.repeat(depth))
    })
}
