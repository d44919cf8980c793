//! Packs the texts of `assets` together, those of a first visit also one by one with Brotli, and writes the table of the files.
//! Comments of scripts and styles are left out, and a style that imports others has their text.

#[path = "src/comments.rs"]
mod comments;
#[path = "src/first_visit.rs"]
mod first_visit;
#[path = "src/imports.rs"]
mod imports;
#[path = "src/page.rs"]
mod page;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use brotli::enc::BrotliEncoderParams;
use brotli::enc::backward_references::BrotliEncoderMode;
use flate2::Compression;
use flate2::write::GzEncoder;
use twox_hash::XxHash3_64;

use comments::without_comments;
use first_visit::files_of_first_visit;
use page::{PAGE, START, STYLES, filled, page};

/// Files of other projects are served as they are.
const VENDOR: &str = "vendor/";

/// What stands around the address of an imported style, a line each.
const IMPORT: (&str, &str) = ("@import url(\"", "\");");

/// Files that are for readers of the source only.
const UNSERVED: [&str; 2] = ["md", "ts"];

/// The file with all texts, packed together: they have much in common, and need a third less than one by one.
const TEXTS: &str = "texts.gz";

fn main() -> io::Result<()> {
    let folder = Path::new("assets");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    println!("cargo:rerun-if-changed=assets");
    let mut names = Vec::new();
    list(folder, folder, &mut names)?;
    names.sort();
    let mut tree = XxHash3_64::new();
    let mut files = Vec::new();
    let parts = parts_of_files(folder, &names)?;
    for name in &names {
        let bytes = fs::read(folder.join(name))?;
        tree.write(name.as_bytes());
        tree.write_u64(bytes.len() as u64);
        tree.write(&bytes);
        // The page is served with the base path in it.
        if name != PAGE && !parts.contains(name) {
            files.push((name.clone(), served(folder, name, bytes)?));
        }
    }
    let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap_or_default();
    files.push((imports::TABLE.to_owned(), imports::table(&names, read).into_bytes()));
    // In the order in which the table is searched.
    files.sort();
    let (table, texts) = embed(&files, &files_of_first_visit(read), &out)?;
    let (page, hash) = (page(read), format!("{:016x}", tree.finish()));
    fs::write(out.join("page.br"), with_brotli(filled(&page, "", &hash).as_bytes())?)?;
    fs::write(out.join("page.html"), page)?;
    fs::write(out.join("files.rs"), table)?;
    fs::write(out.join("file_count.rs"), format!("{}", files.len()))?;
    fs::write(out.join(TEXTS), gzip(&texts)?)?;
    fs::write(out.join("tree_hash.txt"), hash)
}

/// Writes the files that are embedded one by one. Answers the table of all files, and the texts one after the other.
fn embed(files: &[(String, Vec<u8>)], first: &BTreeSet<String>, out: &Path) -> io::Result<(String, Vec<u8>)> {
    let mut table = String::from("[\n");
    let mut texts = Vec::new();
    for (number, (name, bytes)) in files.iter().enumerate() {
        let is_text = gzip(bytes)?.len() < bytes.len() - bytes.len() / 20;
        let mut plain = format!("Plain::Text({}..{})", texts.len(), texts.len() + bytes.len());
        let mut brotli = "None".to_owned();
        if is_text && first.contains(name) {
            let file = out.join(format!("{number}.br")).to_string_lossy().into_owned();
            fs::write(&file, with_brotli(bytes)?)?;
            brotli = format!("Some(include_bytes!({file:?}))");
        }
        if is_text {
            texts.extend(bytes);
        } else {
            // A font is packed already.
            let file = out.join(format!("{number}.bytes")).to_string_lossy().into_owned();
            fs::write(&file, bytes)?;
            plain = format!("Plain::Bytes(include_bytes!({file:?}))");
        }
        writeln!(
            table,
            "EmbeddedFile {{ path: {name:?}, plain: {plain}, gzip: OnceLock::new(), brotli: {brotli} }},"
        )
        .map_err(io::Error::other)?;
    }
    table.push(']');
    Ok((table, texts))
}

/// The bytes that browsers get of a file.
fn served(folder: &Path, name: &str, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let is_text = matches!(name.rsplit('.').next(), Some("js" | "css"));
    if name.starts_with(VENDOR) || !is_text {
        return Ok(bytes);
    }
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    let mut served = String::new();
    for line in without_comments(&text).split_inclusive('\n') {
        match imported(line) {
            Some(path) => served += &without_comments(&fs::read_to_string(folder.join(path))?),
            None => served += line,
        }
    }
    Ok(served.into_bytes())
}

/// The address of a style that a line of another style imports.
fn imported(line: &str) -> Option<&str> {
    line.trim().strip_prefix(IMPORT.0)?.strip_suffix(IMPORT.1)
}

/// The files whose text others have: browsers ask for none of them.
fn parts_of_files(folder: &Path, names: &[String]) -> io::Result<BTreeSet<String>> {
    let mut parts: BTreeSet<_> = STYLES.into_iter().chain([START]).map(str::to_owned).collect();
    for name in names.iter().filter(|name| name.rsplit('.').next() == Some("css")) {
        let text = fs::read_to_string(folder.join(name))?;
        parts.extend(text.lines().filter_map(imported).map(str::to_owned));
    }
    Ok(parts)
}

/// Adds the names of the served files of a folder and of the folders in it, relative to `root`.
fn list(root: &Path, folder: &Path, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_unserved =
            path.extension().is_some_and(|extension| UNSERVED.iter().any(|of| extension == *of));
        if path.is_dir() {
            list(root, &path, names)?;
        } else if !is_hidden && !is_unserved {
            let name = path.strip_prefix(root).map_err(io::Error::other)?;
            names.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// The bytes in gzip's format. It has no time and no name, so that equal files give equal bytes.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(9));
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The bytes in Brotli's format: an eighth less than gzip's.
fn with_brotli(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let params = BrotliEncoderParams {
        quality: 11,
        mode: BrotliEncoderMode::BROTLI_MODE_TEXT,
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut packed, &params)?;
    Ok(packed)
}
