//! What clients hand in.

use std::fmt::Write as _;

use super::habits::Habits;
use crate::asking::padding;
use crate::dice::Dice;
use crate::receivers::RECEIVERS;
use crate::workers::UNREADABLE;

/// A job request that is in order. `client` and `number` make it different from every other.
pub(super) fn job(habits: &Habits, dice: &mut Dice, client: u32, number: u64, unreadable: bool) -> String {
    let pad = padding(dice.skewed(0..=habits.input_bytes_max));
    let mut body = match dice.range(0..=19) {
        _ if unreadable => format!(r#"{{"input":{{"client":{client},"number":{number},{UNREADABLE}}}"#),
        0 => r#"{"input":{}"#.to_owned(),
        _ => format!(r#"{{"input":{{"client":{client},"number":{number},"big":1e400,"pad":"{pad}"}}"#),
    };
    if dice.chance(habits.webhooks) {
        let receiver = dice.range(0..=RECEIVERS - 1);
        // Writing into a string does not fail.
        let _ = write!(body, r#","webhook":"http://receiver-{receiver}.test/{client}/{number}""#);
    }
    if dice.chance(habits.policies) {
        policy(dice, &mut body);
    }
    if dice.chance(0.05) {
        body.push_str(r#","s3Config":{"accessId":"id","accessSecret":"hush","bucketName":"b"}"#);
    }
    body.push('}');
    body
}

fn policy(dice: &mut Dice, body: &mut String) {
    let mut members = Vec::with_capacity(3);
    if dice.chance(0.4) {
        members.push(format!(r#""executionTimeout":{}"#, dice.skewed(5_000..=120_000)));
    }
    if dice.chance(0.4) {
        members.push(format!(r#""ttl":{}"#, dice.skewed(10_000..=300_000)));
    }
    if dice.chance(0.3) {
        members.push(r#""lowPriority":true"#.to_owned());
    }
    let _ = write!(body, r#","policy":{{{}}}"#, members.join(","));
}
