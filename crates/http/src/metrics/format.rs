//! The formats of the page of metrics, and which one a request asks for.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// `OpenMetrics` 1.0: has examples.
    OpenMetrics,
    /// Protocol buffers: have examples and native histograms.
    Protobuf,
}

/// The message that readers of protocol buffers ask for, and its framing.
const FAMILY: &str = "io.prometheus.client.metricfamily";
const FRAMING: &str = "delimited";

impl Format {
    /// The format that `Accept` prefers: protocol buffers and `OpenMetrics` only if they are named, and not less wanted than
    /// the formats after them.
    pub(super) fn asked_for(headers: &HeaderMap) -> Self {
        let (mut protobuf, mut open, mut text) = (0.0_f32, 0.0_f32, 0.0_f32);
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        for range in lines.flat_map(|line| line.split(',')) {
            let (media, parameters) = range.split_once(';').unwrap_or((range, ""));
            let weight = weight(parameters);
            match media.trim().to_ascii_lowercase().as_str() {
                "application/vnd.google.protobuf" if is_family(parameters) => protobuf = protobuf.max(weight),
                "application/openmetrics-text" => open = open.max(weight),
                "text/plain" => text = text.max(weight),
                _ => {}
            }
        }
        if protobuf > 0.0 && protobuf >= open.max(text) {
            Self::Protobuf
        } else if open > 0.0 && open >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The content type of the format.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// Whether the parameters of a media range name the message and the framing that the server has.
fn is_family(parameters: &str) -> bool {
    let has = |name: &str, wanted: &str| {
        let mut pairs = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
        pairs.any(|(key, value)| {
            key.trim().eq_ignore_ascii_case(name)
                && value.trim().trim_matches('"').eq_ignore_ascii_case(wanted)
        })
    };
    has("proto", FAMILY) && has("encoding", FRAMING)
}

/// The weight among the parameters of a media range, from 0 to 1: 1 without one, 0 for one that is no number.
fn weight(parameters: &str) -> f32 {
    let pairs = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let mut weights = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let Some((_, value)) = weights.next() else { return 1.0 };
    value.trim().parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn asked(accept: &'static str) -> Format {
        Format::asked_for(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]))
    }

    #[test]
    fn open_metrics_is_for_those_who_name_it() {
        assert_eq!(Format::asked_for(&HeaderMap::new()), Format::Text);
        for accept in
            ["*/*", "text/plain", "application/*", "application/openmetrics-text;q=0", "a;b;c,,;=", ""]
        {
            assert_eq!(asked(accept), Format::Text, "{accept}");
        }
        for accept in [
            "application/openmetrics-text",
            "APPLICATION/OpenMetrics-Text; version=1.0.0",
            // Prometheus 2 and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ] {
            assert_eq!(asked(accept), Format::OpenMetrics, "{accept}");
        }
        assert_eq!(asked("text/plain, application/openmetrics-text;q=0.9"), Format::Text);
        assert_eq!(asked("application/openmetrics-text;q=x"), Format::Text);
    }

    #[test]
    fn protocol_buffers_are_for_those_who_name_the_message() {
        for (accept, expected) in [
            // Prometheus 2 with native histograms.
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::Protobuf,
            ),
            (
                "text/plain, application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.5",
                Format::Text,
            ),
            ("application/vnd.google.protobuf;proto=other;encoding=delimited", Format::Text),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
                Format::Text,
            ),
            ("application/vnd.google.protobuf", Format::Text),
        ] {
            assert_eq!(asked(accept), expected, "{accept}");
        }
    }
}
