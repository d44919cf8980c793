//! What errors of object storage mean, and their texts without secrets and without documents in XML.

use std::error::Error;

use longshore_blobs::BlobError;
use longshore_trust::TlsProblem;

/// Codes of answers about keys.
const CODES: [&str; 4] =
    ["InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "AccessDenied"];
/// Where a provider gives keys to its computers.
const METADATA: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];
/// Longest text of a cause, in characters.
const TEXT_MAX: usize = 400;

/// Why object storage did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// There is no such object, or no such bucket.
    #[error("not found: {0}")]
    NotFound(String),
    /// The credentials are wrong, or do not permit it.
    #[error("not permitted: {0}")]
    NotPermitted(String),
    /// No answer in time, or another failure that a later try may not have.
    #[error("{0}")]
    Failed(String),
}

impl ObjectError {
    /// The error for a call without an answer.
    pub(crate) fn no_answer(seconds: u64) -> Self {
        Self::Failed(format!("no answer within {seconds} s"))
    }

    pub(crate) fn of(error: &object_store::Error) -> Self {
        use object_store::Error as Cause;

        let text = text_of(error);
        match error {
            Cause::NotFound { .. } => Self::NotFound(text),
            Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. } => Self::NotPermitted(text),
            // Without keys, a computer's provider is asked for some.
            _ if METADATA.iter().any(|host| text.contains(host)) => Self::NotPermitted(format!(
                "there are no keys, and the provider of this computer gives none: {text}"
            )),
            // Google and Azure answer 400 to keys that are malformed.
            _ if CODES.iter().any(|code| text.contains(code)) => Self::NotPermitted(text),
            _ => Self::Failed(text),
        }
    }

    /// The same as an error of blobs. `what` names the object.
    pub(crate) fn about(self, what: &str) -> BlobError {
        BlobError::Io(format!("{what}: {self}"))
    }
}

/// The texts of an error and its causes, each once. An answer in XML becomes its code and its message.
fn text_of(error: &(dyn Error + 'static)) -> String {
    if let Some(problem) = TlsProblem::find(error) {
        return problem.about("the object storage");
    }
    let mut last = error;
    // Each text has those of its causes, except the ones of HTTP clients.
    let mut text = error.to_string();
    while let Some(cause) = last.source() {
        let inner = cause.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        last = cause;
    }
    shorten(&text)
}

fn shorten(text: &str) -> String {
    let text = match (element(text, "Code"), element(text, "Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => text.to_owned(),
    };
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_MAX).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of an element of a document in XML.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_xml_becomes_its_code_and_message() {
        let text = "Server returned error: 403\n<Error><Code>AccessDenied</Code><Message>No\n way</Message>\
                    <StringToSign>hidden</StringToSign></Error>";
        assert_eq!(shorten(text), "AccessDenied: No way");
        assert_eq!(shorten("plain\n text"), "plain text");
        assert_eq!(shorten(&"é".repeat(1_000)).chars().count(), TEXT_MAX);
        assert_eq!(shorten("<Code>open"), "<Code>open");
    }
}
