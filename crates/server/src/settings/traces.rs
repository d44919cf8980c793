//! The settings of traces.

use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use longshore_engine::{Sampling, TraceSettings, WebhookSettings};

use super::{Settings, SettingsError};

/// What an address of a collector gets as its path, by the specification of OTLP.
const PATH: &str = "/v1/traces";
/// The path of `trace_link` that stands for the id of a trace.
const TRACE_ID: &str = "{trace_id}";
/// How long a collector has for its response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest number of spans that may wait: about 1 GB of memory.
const QUEUE_SPANS_MAX: u64 = 1_000_000;
/// The only encoding of spans.
const PROTOCOL: &str = "http/protobuf";

impl Settings {
    /// Returns the settings of traces; `None` if no collector is named. `variable` returns the value of an environment
    /// variable: those of OpenTelemetry count where our own settings are empty.
    pub(crate) fn traces(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TraceSettings>, SettingsError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // The variable for traces alone has priority over the one for all signals.
        let of_traces = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            let shared = format!("OTEL_EXPORTER_OTLP_{name}");
            [own, shared].into_iter().find_map(|name| Some((variable(&name)?, name)))
        };
        let endpoint = match (self.otlp_endpoint.as_str(), of_traces("ENDPOINT")) {
            ("", None) => return Ok(None),
            ("", Some((address, name))) => {
                if let Some((protocol, name)) = of_traces("PROTOCOL").filter(|(value, _)| value != PROTOCOL) {
                    return Err(wrong(&name, &format!("{protocol:?}; only {PROTOCOL} is supported")));
                }
                let is_whole = name.contains("TRACES");
                collector(&name, &address, is_whole)?
            }
            (address, _) => collector("otlp_endpoint", address, false)?,
        };
        let headers = if self.otlp_headers_file.as_os_str().is_empty() {
            of_traces("HEADERS")
                .map_or_else(|| Ok(HeaderMap::new()), |(text, name)| headers_of(&name, &text, ',', '='))?
        } else {
            let text = std::fs::read_to_string(&self.otlp_headers_file)
                .map_err(|cause| SettingsError::Unreadable { path: self.otlp_headers_file.clone(), cause })?;
            headers_of("otlp_headers_file", &text, '\n', ':')?
        };
        let timeout =
            of_traces("TIMEOUT").and_then(|(ms, _)| ms.trim().parse().ok()).map(Duration::from_millis);
        Ok(Some(TraceSettings {
            endpoint,
            headers,
            service: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "longshore".to_owned()),
            sampling: Sampling::of_ratio(self.otlp_sample),
            spans_max: self.otlp_queue_spans as usize,
            timeout: timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(TIMEOUT),
        }))
    }

    /// The settings of the connection to the collector: that of webhooks, to any address.
    pub(crate) fn trace_connection(&self) -> WebhookSettings {
        WebhookSettings { allow_private: true, calls_per_host_max: 1, ..self.webhooks() }
    }

    /// The address of a trace in the tool that shows traces; empty if there is none.
    pub(super) fn trace_link(&self) -> &str {
        &self.trace_link
    }

    pub(super) fn check_traces(&self) -> Result<(), SettingsError> {
        if !self.otlp_endpoint.is_empty() {
            collector("otlp_endpoint", &self.otlp_endpoint, false)?;
        }
        if !(0.0..=1.0).contains(&self.otlp_sample) {
            return Err(wrong("otlp_sample", &format!("{}; it must be from 0 to 1", self.otlp_sample)));
        }
        if !(1..=QUEUE_SPANS_MAX).contains(&self.otlp_queue_spans) {
            let text = format!("{}; it must be from 1 to {QUEUE_SPANS_MAX}", self.otlp_queue_spans);
            return Err(wrong("otlp_queue_spans", &text));
        }
        let link = &self.trace_link;
        let is_usable = is_web_address(link) && link.contains(TRACE_ID);
        if !link.is_empty() && !is_usable {
            let text = format!(
                "{link:?}; it must be a web address with {TRACE_ID}, such as https://traces.example/{TRACE_ID}"
            );
            return Err(wrong("trace_link", &text));
        }
        Ok(())
    }
}

fn wrong(name: &str, what: &str) -> SettingsError {
    SettingsError::Value(format!("`{name}` is {what}"))
}

fn is_web_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The address of a collector. Unless it `is_whole`, it gets the path of traces.
fn collector(name: &str, text: &str, is_whole: bool) -> Result<Uri, SettingsError> {
    let refused = || {
        wrong(
            name,
            &format!(
                "{text:?}; it must be an address such as http://127.0.0.1:4318, and keys belong into headers"
            ),
        )
    };
    let uri: Uri = text.trim().parse().map_err(|_| refused())?;
    let is_plain = uri
        .authority()
        .is_some_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty());
    if !is_plain || !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(refused());
    }
    let path = uri.path().trim_end_matches('/');
    if is_whole || path.ends_with(PATH) {
        return Ok(uri);
    }
    let path = PathAndQuery::try_from(format!("{path}{PATH}")).map_err(|_| refused())?;
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| refused())
}

