//! The fields of `lb`: how a load-balancing endpoint forwards requests.

use super::fields::{Field, FieldKind};

const PORT: FieldKind = FieldKind::Integer { min: 1, max: 65_535 };
/// Milliseconds, up to one day.
const WAIT_MS: FieldKind = FieldKind::Integer { min: 0, max: 86_400_000 };
/// 2^53 - 1 bytes: the largest integer that every JSON parser reads exactly.
const BYTES: FieldKind = FieldKind::Integer { min: 0, max: (1 << 53) - 1 };
const PATH_CHARS_MAX: usize = 1_000;
const PATH_PATTERN: &str = "^/[!-~]*$";

/// Every field of `lb`. A field that a request leaves out keeps its value, at first the default of the manual.
pub(crate) const LB_FIELDS: &[Field] = &[
    Field::new(
        "port",
        PORT,
        "the port on which workers serve HTTP; unset: `PORT` of the template, or a free one",
    )
    .nullable(),
    Field::new("healthPort", PORT, "the port of the health check; unset: the port of the requests")
        .nullable(),
    Field::new(
        "healthPath",
        FieldKind::Form { matches: is_path, pattern: PATH_PATTERN },
        "the path of the health check: 200 is healthy, 204 initializing, anything else unhealthy",
    ),
    Field::new(
        "maxConcurrency",
        FieldKind::Integer { min: 0, max: 100_000 },
        "concurrent requests of one worker; 0: no limit",
    ),
    Field::new("queueMax", FieldKind::Integer { min: 0, max: 100_000 }, "requests that wait for a worker"),
    Field::new("queueTimeoutMs", WAIT_MS, "how long a request waits for a worker"),
    Field::new(
        "requestTimeoutMs",
        FieldKind::Integer { min: 1, max: 86_400_000 },
        "how long a worker may take until the head of its response, and wait for a request's body that comes slowly",
    ),
    Field::new(
        "idleTimeoutMs",
        WAIT_MS,
        "the longest pause within a response or an upgraded connection; 0: none",
    ),
    Field::new("drainTimeoutMs", WAIT_MS, "how long requests of a drained worker may go on"),
    Field::new("bodyBytesMax", BYTES, "the largest body of a request that has to wait for a worker"),
    Field::new("public", FieldKind::Flag, "whether requests need no key"),
    Field::new("passAuthorization", FieldKind::Flag, "whether workers get `Authorization` of requests"),
];

/// Whether a text is a path of visible ASCII characters.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= PATH_CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use longshore_model::LbSettings;

    use super::*;

    #[test]
    fn the_table_and_the_record_know_the_same_names() {
        let lb = LbSettings { port: Some(1), health_port: Some(2), ..LbSettings::default() };
        let record = serde_json::to_value(lb).unwrap();
        let names: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
        let mut listed: Vec<_> = LB_FIELDS.iter().map(|field| field.name).collect();
        listed.sort_unstable();
        assert_eq!(names, listed);
    }

    #[test]
    fn a_health_path_is_a_path() {
        for good in ["/", "/ping", "/v1/health?deep=1"] {
            assert!(is_path(good), "{good}");
        }
        for bad in ["", "ping", "/a b", "/a\r\nHost: x", "/é", "http://other/"] {
            assert!(!is_path(bad), "{bad}");
        }
    }
}
