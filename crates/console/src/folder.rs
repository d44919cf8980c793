//! The files in a folder, for development: a changed file is served without a build.

use std::path::{Component, Path, PathBuf};

use crate::page::{PAGE, filled, page};
use crate::{content_type, imports};

/// A folder with the files of `assets`.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The part of the assets' addresses that is the tree's hash elsewhere.
    pub const HASH: &str = "folder";

    /// The page with this base path; `None` if its file cannot be read.
    pub fn shell(&self, base: &str) -> Option<String> {
        std::fs::metadata(self.0.join(PAGE)).ok()?;
        let text = page(|path| std::fs::read_to_string(self.0.join(path)).unwrap_or_default());
        Some(filled(&text, base, Self::HASH))
    }

    /// The content type and the bytes of a file below the folder; `None` if there is none.
    pub fn asset(&self, path: &str) -> Option<(&'static str, Vec<u8>)> {
        if path == imports::TABLE {
            return Some((content_type::of(path), self.imports().into_bytes()));
        }
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let bytes = if is_inside { std::fs::read(self.0.join(path)).ok()? } else { return None };
        Some((content_type::of(path), bytes))
    }

    /// The table of what modules need, of the files as they are now.
    fn imports(&self) -> String {
        let (mut folders, mut paths) = (vec![self.0.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(&self.0) {
                    paths.push(name.to_string_lossy().into_owned());
                }
            }
        }
        imports::table(&paths, |path| std::fs::read_to_string(self.0.join(path)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_what_is_inside_and_nothing_else() {
        let folder = Folder::at(Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"));
        let (content_type, bytes) = folder.asset("main.js").unwrap();
        assert!(content_type.starts_with("text/javascript") && !bytes.is_empty());
        assert!(folder.shell("/x").unwrap().contains("/x/console/a/folder/main.js"));
        let (content_type, made) = folder.asset("imports.js").unwrap();
        let embedded = crate::asset("imports.js").unwrap();
        assert!(content_type.starts_with("text/javascript") && made == embedded.plain());
        for outside in ["../Cargo.toml", "/etc/passwd", "none.js", "./../src/lib.rs"] {
            assert_eq!(folder.asset(outside), None, "{outside}");
        }
    }
}
