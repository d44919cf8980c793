//! Scripts and styles without the lines that are comments, without types beside code, and without the spaces before lines: a
//! third of their bytes, which browsers do not need.
//!
//! What is left of the file stands in the same lines as in the source, so that a fault names the line to look at. Any other
//! comment beside code stays.

/// The text with empty lines in place of comments. In a template literal of several lines, nothing is a comment.
pub(crate) fn without_comments(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_in_comment = false;
    let mut is_in_template = false;
    for line in text.split_inclusive('\n') {
        let code = line.trim();
        if is_in_comment {
            if let Some((_, rest)) = code.split_once("*/") {
                is_in_comment = false;
                shown.push_str(rest);
            }
            shown.push('\n');
        } else if !is_in_template && is_comment(code) {
            is_in_comment = code.starts_with("/*") && !code.contains("*/");
            shown.push('\n');
        } else {
            push_without_types(if is_in_template { line } else { line.trim_start_matches(' ') }, &mut shown);
            is_in_template ^= ticks(code) % 2 == 1;
        }
    }
    shown
}

/// Adds a line without the comments in it that begin with a tag, as `/** @type {string} */` does, and the space after them. In a
/// template literal they stand in an expression: no text of the console has this form.
fn push_without_types(line: &str, shown: &mut String) {
    let mut rest = line;
    while let Some((before, tagged)) = rest.split_once("/** @")
        && let Some((_, after)) = tagged.split_once("*/")
    {
        shown.push_str(before);
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    shown.push_str(rest);
}

/// Whether a line is a comment, or begins one, and has nothing else.
fn is_comment(code: &str) -> bool {
    let is_block = code.starts_with("/*") && code.split_once("*/").is_none_or(|(_, rest)| rest.is_empty());
    code.starts_with("//") || is_block
}

/// The backticks of a line that begin or end a template literal.
fn ticks(code: &str) -> usize {
    let mut is_escaped = false;
    let mut count = 0;
    for byte in code.bytes() {
        count += usize::from(byte == b'`' && !is_escaped);
        is_escaped = byte == b'\\' && !is_escaped;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_empty_lines() {
        let text =
            "// A.\n/** b `c` */\nlet x = 1; // kept\n  /**\n   * d\n   */\n  f(/** @type {any} */ (x));\n";
        assert_eq!(without_comments(text), "\n\nlet x = 1; // kept\n\n\n\nf((x));\n");
        assert_eq!(without_comments("/* a\n b */\ndiv { color: red; }"), "\n\ndiv { color: red; }");
        assert_eq!(without_comments("/** @type {A} */ (x).y();\n"), "(x).y();\n");
        assert_eq!(
            without_comments(
                "/** @type {{a: number}} */ (x).y(/** @param {A} b */ (b) => `${/** @type {any} */ (b)}`);"
            ),
            "(x).y((b) => `${(b)}`);"
        );
        assert_eq!(without_comments("f(/* kept */ a, /** kept */ b);"), "f(/* kept */ a, /** kept */ b);");
        assert_eq!(without_comments("/** a\n * b */ let x;\nlet y;\n"), "\n let x;\nlet y;\n");
    }

    #[test]
    fn a_template_has_no_comments() {
        let text = "const a = `\n// shown\n/* shown */\\`\n`;\n// not shown\n";
        assert_eq!(without_comments(text), "const a = `\n// shown\n/* shown */\\`\n`;\n\n");
    }
}
