//! Text as a list of words, so that a phrase is found across line breaks and comment markers.

/// A word of a text.
pub struct Word {
    /// In lower case.
    pub text: String,
    /// Counted from 1.
    pub line: usize,
    /// Only white space and comment markers are between this word and the previous one.
    pub is_joined: bool,
    /// First word of a sentence or paragraph.
    pub starts_sentence: bool,
}

/// Characters that mark a comment, a quotation or a list at the beginning of a line.
const LINE_MARKERS: [char; 5] = ['/', '!', '#', '>', '*'];

/// Splits a text into words. A word consists of letters, digits, `_` and apostrophes.
pub fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut after_sentence = true;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim_start().trim_start_matches(LINE_MARKERS);
        if content.trim().is_empty() {
            after_sentence = true;
        }
        split_line(line, content, &mut after_sentence, &mut words);
    }
    words
}

fn split_line(line: usize, content: &str, after_sentence: &mut bool, words: &mut Vec<Word>) {
    let mut is_joined = true;
    let mut rest = content;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if end > 0 {
            let starts_sentence = std::mem::take(after_sentence);
            words.push(Word {
                text: rest[..end].to_lowercase(),
                line,
                is_joined: is_joined && !starts_sentence,
                starts_sentence,
            });
            is_joined = true;
            rest = &rest[end..];
        } else {
            is_joined &= first.is_whitespace();
            *after_sentence |= matches!(first, '.' | '!' | '?' | ';' | ':' | '|' | '"');
            rest = &rest[first.len_utf8()..];
        }
    }
}

/// Blanks the code out of a Rust file and keeps comments and literals. `code` is the file with all but its code blanked
/// out, as many bytes as `text`.
pub fn without_code(text: &str, code: &str) -> String {
    let code = code.as_bytes();
    text.char_indices()
        .map(|(at, c)| if c == '\n' || code[at].is_ascii_whitespace() { c } else { ' ' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_markers_do_not_separate_words_but_punctuation_does() {
        let words = split("/// so\n    /// many, many. Word");
        let found: Vec<_> = words
            .iter()
            .map(|word| (word.text.as_str(), word.line, word.is_joined, word.starts_sentence))
            .collect();
        let expected = [
            ("so", 1, false, true),
            ("many", 2, true, false),
            ("many", 2, false, false),
            ("word", 2, false, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_empty_comment_line_ends_a_sentence() {
        let words = split("// one\n//\n// two");
        assert!(words[1].starts_sentence);
    }
}
