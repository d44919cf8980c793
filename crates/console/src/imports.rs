//! Which modules a module needs: what it imports, what those import, and so on.
//!
//! A browser finds an import when the module that has it is there. A page whose imports are four deep would wait four times for
//! the network. [`table`] tells the pages all of them together, so that they are asked for together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The path of the module with the table. It is made from the other files, and no file of its own.
pub(crate) const TABLE: &str = "imports.js";

/// The module that every page loads first. What it imports needs no place in the table.
const FIRST: &str = "main.js";

/// The folder of the pages. Each one is loaded when it is visited.
const PAGES: &str = "pages/";

/// How scripts name a module that is loaded when it is shown first, relative to the folder of all files.
const LATER: [&str; 2] = ["load(\"./", "address=\"./"];

/// The text of the module with the table: the default export has, for each module that is loaded later, the paths of what it
/// needs besides itself and the modules of every page.
///
/// `paths` are those of all files. `read` returns the text of a file, or nothing if it is no text.
pub(crate) fn table(paths: &[String], read: impl Fn(&str) -> String) -> String {
    let every = closure([FIRST].into_iter(), &read);
    let mut table = String::from("export default {\n");
    for (path, needed) in loaded_later(paths, &read) {
        let needed: Vec<_> = needed.difference(&every).filter(|one| **one != path).collect();
        // Writes to a string do not fail. A list of paths is JSON in this form.
        let _ = writeln!(table, "{path:?}: {needed:?},");
    }
    table.push_str("};\n");
    table
}

/// The modules that are loaded when they are shown first, each with itself and all that it needs.
fn loaded_later(paths: &[String], read: &impl Fn(&str) -> String) -> BTreeMap<String, BTreeSet<String>> {
    let is_own = |path: &&String| is_module(path) && !path.starts_with("vendor/");
    let mut found: BTreeSet<String> = paths.iter().filter(|path| path.starts_with(PAGES)).cloned().collect();
    for path in paths.iter().filter(is_own) {
        let text = read(path);
        for name in LATER {
            let named = text.split(name).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(named.map(str::to_owned));
        }
    }
    found
        .into_iter()
        .map(|path| {
            let needed = closure([path.as_str()].into_iter(), read);
            (path, needed)
        })
        .collect()
}

/// These paths, and those that the modules among them import.
pub(crate) fn closure<'a>(
    paths: impl Iterator<Item = &'a str>,
    read: &impl Fn(&str) -> String,
) -> BTreeSet<String> {
    let mut unread: Vec<String> = paths.map(str::to_owned).collect();
    let mut found = BTreeSet::new();
    while let Some(path) = unread.pop() {
        if is_module(&path) && !found.contains(&path) {
            unread.extend(imports(&read(&path)).map(|import| beside(&path, import)));
        }
        found.insert(path);
    }
    found
}

fn is_module(path: &str) -> bool {
    path.rsplit('.').next() == Some("js")
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
    fn imports_are_followed_and_types_are_not() {
        let found = closure(["main.js", "icon.svg"].into_iter(), &|path: &str| {
            let text = match path {
                "main.js" => {
                    "import { a } from \"./ui/a.js\";\n/** @type {import(\"./types.js\").A} */\nimport \"./b.js\";\n"
                }
                "ui/a.js" => "export {\n  c,\n} from \"../c.js\";\nimport { a } from \"./a.js\";\n",
                _ => "",
            };
            text.to_owned()
        });
        let expected = ["b.js", "c.js", "icon.svg", "main.js", "ui/a.js"];
        assert_eq!(found, expected.map(str::to_owned).into());
    }

    #[test]
    fn the_table_has_pages_and_what_is_loaded_later_without_what_every_page_has() {
        let files = ["main.js", "dom.js", "pages/a.js", "ui/b.js", "ui/c.js", "ui/d.js", "vendor/v.js"];
        let text = table(&files.map(str::to_owned), |path| {
            let text = match path {
                "main.js" => "import { a } from \"./dom.js\";\n",
                "pages/a.js" => "import { b } from \"../ui/b.js\";\nimport { a } from \"../dom.js\";\n",
                "ui/b.js" => "import { d } from \"./d.js\";\nhtml`<${Later} address=\"./ui/c.js\" />`\n",
                "ui/c.js" => "import { d } from \"./d.js\";\nload(\"./ui/d.js\");\n",
                "vendor/v.js" => "load(\"./none.js\")",
                _ => "",
            };
            text.to_owned()
        });
        let expected = "export default {\n\"pages/a.js\": [\"ui/b.js\", \"ui/d.js\"],\n\"ui/c.js\": [\"ui/d.js\"],\n\"ui/d.js\": [],\n};\n";
        assert_eq!(text, expected);
    }
}
