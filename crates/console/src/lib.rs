//! The pages of the console: files for browsers, embedded in the program.
//!
//! `assets` has the files. The build leaves out their comments, packs all texts together and those of a first visit one by one
//! with Brotli, and hashes the tree of them; no other tool is needed. Files whose text others have are not embedded: the page
//! has the style of its first frame and the script that runs before it, and two styles have the text of the others. The HTTP
//! crate serves the one page ([`shell`]) at every address of the console, and the other files ([`asset`]) at addresses that
//! contain the tree's hash, so that browsers may keep them for ever.

mod comments;
mod content_type;
#[cfg(test)]
mod first_visit;
mod folder;
mod imports;
mod page;

use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

pub use folder::Folder;

/// The hash of all files, 16 hexadecimal digits. It changes with any of them.
pub const TREE_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/tree_hash.txt"));

const SHELL: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
const SHELL_IN_BROTLI: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.br"));

/// All files, in the order of their paths.
#[expect(clippy::unreadable_literal, reason = "the build writes the table")]
static FILES: [EmbeddedFile; include!(concat!(env!("OUT_DIR"), "/file_count.rs"))] =
    include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The bytes of all texts, one file after the other.
static TEXTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut texts = Vec::new();
    // The build has packed the bytes, so that this cannot fail.
    let _ = GzDecoder::new(PACKED_TEXTS).read_to_end(&mut texts);
    texts
});

/// [`TEXTS`], packed with gzip.
const PACKED_TEXTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/texts.gz"));

/// A file as it is in the program.
struct EmbeddedFile {
    /// Relative to `assets`, with `/` between its parts.
    path: &'static str,
    plain: Plain,
    /// A text packed with gzip, at the first request that takes it.
    gzip: OnceLock<Vec<u8>>,
    /// The file packed with Brotli, if a first visit loads it.
    brotli: Option<&'static [u8]>,
}

/// Where the bytes of a file are, not packed.
enum Plain {
    /// The range of its bytes in [`TEXTS`].
    Text(Range<usize>),
    /// The bytes: their format is packed already.
    Bytes(&'static [u8]),
}

/// A file for browsers, other than the page.
#[derive(Clone, Copy)]
pub struct Asset {
    file: &'static EmbeddedFile,
}

impl Asset {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        content_type::of(self.file.path)
    }

    /// The file's bytes, not packed.
    pub fn plain(self) -> &'static [u8] {
        match &self.file.plain {
            Plain::Text(range) => TEXTS.get(range.clone()).unwrap_or_default(),
            Plain::Bytes(bytes) => bytes,
        }
    }

    /// The file's bytes packed with gzip; `None` if its format is packed already.
    pub fn gzip(self) -> Option<&'static [u8]> {
        let is_text = matches!(self.file.plain, Plain::Text(_));
        is_text.then(|| self.file.gzip.get_or_init(|| packed(self.plain())).as_slice())
    }

    /// The file's bytes packed with Brotli, for those that a first visit loads.
    pub fn brotli(self) -> Option<&'static [u8]> {
        self.file.brotli
    }
}

/// The bytes in gzip's format.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(9));
    // Writes to memory do not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// The file with this path below `assets`; `None` if there is none.
pub fn asset(path: &str) -> Option<Asset> {
    let found = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    Some(Asset { file: &FILES[found] })
}

/// The page with this base path: empty, or `/longshore`.
pub fn shell(base: &str) -> String {
    page::filled(SHELL, base, TREE_HASH)
}

