//! A folder of links that shows the entries of another folder.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes `folder` show the entries that `shown` has at this moment, except those whose name `hides`.
///
/// Reading, importing and changing existing entries works as in the original. New entries exist in `folder` alone.
pub(crate) fn mirror(shown: &Path, folder: &Path, hides: impl Fn(&str) -> bool) -> io::Result<()> {
    let shown = fs::canonicalize(shown)?;
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(&shown)? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(&hides) {
            symlink(shown.join(&name), folder.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_shows_everything_but_what_is_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let (shown, folder) = (dir.path().join("shown"), dir.path().join("folder"));
        fs::create_dir_all(shown.join("models")).unwrap();
        fs::write(shown.join("models/a.bin"), "weights").unwrap();
        fs::write(shown.join("handler.py"), "print()").unwrap();
        fs::write(shown.join("secret"), "x").unwrap();
        mirror(&shown, &folder, |name| name == "secret").unwrap();
        assert_eq!(fs::read_to_string(folder.join("models/a.bin")).unwrap(), "weights");
        assert_eq!(fs::read_to_string(folder.join("handler.py")).unwrap(), "print()");
        assert!(!folder.join("secret").exists());
        fs::write(folder.join("new"), "").unwrap();
        assert!(!shown.join("new").exists());
    }
}