/// Reads headers. An error names the place and no value: a header can be a key.
fn headers_of(name: &str, text: &str, between: char, after_name: char) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    let lines = text.split(between).map(str::trim).enumerate();
    for (place, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let refused = || {
            let text = format!(
                "`{name}`: entry {} must be a header's name, `{after_name}` and its value",
                place + 1
            );
            SettingsError::Value(text)
        };
        let (header, value) = line.split_once(after_name).ok_or_else(refused)?;
        let header: HeaderName = header.trim().parse().map_err(|_| refused())?;
        let value =
            if after_name == '=' { without_percents(value.trim()) } else { value.trim().as_bytes().to_vec() };
        let mut value = HeaderValue::from_bytes(&value).map_err(|_| refused())?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

/// Decodes `%20` and the like, with which variables write spaces, commas and equals signs.
fn without_percents(text: &str) -> Vec<u8> {
    let (mut bytes, mut out) = (text.as_bytes(), Vec::with_capacity(text.len()));
    while let [first, rest @ ..] = bytes {
        let pair = rest.get(..2).filter(|_| *first == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        let decoded = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        out.push(decoded.unwrap_or(*first));
        bytes = if decoded.is_some() { &rest[2..] } else { rest };
    }
    out
}

#[cfg(test)]
mod tests {
    use longshore_cli::ServeArgs;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let pairs = pairs.iter().map(|(name, value)| (format!("LONGSHORE_{name}"), (*value).to_owned()));
        Settings::load(&ServeArgs::default(), pairs.collect::<Vec<_>>())
    }

    fn traces(own: &[(&str, &str)], theirs: &[(&str, &str)]) -> Result<Option<TraceSettings>, SettingsError> {
        let find =
            |name: &str| theirs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        settings(own)?.traces(find)
    }

    fn endpoint(own: &[(&str, &str)], theirs: &[(&str, &str)]) -> Option<String> {
        traces(own, theirs).unwrap().map(|traces| traces.endpoint.to_string())
    }

    #[test]
    fn no_collector_means_no_traces() {
        assert!(
            traces(&[], &[("OTEL_EXPORTER_OTLP_HEADERS", "a=b"), ("OTEL_EXPORTER_OTLP_ENDPOINT", " ")])
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn an_address_gets_the_path_of_traces() {
        for (address, whole) in [
            ("http://h:4318", "http://h:4318/v1/traces"),
            ("http://h:4318/", "http://h:4318/v1/traces"),
            ("https://h/otlp/", "https://h/otlp/v1/traces"),
            ("https://h/v1/traces", "https://h/v1/traces"),
        ] {
            assert_eq!(endpoint(&[("OTLP_ENDPOINT", address)], &[]).as_deref(), Some(whole));
            assert_eq!(endpoint(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", address)]).as_deref(), Some(whole));
        }
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x");
        let shared = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://s");
        assert_eq!(endpoint(&[], &[shared, whole]).as_deref(), Some("http://t/x"));
        assert_eq!(
            endpoint(&[("OTLP_ENDPOINT", "http://own")], &[whole]).as_deref(),
            Some("http://own/v1/traces")
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_name() {
        for (name, value) in [
            ("OTLP_ENDPOINT", "h:4318"),
            ("OTLP_ENDPOINT", "ftp://h"),
            ("OTLP_ENDPOINT", "http://u:p@h"),
            ("OTLP_SAMPLE", "1.5"),
            ("OTLP_SAMPLE", "-1"),
            ("OTLP_SAMPLE", "nan"),
            ("OTLP_QUEUE_SPANS", "0"),
            ("TRACE_LINK", "https://t.example/"),
            ("TRACE_LINK", "javascript:{trace_id}"),
        ] {
            let error = settings(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(&format!("`{}` is", name.to_lowercase())), "{error}");
        }
        let grpc = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
        let error = traces(&[], &grpc).unwrap_err().to_string();
        assert!(error.contains("`OTEL_EXPORTER_OTLP_PROTOCOL` is \"grpc\"; only http/protobuf"), "{error}");
        assert!(traces(&[("OTLP_ENDPOINT", "http://h")], &grpc).is_ok());
    }

    #[test]
    fn a_share_is_a_number_with_or_without_a_point() {
        for (text, share) in [("0", 0.0), ("1", 1.0), ("0.01", 0.01)] {
            let traces =
                traces(&[("OTLP_ENDPOINT", "http://h"), ("OTLP_SAMPLE", text)], &[]).unwrap().unwrap();
            assert_eq!(traces.sampling, Sampling::of_ratio(share));
        }
    }

    #[test]
    fn headers_are_read_from_a_file_or_a_variable_and_never_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# the collector's\nx-key: a:b, c\n\nx-two: 2\n").unwrap();
        let own = [("OTLP_ENDPOINT", "http://h"), ("OTLP_HEADERS_FILE", file.path().to_str().unwrap())];
        let of_file = traces(&own, &[]).unwrap().unwrap();
        assert_eq!(
            (&of_file.headers["x-key"], &of_file.headers["x-two"]),
            (&"a:b, c".parse().unwrap(), &"2".parse().unwrap())
        );
        assert!(!format!("{of_file:?}").contains("a:b"));
        let variable = ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20a%3Db, x-two=2");
        let of_variable = traces(&own[..1], &[variable]).unwrap().unwrap();
        assert_eq!(of_variable.headers["authorization"], "Basic a=b");
        let error =
            traces(&own[..1], &[("OTEL_EXPORTER_OTLP_HEADERS", "a=b,hunter2")]).unwrap_err().to_string();
        assert!(error.contains("entry 2") && !error.contains("hunter2"), "{error}");
    }
}