/// The page with this base path, packed with Brotli; `None` unless the base path is empty.
pub fn shell_in_brotli(base: &str) -> Option<&'static [u8]> {
    base.is_empty().then_some(SHELL_IN_BROTLI)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The styles that have the text of others.
    const STYLES: [&str; 2] = ["console.css", "pages.css"];

    #[test]
    fn every_file_is_found_and_is_its_source() {
        assert!(!FILES.is_empty());
        for file in FILES.iter().filter(|file| file.path != imports::TABLE) {
            let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(file.path);
            let (found, source) = (asset(file.path).unwrap(), std::fs::read(source).unwrap());
            assert_ne!(found.content_type(), "application/octet-stream", "{}: name its type", file.path);
            let is_own = !file.path.starts_with("vendor/")
                && [".js", ".css"].iter().any(|extension| file.path.ends_with(extension));
            if !is_own {
                assert!(found.plain() == source, "{}", file.path);
            } else if !STYLES.contains(&file.path) {
                let source = String::from_utf8(source).unwrap();
                assert!(found.plain() == comments::without_comments(&source).as_bytes(), "{}", file.path);
            }
        }
        assert!(asset("index.html").is_none(), "the page is served with its base path only");
        assert!(asset("../Cargo.toml").is_none());
    }

    /// The console's specification allows the program to grow by this, in bytes.
    const EMBEDDED_BYTES_MAX: usize = 400_000;

    #[test]
    fn the_files_have_few_bytes() {
        let bytes = |file: &EmbeddedFile| match file.plain {
            Plain::Text(_) => file.brotli.map_or(0, <[u8]>::len),
            Plain::Bytes(bytes) => bytes.len(),
        };
        let all =
            PACKED_TEXTS.len() + SHELL.len() + SHELL_IN_BROTLI.len() + FILES.iter().map(bytes).sum::<usize>();
        assert!(all < EMBEDDED_BYTES_MAX, "{all} bytes");
    }

    #[test]
    fn what_a_first_visit_loads_is_packed_twice() {
        let mut count = 0;
        for file in &FILES {
            let Some(packed) = file.brotli else { continue };
            let mut plain = Vec::new();
            brotli::BrotliDecompress(&mut &packed[..], &mut plain).unwrap();
            assert!(plain == asset(file.path).unwrap().plain(), "{}", file.path);
            assert!(packed.len() < asset(file.path).unwrap().gzip().unwrap().len(), "{}", file.path);
            count += 1;
        }
        let mut page = Vec::new();
        brotli::BrotliDecompress(&mut &SHELL_IN_BROTLI[..], &mut page).unwrap();
        assert_eq!(String::from_utf8(page).unwrap(), shell(""));
        assert!(asset("vendor/uplot.js").unwrap().brotli().is_some());
        assert!((20..80).contains(&count), "{count} files are packed twice");
    }

    #[test]
    fn the_page_and_the_two_styles_have_the_text_of_all_styles() {
        let plain = |path: &str| String::from_utf8(asset(path).unwrap().plain().to_vec()).unwrap();
        let whole = STYLES.map(plain).concat();
        assert!(!whole.contains("@import"), "{whole}");
        let assets = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let styles = std::fs::read_dir(assets.join("styles")).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for path in styles {
            let part = comments::without_comments(&std::fs::read_to_string(&path).unwrap());
            let name = path.strip_prefix(&assets).unwrap().to_str().unwrap();
            let is_in_page = page::STYLES.contains(&name);
            assert_ne!(is_in_page, whole.contains(part.trim()), "{name} is in neither style, or in both");
            assert!(asset(name).is_none(), "{name}: no browser asks for it");
            count += 1;
        }
        for name in page::STYLES.into_iter().chain([page::START]) {
            assert!(asset(name).is_none(), "{name}: no browser asks for it");
            let part = comments::without_comments(&std::fs::read_to_string(assets.join(name)).unwrap());
            for line in part.lines().filter(|line| !line.contains("url(")) {
                assert!(SHELL.contains(line), "{name}: the page lacks {line}");
            }
        }
        assert!(count > 10, "{count} styles");
    }

    #[test]
    fn the_page_names_its_assets_under_the_base_path() {
        for base in ["", "/longshore"] {
            let page = shell(base);
            assert!(page.contains(&format!("{base}/console/a/{TREE_HASH}/main.js")), "{page}");
            assert!(!page.contains("{{"), "{page}");
        }
        assert!(TREE_HASH.len() == 16 && TREE_HASH.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn every_address_in_the_page_is_an_asset() {
        let page = shell("");
        let prefix = format!("/console/a/{TREE_HASH}/");
        let mut found = 0;
        for rest in page.split(prefix.as_str()).skip(1) {
            let path = rest.split('"').next().unwrap();
            assert!(asset(path).is_some(), "{path}");
            found += 1;
        }
        assert!(found > 0, "{page}");
    }
}
