//! The files of other projects that the console contains, compared with the packages that they come from.
//!
//! `VENDOR.md` has the list. Each file is one file of an npm package with the edits that a browser without a build step
//! needs: names of packages in imports become relative addresses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test::succeed;
use crate::workspace;

/// The folder of the console's files, relative to the workspace.
const ASSETS: &str = "crates/console/assets";
/// The list of files, relative to [`ASSETS`].
const LIST: &str = "vendor/VENDOR.md";

/// What is replaced in every script.
const IMPORTS: [(&str, &str); 3] = [
    ("from\"preact/hooks\"", "from\"./hooks.js\""),
    ("from\"@preact/signals-core\"", "from\"./signals-core.js\""),
    ("from\"preact\"", "from\"./preact.js\""),
];

/// A row of the list.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// The path of our file, relative to [`ASSETS`].
    file: String,
    /// Name and version of the npm package, as `name@1.2.3`.
    package: String,
    /// The path of its file in the package.
    source: String,
    /// The SHA-256 of our file, in hexadecimal.
    hash: String,
}

/// Compares the files with their packages, or writes them if `is_check` is not set.
///
/// # Errors
///
/// A file that differs from its package or from the hash in the list, or a package that cannot be downloaded.
pub fn run(is_check: bool) -> Result<(), String> {
    let assets = workspace::root().join(ASSETS);
    let list = read(&assets.join(LIST))?;
    let rows = rows(&String::from_utf8_lossy(&list));
    if rows.is_empty() {
        return Err(format!("{LIST} lists no file"));
    }
    let packages = Packages::new()?;
    let mut findings = Vec::new();
    for row in &rows {
        let wanted = edited(&row.source, read(&packages.file(row)?)?);
        let path = assets.join(&row.file);
        if is_check {
            if fs::read(&path).ok().as_ref() != Some(&wanted) {
                findings.push(format!("{} is not {} of {}", row.file, row.source, row.package));
            }
        } else {
            fs::write(&path, &wanted).map_err(|error| format!("cannot write {}: {error}", row.file))?;
        }
        let hash = sha256(&path)?;
        if hash != row.hash {
            findings.push(format!("{}: the SHA-256 is {hash}, the list says {}", row.file, row.hash));
        }
    }
    println!("vendor: {} files, {} findings", rows.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// The rows of the table in the list: file, package, source, SHA-256, licence.
fn rows(list: &str) -> Vec<Row> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>();
    let row = |line: &str| match cells(line).as_slice() {
        [_, file, package, source, hash, ..] if package.contains('@') => Some(Row {
            file: file.clone(),
            package: package.clone(),
            source: source.clone(),
            hash: hash.clone(),
        }),
        _ => None,
    };
    list.lines().filter_map(row).collect()
}

/// The bytes of a package's file with our edits: imports, no address of a source map, and an export for uPlot.
fn edited(source: &str, bytes: Vec<u8>) -> Vec<u8> {
    let is_script = [".mjs", ".js"].iter().any(|ending| source.ends_with(ending));
    let Ok(mut text) = String::from_utf8(bytes.clone()) else { return bytes };
    if !is_script {
        return bytes;
    }
    for (from, to) in IMPORTS {
        text = text.replace(from, to);
    }
    if let Some(at) = text.find("//# sourceMappingURL=") {
        text.truncate(at);
    }
    let mut text = text.trim_end().to_owned();
    text.push('\n');
    if source.contains("uPlot") {
        text.push_str("export default uPlot;\n");
    }
    text.into_bytes()
}

/// The npm packages, each downloaded and unpacked once into a temporary folder.
struct Packages {
    folder: PathBuf,
}

impl Packages {
    fn new() -> Result<Self, String> {
        let folder = workspace::root().join("target/vendor");
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    /// The path of a row's file in its unpacked package.
    fn file(&self, row: &Row) -> Result<PathBuf, String> {
        let unpacked = self.folder.join(row.package.replace(['/', '@'], "_"));
        if !unpacked.exists() {
            let packed = unpacked.with_extension("download");
            let _ = fs::remove_dir_all(&packed);
            fs::create_dir_all(&packed)
                .map_err(|error| format!("cannot make {}: {error}", packed.display()))?;
            let mut pack = Command::new("npm");
            succeed(pack.args(["pack", "--silent", "--pack-destination"]).arg(&packed).arg(&row.package))?;
            let archive = only_file(&packed)?;
            succeed(Command::new("tar").args(["-xzf"]).arg(archive).arg("-C").arg(&packed))?;
            fs::rename(&packed, &unpacked)
                .map_err(|error| format!("cannot rename {}: {error}", packed.display()))?;
        }
        Ok(unpacked.join("package").join(&row.source))
    }
}

fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let mut entries =
        fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let entry = entries.next().ok_or("npm pack wrote no file")?;
    Ok(entry.map_err(|error| error.to_string())?.path())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn sha256(path: &Path) -> Result<String, String> {
    let line = workspace::output(Command::new("sha256sum").arg(path))?;
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_table_are_read_and_its_head_is_not() {
        let list = "| File | Package | Source | SHA-256 | Licence |\n|---|---|---|---|---|\n\
                    | `vendor/a.js` | `a@1.2.3` | `dist/a.mjs` | `00ff` | MIT |\n";
        let row = |text: &str| text.to_owned();
        let expected = Row {
            file: row("vendor/a.js"),
            package: row("a@1.2.3"),
            source: row("dist/a.mjs"),
            hash: row("00ff"),
        };
        assert_eq!(rows(list), [expected]);
    }

    #[test]
    fn imports_are_made_relative_and_other_files_stay() {
        let script = b"import{h}from\"preact\";x()\n//# sourceMappingURL=a.map\n".to_vec();
        assert_eq!(edited("dist/a.mjs", script), b"import{h}from\"./preact.js\";x()\n");
        assert_eq!(
            edited("dist/uPlot.iife.min.js", b"var uPlot=1;".to_vec()),
            b"var uPlot=1;\nexport default uPlot;\n"
        );
        assert_eq!(edited("LICENSE", b"from\"preact\"\n\n".to_vec()), b"from\"preact\"\n\n");
    }
}
