//! Examples for `longshore`, curl, Python and JavaScript that call the running endpoint.

use longshore_client::segment;

use crate::remote::{ServerArgs, variable};
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
    /// Prints the same request to the endpoint for `longshore`, curl, the Python SDK and the JavaScript SDK.
    pub(crate) fn show(&self, screen: &Screen) {
        let (input, data) = self.payload();
        let Self { base_url, slug, key, .. } = self;
        let (before, after) = self.server_words(variable);
        let job = self.job_argument();
        let commands = [
            format!("{before}longshore run {slug} {job} --wait{after}"),
            format!("{before}longshore logs -f {slug}{after}"),
            format!("{before}longshore top{after}"),
        ];
        let slug = segment(slug);
        let blocks = [
            ("longshore, in a second terminal", commands.join("\n")),
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

    /// What a command in another terminal needs before and after its words to call this server: nothing if it is the
    /// server that commands call anyway.
    fn server_words(&self, variable: impl Fn(&str) -> Option<String>) -> (String, String) {
        let Self { base_url, key, .. } = self;
        let reaches = |args: &ServerArgs| {
            let resolved = args.resolve(&variable);
            resolved.is_ok_and(|found| found.url == *base_url && found.key.text() == *key)
        };
        if reaches(&ServerArgs::default()) {
            (String::new(), String::new())
        } else if reaches(&ServerArgs::at(base_url)) {
            (String::new(), format!(" --url {base_url}"))
        } else {
            (format!("LONGSHORE_URL={base_url} LONGSHORE_API_KEY={key} "), String::new())
        }
    }

    /// The input of `longshore run`: the sample's if it is short, else the sample's file.
    fn job_argument(&self) -> String {
        let Some((text, path)) = &self.sample else { return "'{}'".to_owned() };
        let sample: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
        let input = sample.get("input").map(ToString::to_string).unwrap_or_default();
        let only_input = sample.as_object().is_some_and(|sample| sample.len() == 1);
        if only_input && input.chars().count() <= INLINE_CHARS_MAX && !input.contains('\'') {
            format!("'{input}'")
        } else {
            format!("--whole @{path}")
        }
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
    use crate::profile::Profile;
    use crate::profile::running::RunningProfile;

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
        assert_eq!(snippets.job_argument(), "--whole @dir/test_input.json");
    }

    #[test]
    fn a_command_names_the_server_only_where_it_must() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("longshore/dev");
        let (base_url, key) = ("http://127.0.0.1:8080", "k");
        let snippets = Snippets { base_url, slug: "s", key, sample: None };
        let words = |more: &[(&str, &str)]| {
            let home = dir.path().display().to_string();
            let all = [&[("XDG_CONFIG_HOME", home.as_str())], more].concat();
            snippets.server_words(|name| all.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let plain = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        assert_eq!(words(&[]), plain("LONGSHORE_URL=http://127.0.0.1:8080 LONGSHORE_API_KEY=k ", ""));
        let profile = Profile { url: base_url.to_owned(), api_key: key.into(), ca_file: None };
        let _ours = RunningProfile::store(&folder, 8080, &profile).unwrap();
        assert_eq!(words(&[]), plain("", ""));
        assert_eq!(words(&[("LONGSHORE_URL", "http://other")]), plain("", " --url http://127.0.0.1:8080"));
    }
}
