//! Which files a browser loads to show the overview for the first time.
//!
//! They are stored twice, in two formats: the second one saves an eighth of the bytes of that visit. Other files are loaded
//! one page at a time, and once.

use std::collections::BTreeSet;

/// Where the page has the address of a file.
const ADDRESS: &str = "/console/a/{hash}/";

/// What scripts load that no address in the page and no import names: the first page, its last part, what draws its charts,
/// and the worker that holds the stream of events.
const LOADED_BY_SCRIPTS: [&str; 4] =
    ["pages/overview.js", "ui/just_now.js", "vendor/uplot.js", "events_worker.js"];

/// The paths of these files. `read` returns the text of a file, or nothing if it is no text.
pub(crate) fn files_of_first_visit(read: impl Fn(&str) -> String) -> BTreeSet<String> {
    let page = read("index.html");
    let named = page.split(ADDRESS).skip(1).filter_map(|rest| rest.split('"').next());
    let mut unread: Vec<String> = named.chain(LOADED_BY_SCRIPTS).map(str::to_owned).collect();
    let mut found = BTreeSet::new();
    while let Some(path) = unread.pop() {
        let is_module = path.rsplit('.').next() == Some("js");
        if is_module && !found.contains(&path) {
            unread.extend(imports(&read(&path)).map(|import| beside(&path, import)));
        }
        found.insert(path);
    }
    found
}

/// The relative addresses that a module imports or exports from. Those of types are in comments, and are called as functions.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let is_import =
            line.starts_with("import ") || line.starts_with("export ") || line.starts_with("} from ");
        let address = line.split_once("from \"").or_else(|| line.split_once("import \""));
        let (_, rest) = address.filter(|_| is_import)?;
        rest.split('"').next().filter(|address| address.starts_with('.'))
    })
}

/// The path of a file that another one names relative to itself.
fn beside(path: &str, address: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in address.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_followed_from_the_page_on() {
        let found = files_of_first_visit(|path| {
            let text = match path {
                "index.html" => {
                    "<link href=\"{base}/console/a/{hash}/icon.svg\"><script src=\"{base}/console/a/{hash}/main.js\">"
                }
                "main.js" => {
                    "import { a } from \"./ui/a.js\";\n/** @type {import(\"./types.js\").A} */\nimport \"./b.js\";\n"
                }
                "ui/a.js" => "export {\n  c,\n} from \"../c.js\";\nimport { a } from \"./a.js\";\n",
                _ => "",
            };
            text.to_owned()
        });
        let expected =
            ["b.js", "c.js", "icon.svg", "main.js", "ui/a.js"].into_iter().chain(LOADED_BY_SCRIPTS);
        assert_eq!(found, expected.map(str::to_owned).collect());
    }

    #[test]
    fn what_the_first_page_shows_is_found_and_later_pages_are_not() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let found =
            files_of_first_visit(|path| std::fs::read_to_string(folder.join(path)).unwrap_or_default());
        for path in &found {
            assert!(folder.join(path).is_file(), "{path}");
        }
        for path in
            ["console.css", "ui/chart.js", "ui/plot.js", "vendor/preact.js", "dom.js", "events_worker.js"]
        {
            assert!(found.contains(path), "{path}");
        }
        assert!(!found.contains("pages/settings.js") && !found.contains("ui/palette.js"), "{found:?}");
    }
}
