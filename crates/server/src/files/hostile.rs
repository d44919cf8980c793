//! Malicious and damaged archives.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use longshore_http::CodeError;
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use super::archive::{Bounds, Unpacked, unpack};

const BOUNDS: Bounds = Bounds { bytes_max: 1_000, entries_max: 10 };

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Packs these files into an archive.
pub(super) fn archive_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    gzip(&tar.into_inner().unwrap())
}

/// An archive with one entry of an unchecked path and kind.
fn raw(path: &str, kind: EntryType, link: &str) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_size(u64::from(kind == EntryType::Regular));
    header.set_mode(0o777);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    if kind == EntryType::Regular {
        bytes.extend_from_slice(&[b'x'; 512]);
    }
    bytes.extend_from_slice(&[0; 1_024]);
    gzip(&bytes)
}

/// Unpacks an archive in an empty directory and checks that nothing is written beside it.
fn unpacked(archive: &[u8]) -> Result<Unpacked, CodeError> {
    unpacked_within(archive, BOUNDS)
}

fn unpacked_within(archive: &[u8], bounds: Bounds) -> Result<Unpacked, CodeError> {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let outcome = unpack(archive, &folder, bounds);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a file is outside the directory");
    assert_no_links(&folder);
    outcome
}

fn assert_no_links(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        assert!(kind.is_dir() || kind.is_file(), "{:?}", entry.path());
        if kind.is_dir() {
            assert_no_links(&entry.path());
        }
    }
}

fn refusal(archive: &[u8]) -> String {
    refusal_within(archive, BOUNDS)
}

fn refusal_within(archive: &[u8], bounds: Bounds) -> String {
    match unpacked_within(archive, bounds) {
        Err(CodeError::Unusable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_and_folders_come_out_as_they_went_in() {
    let archive = archive_of(&[("handler.py", "print()"), ("./lib/a.py", "x")]);
    assert_eq!(unpacked(&archive).unwrap(), Unpacked { files: 2, bytes: 8 });
}

#[test]
fn nothing_leads_out_of_the_folder() {
    for path in ["/etc/passwd", "../x", "a/../../x", "/", "..", "a\u{1}b"] {
        assert!(refusal(&raw(path, EntryType::Regular, "")).contains("not a path below"), "{path}");
    }
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char, EntryType::Block] {
        assert!(refusal(&raw("a", kind, "/etc")).contains("neither a file nor a folder"), "{kind:?}");
    }
}

#[test]
fn a_file_without_a_name_is_refused() {
    for name in ["", "."] {
        assert!(refusal(&raw(name, EntryType::Regular, "")).contains("has no name"), "{name}");
    }
}

#[test]
fn an_archive_is_bounded_in_bytes_and_entries() {
    let large = "x".repeat(600);
    assert!(refusal(&archive_of(&[("a", &large), ("b", &large)])).contains("too large"));
    let names: Vec<String> = (0..11).map(|number| number.to_string()).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert!(refusal(&archive_of(&many)).contains("more than 10 entries"));
    let dir = tempfile::tempdir().unwrap();
    assert!(unpack(&archive_of(&many), dir.path(), BOUNDS).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a file was written");
    let zeros = gzip(&vec![0; 100_000_000]);
    assert!(refusal(&zeros).contains("no files"), "an end marker without entries");
}

/// An entry that describes the next one, and that next entry.
fn described(kind: EntryType, text: &[u8]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(text.len() as u64);
    header.set_cksum();
    tar.append(&header, text).unwrap();
    let mut header = Header::new_gnu();
    header.set_size(1);
    tar.append_data(&mut header, "file", &b"x"[..]).unwrap();
    gzip(&tar.into_inner().unwrap())
}

fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let digits = (1..7).find(|digits| (rest.len() + digits).to_string().len() == *digits).unwrap();
    format!("{}{rest}", rest.len() + digits).into_bytes()
}

#[test]
fn long_names_and_extended_headers_are_understood() {
    let deep = format!("{}/file.py", ["folder"; 60].join("/"));
    for archive in [
        described(EntryType::GNULongName, format!("{deep}\0").as_bytes()),
        described(EntryType::XHeader, &[record("mtime", "1.5"), record("path", &deep)].concat()),
        described(EntryType::XHeader, &record("size", "1")),
        described(EntryType::XGlobalHeader, &record("comment", "0123456789abcdef")),
    ] {
        let bounds = Bounds { entries_max: 100, ..BOUNDS };
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(unpack(&archive, dir.path(), bounds).unwrap(), Unpacked { files: 1, bytes: 1 });
        assert!(dir.path().join(&deep).exists() || dir.path().join("file").exists());
    }
}

#[test]
fn what_describes_an_entry_is_bounded() {
    let long = vec![b'a'; 5_000];
    for kind in [EntryType::GNULongName, EntryType::GNULongLink] {
        assert!(refusal(&described(kind, &long)).contains("more than 4096 bytes"), "{kind:?}");
    }
    let comment = "c".repeat(70_000);
    for kind in [EntryType::XHeader, EntryType::XGlobalHeader] {
        let header = [record("path", "b"), record("comment", &comment)].concat();
        let bounds = Bounds { bytes_max: 1_000_000, ..BOUNDS };
        let refusal = refusal_within(&described(kind, &header), bounds);
        assert!(refusal.contains("more than 65536 bytes"), "{kind:?}: {refusal}");
    }
    let path = record("path", &"a".repeat(5_000));
    assert!(refusal(&described(EntryType::XHeader, &path)).contains("more than 4096 bytes"));
    for size in ["0", "18446744073709551615"] {
        assert!(refusal(&described(EntryType::XHeader, &record("size", size))).contains("extended header"));
    }
    assert!(refusal(&described(EntryType::XHeader, &record("size", "-1"))).contains("not a number"));
    assert!(refusal(&described(EntryType::XHeader, &record("GNU.sparse.map", "0,1"))).contains("sparse"));
    assert!(refusal(&described(EntryType::XHeader, b"99 path=x\n")).contains("not a complete"));
}

#[test]
fn folders_that_are_only_named_count() {
    let deep = ["f"; 12].join("/");
    assert!(refusal(&archive_of(&[(&deep, "")])).contains("more than 10 entries"));
    let deeper = ["f"; 65].join("/");
    assert!(refusal(&archive_of(&[(&deeper, "")])).contains("within each other"));
}

#[test]
fn the_same_name_twice_and_half_an_archive_are_refused() {
    assert!(refusal(&archive_of(&[("a", "1"), ("a", "2")])).contains("twice"));
    assert!(refusal(&archive_of(&[("a", "1"), ("a/b", "2")])).contains("twice"));
    let whole = archive_of(&[("handler.py", &"line\n".repeat(100))]);
    assert!(refusal(&whole[..whole.len() / 2]).contains("not a complete"));
    assert!(refusal(b"").contains("not a complete"));
    assert!(refusal(b"{\"output\":1}").contains("not a complete"));
}

proptest! {
    #[test]
    fn any_bytes_are_unpacked_inside_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = unpacked(&bytes);
        let _ = unpacked(&gzip(&bytes));
    }

    #[test]
    fn an_archive_with_a_few_bytes_changed_stays_inside(
        changes in prop::collection::vec((0_usize..2_048, any::<u8>()), 1..8),
    ) {
        let mut tar = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(1);
        tar.append_data(&mut header, "a/b", &b"x"[..]).unwrap();
        let mut bytes = tar.into_inner().unwrap();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let _ = unpacked(&gzip(&bytes));
    }
}
