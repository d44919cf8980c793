//! Log lines as JSON: one object a line, with plain values. An absent value is left out.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::events;

/// How long equal lines are counted before one of them is written again.
const COUNTED_FOR: Duration = Duration::from_secs(10);

/// Writes events as JSON. Equal lines without another between them are counted, and written at most once in 10 s.
#[derive(Default)]
pub(super) struct JsonLines {
    last: Mutex<Option<LastLine>>,
}

/// The line that was written last.
struct LastLine {
    members: Map<String, Value>,
    /// When it was written.
    at: Instant,
    /// How often it was repeated since.
    repeated: u64,
}

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let members = members(context, event);
        let now = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = last.as_ref().is_some_and(|last| last.members == members);
        if let Some(last) = last.as_mut().filter(|last| is_same && now - last.at < COUNTED_FOR) {
            last.repeated += 1;
            return Ok(());
        }
        let before = last.replace(LastLine { members: members.clone(), at: now, repeated: 0 });
        drop(last);
        match before {
            // The repetitions before this line, which is one of them.
            Some(before) if is_same => write_line(&mut writer, members, before.repeated + 1),
            before => {
                if let Some(before) = before.filter(|before| before.repeated > 0) {
                    write_line(&mut writer, before.members, before.repeated)?;
                }
                write_line(&mut writer, members, 0)
            }
        }
    }
}

fn write_line(writer: &mut Writer<'_>, members: Map<String, Value>, repeated: u64) -> fmt::Result {
    let mut ts = String::new();
    SystemTime.format_time(&mut Writer::new(&mut ts))?;
    let mut line = Map::from_iter([("ts".to_owned(), Value::from(ts))]);
    line.extend(members);
    if repeated > 0 {
        line.insert("repeated".to_owned(), repeated.into());
    }
    writeln!(writer, "{}", Value::Object(line))
}

/// The members of a line without its time.
fn members<S>(context: &FmtContext<'_, S, JsonFields>, event: &Event<'_>) -> Map<String, Value>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut fields = Fields::default();
    event.record(&mut fields);
    let (meta, message) = (event.metadata(), fields.message);
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| drop(line.insert(name.to_owned(), value));
    put("level", meta.level().as_str().to_lowercase().into());
    if let Some(name) = events::name_of(&message) {
        put("event", name.into());
    }
    put("msg", message.into());
    put("target", meta.target().into());
    for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
        let extensions = span.extensions();
        let text =
            extensions.get::<FormattedFields<JsonFields>>().map_or("", |fields| fields.fields.as_str());
        let members = serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            put(if name == "id" { "requestId" } else { name_of(&name) }, value);
        }
    }
    for (name, value) in fields.members {
        put(&camel_case(name_of(name)), value);
    }
    line
}

/// The name of a field in a line. Requests and traces are named by their ids.
fn name_of(field: &str) -> &str {
    match field {
        "request" => "requestId",
        "trace" => "traceId",
        other => other.strip_prefix("r#").unwrap_or(other),
    }
}

/// `latency_ms` as `latencyMs`.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut joined = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
        joined.push_str(&first.to_uppercase());
        joined.push_str(rest);
    }
    joined
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    members: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.members.push((field.name(), value.into()));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" { self.message = text } else { self.put(field, text) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" { value.clone_into(&mut self.message) } else { self.put(field, value) }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    /// The lines that a test has logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `log` writes, without their times and targets.
    fn lines(log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines::default())
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
        parsed.map(without_time).collect()
    }

    fn without_time(mut line: Value) -> Value {
        let members = line.as_object_mut().unwrap();
        let ts = members.remove("ts").unwrap();
        assert_eq!(ts.as_str().unwrap().len(), "2030-01-31T12:00:00.000000Z".len(), "{ts}");
        assert!(members.remove("target").unwrap().as_str().unwrap().contains("json"));
        line
    }

    #[test]
    fn values_are_plain_and_absent_ones_are_left_out() {
        let logged = lines(|| {
            let (code, signal): (Option<i32>, Option<i32>) = (Some(1), None);
            let (status, error): (Option<u16>, Option<&str>) = (None, None);
            tracing::warn!(worker = %"w1", code, signal, status, error, ran_ms = 5_u64, ok = true, "worker exited");
        });
        let expected = serde_json::json!({
            "level": "warn", "event": "worker.exited", "msg": "worker exited", "worker": "w1", "code": 1, "ranMs": 5,
            "ok": true,
        });
        assert_eq!(logged, [expected]);
    }

    #[test]
    fn a_line_about_a_request_has_its_id_and_trace() {
        let logged = lines(|| {
            let trace: Option<&str> = None;
            let span = tracing::info_span!("request", id = %"r1", trace);
            span.in_scope(|| tracing::info!(endpoint = %"e1", "endpoint changed"));
            tracing::error!(request = %"r2", trace = %"t2", "request failed");
        });
        assert_eq!(logged[0]["requestId"], "r1");
        assert!(logged[0].get("traceId").is_none());
        assert_eq!((&logged[0]["endpoint"], &logged[0]["event"]), (&"e1".into(), &"endpoint.changed".into()));
        assert_eq!((&logged[1]["requestId"], &logged[1]["traceId"]), (&"r2".into(), &"t2".into()));
    }

    #[test]
    fn equal_lines_are_counted() {
        let logged = lines(|| {
            for _ in 0..5 {
                tracing::warn!("worker exited");
            }
            tracing::info!("worker started");
            tracing::info!("worker adopted");
        });
        let seen: Vec<_> =
            logged.iter().map(|line| (line["msg"].as_str().unwrap(), line["repeated"].as_u64())).collect();
        let expected = [
            ("worker exited", None),
            ("worker exited", Some(4)),
            ("worker started", None),
            ("worker adopted", None),
        ];
        assert_eq!(seen, expected);
    }
}
