//! Examples for curl, Python and JavaScript that call the running endpoint.

use longshore_client::segment;

use crate::screen::Screen;

/// Most characters of a sample that is shown inline; a longer one is read from its file.
const INLINE_CHARS_MAX: usize = 120;

/// The endpoint, key and sample that the examples use.
pub(crate) struct Snippets<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) slug: &'a str,
    pub(crate) key: &'a str,
    /// JSON text and path of the sample.
    pub(crate) sample: Option<(&'a [u8], String)>,
}

impl Snippets<'_> {
    /// Prints the same request to the endpoint for curl, the Python SDK and the JavaScript SDK.
    pub(crate) fn show(&self, screen: &Screen) {
        let (input, data) = self.payload();
        let Self { base_url, slug, key, .. } = self;
        let slug = segment(slug);
        let blocks = [
            (
                "curl",
                format!(
                    "curl {base_url}/v2/{slug}/runsync \\\n  -H 'Authorization: Bearer {key}' \\\n  \
                     -d {data}"
                ),
            ),
            (
                "Python (pip install runpod)",
                format!(
                    "import runpod\nrunpod.api_key = \"{key}\"\n\
                     runpod.endpoint_url_base = \"{base_url}/sdk/v2\"\n\
                     print(runpod.Endpoint(\"{slug}\").run_sync({}))",
                    python_literal(&input)
                ),
            ),
            (
                "JavaScript (npm install runpod-sdk)",
                format!(
                    "import runpodSdk from \"runpod-sdk\";\n\
                     const runpod = runpodSdk(\"{key}\", {{ baseUrl: \"{base_url}/sdk/v2\" }});\n\
                     console.log(await runpod.endpoint(\"{slug}\").runSync({input}));"
                ),
            ),
        ];
        for (title, lines) in blocks {
            screen.line("");
            screen.line(&format!("  {}", screen.bold(title)));
            for line in lines.lines() {
                screen.line(&format!("    {line}"));
            }
        }
        screen.line("");
    }

    /// The request as a JSON literal, and as an argument of curl.
    fn payload(&self) -> (String, String) {
        let compact = |text: &[u8]| {
            let value: serde_json::Value = serde_json::from_slice(text).ok()?;
            serde_json::to_string(&value).ok()
        };
        match &self.sample {
            Some((text, path)) => match compact(text) {
                Some(json) if json.chars().count() <= INLINE_CHARS_MAX && !json.contains('\'') => {
                    let data = format!("'{json}'");
                    (json, data)
                }
                _ => ("{\"input\": {}}".to_owned(), format!("@{path}")),
            },
            None => ("{\"input\": {}}".to_owned(), "'{\"input\": {}}'".to_owned()),
        }
    }
}

/// JSON is valid Python except for `true`, `false` and `null`, which are replaced outside strings.
fn python_literal(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    // Splitting at quotes alternates between outside and inside a string. Escaped quotes are not split.
    let mut inside = false;
    let mut word = String::new();
    let mut escaped = false;
    let flush = |word: &mut String, out: &mut String, inside: bool| {
        if inside {
            out.push_str(word);
        } else {
            out.push_str(&word.replace("true", "True").replace("false", "False").replace("null", "None"));
        }
        word.clear();
    };
    for c in json.chars() {
        if c == '"' && !escaped {
            flush(&mut word, &mut out, inside);
            inside = !inside;
            out.push(c);
        } else {
            word.push(c);
        }
        escaped = inside && c == '\\' && !escaped;
    }
    flush(&mut word, &mut out, inside);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_becomes_python_outside_of_strings_only() {
        let json = r#"{"input":{"true":true,"a":[null,false],"s":"\"true\" null"}}"#;
        assert_eq!(python_literal(json), r#"{"input":{"true":True,"a":[None,False],"s":"\"true\" null"}}"#);
    }

    #[test]
    fn a_long_sample_is_named_as_a_file() {
        let long = format!(r#"{{"input": {{"text": "{}"}}}}"#, "x".repeat(500));
        let sample = Some((long.as_bytes(), "dir/test_input.json".to_owned()));
        let snippets = Snippets { base_url: "http://h", slug: "s", key: "k", sample };
        assert_eq!(snippets.payload().1, "@dir/test_input.json");
    }
}
