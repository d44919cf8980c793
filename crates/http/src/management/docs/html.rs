//! Conversion of text to HTML.

/// Text with the special characters of HTML escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Text as HTML, with text between backticks as `<code>`.
pub(super) fn prose(text: &str) -> String {
    let part = |(place, part): (usize, &str)| match place % 2 {
        0 => escaped(part),
        _ => ["<code>", &escaped(part), "</code>"].concat(),
    };
    text.split('`').enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_becomes_markup() {
        assert_eq!(escaped(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(prose("send `<key>` & wait"), "send <code>&lt;key&gt;</code> &amp; wait");
    }
}
