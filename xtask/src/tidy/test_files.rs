//! Which files are compiled for tests only.

use std::path::{Path, PathBuf};

use super::source::Source;

/// The files that are compiled for tests only.
#[derive(Default)]
pub struct TestFiles {
    /// The modules that are declared so, as paths without their extension.
    modules: Vec<PathBuf>,
}

impl TestFiles {
    /// Adds the test modules that a file declares.
    pub fn add(&mut self, path: &Path, source: &Source) {
        let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| path.ends_with(name));
        let folder =
            if is_root { path.parent().unwrap_or(path).to_path_buf() } else { path.with_extension("") };
        self.modules.extend(source.test_modules.iter().map(|module| folder.join(module)));
    }

    /// Whether the file is one of them, or part of one, or an integration test.
    pub fn contains(&self, path: &Path) -> bool {
        let module = path.with_extension("");
        path.components().any(|part| part.as_os_str() == "tests")
            || self.modules.iter().any(|test| module.starts_with(test))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_is_its_file_and_its_folder() {
        let source = Source::parse("#[cfg(test)]\nmod dialogue;\nmod queue;\n");
        let mut tests = TestFiles::default();
        tests.add(Path::new("crates/queue/src/lib.rs"), &source);
        tests.add(Path::new("crates/engine/src/hooks.rs"), &source);
        for path in [
            "crates/queue/src/dialogue.rs",
            "crates/queue/src/dialogue/cancel.rs",
            "crates/engine/src/hooks/dialogue.rs",
            "crates/launch/tests/process.rs",
        ] {
            assert!(tests.contains(Path::new(path)), "{path}");
        }
        for path in
            ["crates/queue/src/queue.rs", "crates/queue/src/dialogues.rs", "crates/engine/src/hooks.rs"]
        {
            assert!(!tests.contains(Path::new(path)), "{path}");
        }
    }
}
