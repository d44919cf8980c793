//! The files in a folder, for development: a changed file is served without a build.

use std::path::{Component, Path, PathBuf};

use crate::{content_type, filled};

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
        let text = std::fs::read_to_string(self.0.join("index.html")).ok()?;
        Some(filled(&text, base, Self::HASH))
    }

    /// The content type and the bytes of a file below the folder; `None` if there is none.
    pub fn asset(&self, path: &str) -> Option<(&'static str, Vec<u8>)> {
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let bytes = if is_inside { std::fs::read(self.0.join(path)).ok()? } else { return None };
        Some((content_type::of(path), bytes))
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
        for outside in ["../Cargo.toml", "/etc/passwd", "none.js", "./../src/lib.rs"] {
            assert_eq!(folder.asset(outside), None, "{outside}");
        }
    }
}
