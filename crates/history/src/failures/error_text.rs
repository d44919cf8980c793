//! Takes the text of an error apart: its type, its message, and the last place of its traceback.

use serde_json::Deserializer;

const TRACEBACK: &str = "Traceback (most recent call last)";

/// The parts of an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorParts {
    /// The name of the exception, without its module.
    pub(super) error_type: Option<String>,
    /// The first line of the message.
    pub(super) message: String,
    /// The file and line, such as `handler.py:12`.
    pub(super) place: Option<String>,
}

/// The parts of an error: of a JSON object as the workers' SDK makes it, also if its end was cut off; of a text with a
/// traceback; or of any other text.
pub(super) fn parts(error: &str) -> ErrorParts {
    let error = error.trim();
    if error.starts_with('{')
        && let Some(message) = member(error, "error_message")
    {
        let error_type = member(error, "error_type").and_then(|text| type_name(&text));
        let place = member(error, "error_traceback").and_then(|trace| place_of(&trace));
        return ErrorParts { error_type, message: first_line(&message), place };
    }
    let Some(at) = error.find(TRACEBACK) else {
        return ErrorParts { message: first_line(error), ..ErrorParts::default() };
    };
    let raised = raised(&error[at..]);
    let (name, said) = raised.split_once(':').unwrap_or((raised, ""));
    let error_type = type_name(name);
    let message = match (&error_type, first_line(before_trace(&error[..at]))) {
        (Some(_), before) if before.is_empty() => first_line(said),
        (None, before) if before.is_empty() => first_line(raised),
        (_, before) => before,
    };
    ErrorParts { error_type, message, place: place_of(&error[at..]) }
}

/// The line of a traceback that names the exception: the first after the frames, because a message may have several lines.
fn raised(trace: &str) -> &str {
    let frames_end = trace.rfind("\n  File ").map_or(0, |at| at + 1);
    let mut lines = trace[frames_end..].lines().filter(|line| !line.is_empty());
    lines.find(|line| !line.starts_with(' ')).or_else(|| trace.lines().next_back()).unwrap_or_default()
}

/// What stands before a traceback, without the two words that the SDK adds to errors of handlers that are generators.
fn before_trace(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_suffix("traceback:").unwrap_or(text);
    text.strip_prefix("handler:").unwrap_or(text)
}

/// The text of a member of a JSON object. Looks for it without parsing what is around it, which may be cut off.
fn member(object: &str, name: &str) -> Option<String> {
    let at = object.find(&format!("\"{name}\""))?;
    let rest = object[at + name.len() + 2..].trim_start().strip_prefix(':')?;
    Deserializer::from_str(rest).into_iter::<String>().next()?.ok()
}

/// The last name in `<class 'json.decoder.JSONDecodeError'>`, of `json.decoder.JSONDecodeError` and of `JSONDecodeError`.
fn type_name(text: &str) -> Option<String> {
    let path = text.split('\'').nth(1).unwrap_or(text).trim();
    let name = path.rsplit('.').next().unwrap_or_default();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| name.to_owned())
}

/// The last file and line of a traceback. A file of an installed package has its path below the packages, another one its
/// name.
fn place_of(trace: &str) -> Option<String> {
    let (_, last) = trace.rsplit_once("File \"")?;
    let (path, rest) = last.split_once('"')?;
    let line = rest.strip_prefix(", line ")?;
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let shown = match path.rsplit_once("-packages/") {
        Some((_, below)) => below,
        None => path.rsplit('/').next().unwrap_or(path),
    };
    (digits > 0).then(|| format!("{shown}:{}", &line[..digits]))
}

/// The first line that is not blank.
fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(error: &str) -> (Option<String>, String, Option<String>) {
        let ErrorParts { error_type, message, place } = parts(error);
        (error_type, message, place)
    }

    #[test]
    fn an_error_of_the_sdk_is_taken_apart_also_if_it_is_cut() {
        let whole = r#"{"error_type": "<class 'app.errors.NoCustomer'>", "error_message": "no \"customer\" 5\nsee log", "error_traceback": "Traceback (most recent call last):\n  File \"/x/site-packages/runpod/job.py\", line 164, in run_job\n  File \"/data/code/ab/src/handler.py\", line 12, in handler\n", "hostname": "h"}"#;
        let name = || Some("NoCustomer".to_owned());
        let message = "no \"customer\" 5".to_owned();
        assert_eq!(seen(whole), (name(), message.clone(), Some("handler.py:12".to_owned())));
        let cut = &whole[..whole.find("/data/code").unwrap()];
        assert_eq!(seen(cut), (name(), message, None));
    }

    #[test]
    fn a_text_may_have_a_traceback() {
        let trace = "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/torch/nn.py\", line 7, in f\n    x()\ntorch.cuda.OutOfMemoryError: CUDA out of memory";
        let (name, place) = (Some("OutOfMemoryError".to_owned()), Some("torch/nn.py:7".to_owned()));
        assert_eq!(seen(trace), (name.clone(), "CUDA out of memory".to_owned(), place.clone()));
        let said = format!("it broke\n{trace}");
        assert_eq!(seen(&said), (name.clone(), "it broke".to_owned(), place.clone()));
        let of_generator = format!("handler: it broke \ntraceback: {trace}");
        assert_eq!(seen(&of_generator), (name.clone(), "it broke".to_owned(), place.clone()));
        let without_message = format!("handler:  \ntraceback: {trace}\nTried to allocate 2 GiB");
        assert_eq!(seen(&without_message), (name, "CUDA out of memory".to_owned(), place));
        assert_eq!(seen("  plain\nmore"), (None, "plain".to_owned(), None));
        assert_eq!(seen(""), (None, String::new(), None));
        assert_eq!(seen("{\"error\": 1}"), (None, "{\"error\": 1}".to_owned(), None));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_parts(text in ".{0,200}", cut in 0..400_usize) {
            parts(&text);
            let whole = r#"{"error_type": "<class 'E'>", "error_message": "ä", "error_traceback": "Traceback (most recent call last)\n File \"a.py\", line 1"}"#;
            parts(&whole[..whole.floor_char_boundary(cut)]);
            let quoted = format!("{{\"error_message\": \"{text}");
            parts(&quoted);
        }
    }
}
