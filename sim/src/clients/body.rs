//! The bodies of submits.

use std::fmt::Write as _;

use super::profile::ClientProfile;
use crate::raw_http::padding;
use crate::receivers::RECEIVERS;
use crate::rng::Rng;
use crate::workers::UNREADABLE;

/// A valid submit. `client` and `number` make it unique.
pub(super) fn job(
    profile: &ClientProfile,
    rng: &mut Rng,
    client: u32,
    number: u64,
    unreadable: bool,
) -> String {
    let pad = padding(rng.skewed(0..=profile.input_bytes_max));
    let mut body = match rng.range(0..=19) {
        _ if unreadable => format!(r#"{{"input":{{"client":{client},"number":{number},{UNREADABLE}}}"#),
        0 => r#"{"input":{}"#.to_owned(),
        _ => format!(r#"{{"input":{{"client":{client},"number":{number},"big":1e400,"pad":"{pad}"}}"#),
    };
    if rng.chance(profile.webhooks) {
        let receiver = rng.range(0..=RECEIVERS - 1);
        // Writing into a string cannot fail.
        let _ = write!(body, r#","webhook":"http://receiver-{receiver}.test/{client}/{number}""#);
    }
    if rng.chance(profile.policies) {
        policy(rng, &mut body);
    }
    if rng.chance(0.05) {
        body.push_str(r#","s3Config":{"accessId":"id","accessSecret":"hush","bucketName":"b"}"#);
    }
    body.push('}');
    body
}

fn policy(rng: &mut Rng, body: &mut String) {
    let mut members = Vec::with_capacity(3);
    if rng.chance(0.4) {
        members.push(format!(r#""executionTimeout":{}"#, rng.skewed(5_000..=120_000)));
    }
    if rng.chance(0.4) {
        members.push(format!(r#""ttl":{}"#, rng.skewed(10_000..=300_000)));
    }
    if rng.chance(0.3) {
        members.push(r#""lowPriority":true"#.to_owned());
    }
    let _ = write!(body, r#","policy":{{{}}}"#, members.join(","));
}
