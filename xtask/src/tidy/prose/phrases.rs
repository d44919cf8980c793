//! Phrases that leave the reader guessing: which component, which unit, which bound.

use std::path::Path;

use super::super::Finding;
use super::words::{Word, split};

/// Words in a row, `|` between alternatives, and what to write instead. `#` stands for a number.
struct Phrase {
    words: &'static str,
    advice: &'static str,
    /// The phrase is flagged only if this holds.
    only: Only,
}

#[derive(Clone, Copy)]
enum Only {
    Always,
    /// A negation is earlier in the sentence.
    AfterNegation,
    /// The word before is no form of "to be": "is used to sign" tells no history.
    NotAfterToBe,
    /// The file describes the present: not an ADR, not the change log.
    OutsideHistory,
    /// The file belongs to the queue or the engine.
    InQueueAndEngine,
}

use Only::{AfterNegation, Always, InQueueAndEngine, NotAfterToBe, OutsideHistory};

const NAME_THE_COMPONENT: &str = "name the component or the party";
const GLOSSARY: &str = "use the term of the field, no figure of speech";
const HISTORY: &str = "state what is; history belongs in the ADR";

const PHRASES: &[Phrase] = &[
    phrase("nobody|somebody|everybody|anybody|whatever|whoever|whomever", NAME_THE_COMPONENT, Always),
    phrase("who is|has|wants|waits|gets|asks|needs", NAME_THE_COMPONENT, Always),
    phrase("so many|much|long|often", "the name of the number and its unit", Always),
    phrase("see the module", "a sentence with shape and unit", Always),
    phrase("at once", "immediately, or concurrently", Always),
    phrase("any|no more", "what happens instead", AfterNegation),
    phrase("used to", HISTORY, NotAfterToBe),
    phrase("went from", HISTORY, OutsideHistory),
    phrase("it was #", HISTORY, OutsideHistory),
    phrase("where it took", HISTORY, OutsideHistory),
    phrase("make|makes no sense", "corrupt, or invalid", Always),
    phrase("in peace", GLOSSARY, Always),
    phrase("hang|hangs|hung|hanging up", "disconnects, or closes", Always),
    phrase("cling|clings|buried|ears|door|pen|desk|bell|haunt|haunts", GLOSSARY, Always),
    phrase("word of", GLOSSARY, Always),
    phrase("hear|hears|tell|tells of", GLOSSARY, Always),
    phrase("owe|owes|owed|debt|debts", "pending, or due", Always),
    phrase("the machine", "the queue, or the computer", InQueueAndEngine),
    phrase("of ours", "managed", Always),
    phrase("from outside|elsewhere", "external", Always),
    phrase("under way", "in flight", Always),
    phrase("on its way", "in flight", Always),
    phrase("the former|latter", "repeat the noun", Always),
    phrase("good enough", "the bound", Always),
    phrase("mostly", "the bound, or the exception", Always),
    phrase("some time", "the bound", Always),
    phrase("for a while", "the bound", Always),
];

const fn phrase(words: &'static str, advice: &'static str, only: Only) -> Phrase {
    Phrase { words, advice, only }
}

/// Finds phrases in a text, in the order of their lines.
pub fn find(path: &Path, text: &str) -> Vec<Finding> {
    let words = split(text);
    let mut findings = Vec::new();
    for at in 0..words.len() {
        let flagged = PHRASES.iter().find_map(|phrase| Some((phrase, matched(phrase, &words[at..])?)));
        let Some((phrase, found)) = flagged else { continue };
        if applies(phrase.only, path, &words[..at], &words[at]) {
            let text = format!("\"{found}\": {}", phrase.advice);
            findings.push(Finding::new(path, words[at].line, text));
        }
    }
    findings
}

/// The words that match the phrase at the beginning of `words`.
fn matched(phrase: &Phrase, words: &[Word]) -> Option<String> {
    let mut found = Vec::new();
    for (index, wanted) in phrase.words.split(' ').enumerate() {
        let word = words.get(index)?;
        let is_number = word.text.starts_with(|c: char| c.is_ascii_digit());
        let matches = wanted.split('|').any(|option| option == word.text || option == "#" && is_number);
        if !matches || index > 0 && !word.is_joined {
            return None;
        }
        found.push(word.text.as_str());
    }
    Some(found.join(" "))
}

fn applies(only: Only, path: &Path, before: &[Word], first: &Word) -> bool {
    match only {
        Always => true,
        AfterNegation => !first.starts_sentence && sentence(before).any(|word| is_negation(&word.text)),
        NotAfterToBe => {
            let forms = ["is", "are", "was", "were", "be", "been", "being"];
            let is_passive = before.last().is_some_and(|word| forms.contains(&word.text.as_str()));
            !is_history(path) && !is_passive
        }
        OutsideHistory => !is_history(path),
        InQueueAndEngine => path.starts_with("crates/queue") || path.starts_with("crates/engine"),
    }
}

fn is_history(path: &Path) -> bool {
    path.starts_with("docs/adr") || path == Path::new("CHANGELOG.md")
}

/// The words of the last, unfinished sentence, backwards. Code between two comments can hide a sentence's end, so it
/// reaches back 20 words at most.
fn sentence(before: &[Word]) -> impl Iterator<Item = &Word> {
    let mut is_over = false;
    before
        .iter()
        .rev()
        .take(20)
        .take_while(move |word| !std::mem::replace(&mut is_over, word.starts_sentence))
}

fn is_negation(word: &str) -> bool {
    matches!(word, "not" | "no" | "nothing" | "never" | "none" | "cannot" | "nor") || word.ends_with("n't")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        find(Path::new(path), text).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_phrase_is_found_across_lines_and_the_advice_is_given() {
        let findings = found("a.rs", "/// Counts so\n/// many. At once, so  much.");
        let expected = [
            "a.rs:1: \"so many\": the name of the number and its unit",
            "a.rs:2: \"at once\": immediately, or concurrently",
            "a.rs:2: \"so much\": the name of the number and its unit",
        ];
        assert_eq!(findings, expected);
    }

    #[test]
    fn similar_words_are_not_flagged() {
        let text =
            "Who may read, who can write, who changed what. So, many jobs. A penalty, a doorway, `at_once`.";
        assert_eq!(found("a.md", text), [] as [&str; 0]);
    }

    #[test]
    fn more_is_flagged_only_after_a_negation_in_its_sentence() {
        assert_eq!(
            found("a.md", "It does not run any more. No more than 3 run. Any more than 3 fail.").len(),
            1
        );
        assert_eq!(found("a.md", "Not now. It takes any more jobs.").len(), 0);
        assert_eq!(found("a.md", "Nothing is read\nno more").len(), 1);
    }

    #[test]
    fn history_is_flagged_outside_of_the_files_that_tell_it() {
        let text = "It used to be 7. It was 3 there.";
        assert_eq!(found("docs/manual/a.md", text).len(), 2);
        assert_eq!(found("docs/adr/0001.md", text).len(), 0);
        assert_eq!(found("a.md", "A key is used to sign.").len(), 0);
    }

    #[test]
    fn the_machine_is_a_computer_outside_of_queue_and_engine() {
        assert_eq!(found("crates/queue/src/a.rs", "// The machine decides.").len(), 1);
        assert_eq!(found("crates/launch/src/a.rs", "// The machine has 8 GPUs.").len(), 0);
    }
}
