//! Names that the field has a term for: each thing is named by the word of the glossary in `ARCHITECTURE.md`.

use std::path::Path;

use super::super::Finding;
use super::super::source::Source;

/// A name that may not be in the code, and the term that takes its place.
const NAMES: [(&str, &str); 46] = [
    ("Ask", "Request"),
    ("AskError", "EndpointError"),
    ("Answering", "Call"),
    ("Carried", "CarriedPayload"),
    ("Conduct", "what the type stands for"),
    ("Crew", "Fleet"),
    ("Desk", "PoolState"),
    ("Dialer", "Connector"),
    ("Ears", "a waker"),
    ("Fate", "DesiredState"),
    ("Gossip", "what the type stands for"),
    ("Ground", "Services"),
    ("Habits", "what the type stands for"),
    ("Happening", "FollowEvent"),
    ("HookOwner", "WebhookSource"),
    ("HookRow", "WebhookRow"),
    ("Lanes", "ReadyQueue, or CallLimiter"),
    ("LiveKey", "TrackedKey"),
    ("Look", "Query"),
    ("OnItsWay", "InFlightBatch"),
    ("OweHook", "PutWebhook"),
    ("Pen", "ActiveSegment"),
    ("Rack", "GpuInventory"),
    ("Resting", "CircuitOpen"),
    ("Roster", "FleetState"),
    ("Standing", "Permission"),
    ("ThisMachine", "TokioRuntime"),
    ("Verdict", "Report, or the outcome's own name"),
    ("bells", "notifies"),
    ("bury_silent", "end_lease"),
    ("chores", "webhooks, metering"),
    ("forgive_silence", "renew_leases"),
    ("greet", "touch_or_register"),
    ("hand_in", "submit"),
    ("has_chores", "what is to be done"),
    ("owed_end", "pending_end"),
    ("put_back", "requeue"),
    ("put_beside", "put_blob"),
    ("replace_clinging", "replace_stuck"),
    ("still_there", "touch_known"),
    ("stow", "put_blob"),
    ("strangers", "unregistered"),
    ("tell_fleet", "notify_fleet"),
    ("turn_away", "reject"),
    ("unpop", "push_front"),
    ("webhook_owed", "webhook_pending"),
];

/// Finds these names in the code of a Rust file, as whole identifiers.
pub fn find(path: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(source.code.lines()) {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if let Some((name, term)) = NAMES.iter().find(|(name, _)| *name == word) {
                let text = format!("`{name}` is a metaphor: use the term of the glossary ({term})");
                findings.push(Finding::new(path, number, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let findings = find(Path::new("src/a.rs"), &Source::parse(text));
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_metaphor_is_found_as_a_whole_identifier_of_the_code() {
        for (name, _) in NAMES {
            assert_eq!(lines(&format!("let a = 1;\nlet b = {name}();\n")), [2], "{name}");
            assert_eq!(
                lines(&format!("// {name}\nlet a = \"{name}\";\nlet {name}x = 1;\n")),
                [] as [usize; 0],
                "{name}"
            );
        }
    }
}
