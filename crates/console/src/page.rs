//! The text of the one page. It has the style of its first frame and the script that runs before it, so that a browser shows
//! the frame without a second response.

use crate::comments::without_comments;

/// The file of the page. It names what stands in it.
pub(crate) const PAGE: &str = "index.html";
/// The styles of the first frame, in their order. The page has their text, and no browser asks for them.
pub(crate) const STYLES: [&str; 2] = ["tokens.css", "styles/first.css"];
/// The script that runs before the first frame. The page has its text, too.
pub(crate) const START: &str = "start.js";

/// Where the page has the base path, which starts with a slash and has none at its end, or is empty.
const BASE: &str = "{{base}}";
/// Where the page has the hash of the assets.
const HASH: &str = "{{hash}}";

/// How the styles name the folder of the fonts, and how the page does: the address of a page is in no relation to theirs.
const FONTS: (&str, &str) = ("url(\"fonts/", "url(\"{{base}}/console/a/{{hash}}/fonts/");

/// The page, with its base path and the hash left to fill in. `read` returns the text of a file, or nothing if it is no text.
pub(crate) fn page(read: impl Fn(&str) -> String) -> String {
    let styles: String = STYLES.iter().map(|path| code(&read(path))).collect();
    let start = code(&read(START));
    read(PAGE)
        .replace("{{styles}}", styles.replace(FONTS.0, FONTS.1).trim())
        .replace("{{start}}", start.trim())
}

/// The page with its two variable parts.
pub(crate) fn filled(page: &str, base: &str, hash: &str) -> String {
    page.replace(BASE, base).replace(HASH, hash)
}

/// The lines of a script or a style that are no comments.
fn code(text: &str) -> String {
    let lines = without_comments(text);
    lines.lines().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_styles_and_the_script() {
        let page = page(|path| {
            let text = match path {
                PAGE => "<style>{{styles}}</style>\n<script>{{start}}</script>{{base}}",
                "tokens.css" => "/* A. */\n@font-face { src: url(\"fonts/a.woff2\"); }\n",
                "styles/first.css" => "/* B.\n   C. */\n.a { b: c; }\n",
                "start.js" => "// D.\n(() => {\n  // E.\n\n  f(`${base}/g`);\n})();\n",
                _ => "",
            };
            text.to_owned()
        });
        let fonts = "@font-face { src: url(\"{{base}}/console/a/{{hash}}/fonts/a.woff2\"); }";
        let expected = format!(
            "<style>{fonts}\n.a {{ b: c; }}</style>\n<script>(() => {{\nf(`${{base}}/g`);\n}})();</script>{{{{base}}}}"
        );
        assert_eq!(page, expected);
    }

    #[test]
    fn no_part_ends_its_element() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        for path in STYLES.into_iter().chain([START]) {
            let text = std::fs::read_to_string(folder.join(path)).unwrap();
            assert!(!text.contains("</") && !text.contains("<!--") && !text.contains("{{"), "{path}");
        }
    }
}
