//! Which files a browser loads to show the overview for the first time.
//!
//! They are stored twice, in two formats: the second one saves an eighth of the bytes of that visit. Other files are loaded
//! one page at a time, and once.

use std::collections::BTreeSet;

use crate::imports::closure;

/// Where the page has the address of a file.
const ADDRESS: &str = "/console/a/{{hash}}/";

/// What scripts load that no address in the page and no import names: the first page, its last part, what draws its charts,
/// and the worker that holds the stream of events.
const LOADED_BY_SCRIPTS: [&str; 4] =
    ["pages/overview.js", "ui/just_now.js", "vendor/uplot.js", "events_worker.js"];

/// The paths of these files. `read` returns the text of a file, or nothing if it is no text.
pub(crate) fn files_of_first_visit(read: impl Fn(&str) -> String) -> BTreeSet<String> {
    let page = read("index.html");
    closure(named_in(&page).chain(LOADED_BY_SCRIPTS), &read)
}

/// The paths that the page names.
fn named_in(page: &str) -> impl Iterator<Item = &str> {
    page.split(ADDRESS).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_the_scripts_name_the_first_files() {
        let found = files_of_first_visit(|path| {
            let text = match path {
                "index.html" => {
                    "<link href=\"{{base}}/console/a/{{hash}}/icon.svg\"><script src=\"{{base}}/console/a/{{hash}}/main.js\">"
                }
                "main.js" => "import { a } from \"./a.js\";\n",
                _ => "",
            };
            text.to_owned()
        });
        let expected = ["a.js", "icon.svg", "main.js"].into_iter().chain(LOADED_BY_SCRIPTS);
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

    #[test]
    fn no_module_of_the_overview_is_found_late_and_none_is_loaded_in_vain() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
        let (page, start) = (read("index.html"), read("start.js"));
        let (_, list) = start.split_once("const OVERVIEW = [").unwrap();
        let list = list.split(']').next().unwrap().split('"').skip(1).step_by(2);
        let of_overview: BTreeSet<String> = list.map(|name| format!("{name}.js")).collect();
        let needed = closure(["main.js", "pages/overview.js"].into_iter(), &read);
        let is_named = |path: &&String| named_in(&page).any(|named| named == **path);
        let late: Vec<_> = needed.difference(&of_overview).filter(|path| !is_named(path)).collect();
        assert!(late.is_empty(), "name them in index.html, or in start.js: {late:?}");
        let in_vain: Vec<_> =
            of_overview.difference(&needed).chain(of_overview.iter().filter(is_named)).collect();
        assert!(in_vain.is_empty(), "{in_vain:?}");
    }
}
