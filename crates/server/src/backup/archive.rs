//! A backup as an archive: a tar file compressed with zstd, which `tar --zstd` reads.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Builder, EntryType, Header};
use zstd::stream::{read::Decoder, write::Encoder};

use super::entry::{Entry, Kind, Sink};
use super::list::{self, ListWriter};
use super::partial::Partial;
use super::{BackupError, DATA, Done, manifest};

/// Compression level. Higher levels do not shrink model weights.
const LEVEL: i32 = 3;
/// Most bytes of the list and the manifest together; enough for ten million files.
const TEXT_BYTES_MAX: u64 = 2_000_000_000;

/// Writes a backup's entries into an archive.
pub(super) struct ArchiveWriter {
    path: PathBuf,
    /// `None` after the end of the archive was written.
    tar: Option<Builder<Encoder<'static, File>>>,
}

impl ArchiveWriter {
    pub(super) fn new(partial: &Partial) -> Done<Self> {
        let (path, file) = (partial.path().to_owned(), partial.opened()?);
        let encoder = Encoder::new(file, LEVEL).and_then(|mut encoder| {
            encoder.include_checksum(true)?;
            Ok(encoder)
        });
        let tar = Builder::new(encoder.map_err(BackupError::io("write", &path))?);
        Ok(Self { path, tar: Some(tar) })
    }

    fn write(&mut self, entry: &Entry, content: &mut dyn Read) -> io::Result<()> {
        let Some(tar) = &mut self.tar else { return Err(io::Error::other("the archive is finished")) };
        let mut header = Header::new_gnu();
        header.set_mode(entry.mode);
        header.set_mtime(entry.modified);
        header.set_size(entry.bytes);
        match &entry.kind {
            Kind::File => {
                header.set_entry_type(EntryType::Regular);
                tar.append_data(&mut header, &entry.path, content)
            }
            Kind::Folder => {
                header.set_entry_type(EntryType::Directory);
                tar.append_data(&mut header, &entry.path, io::empty())
            }
            Kind::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                tar.append_link(&mut header, &entry.path, target)
            }
        }
    }
}

impl Sink for ArchiveWriter {
    fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()> {
        self.write(entry, content).map_err(BackupError::io("write", &self.path.join(&entry.path)))
    }

    fn end(&mut self) -> Done<()> {
        let Some(tar) = self.tar.take() else { return Ok(()) };
        let ended = tar.into_inner().and_then(Encoder::finish).and_then(|file| file.sync_all());
        ended.map_err(BackupError::io("write", &self.path))
    }
}

/// Reads a backup's entries from an archive.
pub(super) struct ArchiveReader {
    path: PathBuf,
    tar: Archive<Decoder<'static, io::BufReader<File>>>,
}

impl ArchiveReader {
    pub(super) fn open(path: &Path) -> Done<Self> {
        let file = File::open(path).map_err(BackupError::io("open", path))?;
        let decoder = Decoder::new(file).map_err(BackupError::io("read", path))?;
        Ok(Self { path: path.to_owned(), tar: Archive::new(decoder) })
    }

    /// Copies the data entries to `data` and returns the list and the manifest.
    pub(super) fn read(mut self, data: &mut ListWriter<'_>) -> Done<(Vec<u8>, Vec<u8>)> {
        let path = self.path;
        let not_whole = |what: String| BackupError::NotWhole { path: path.clone(), what };
        let broken = |error: io::Error| not_whole(format!("cannot read the archive: {error}"));
        let (mut list, mut manifest) = (None, None);
        for packed in self.tar.entries().map_err(broken)? {
            let mut packed = packed.map_err(broken)?;
            let entry = entry_of(&packed).map_err(broken)?;
            let is_inside = entry.path.components().all(|part| matches!(part, Component::Normal(_)));
            match entry.path.to_str() {
                Some(list::NAME) => list = Some(text(&mut packed).map_err(broken)?),
                Some(manifest::NAME) => manifest = Some(text(&mut packed).map_err(broken)?),
                _ if is_inside && entry.path.starts_with(DATA) => {
                    data.put(&entry, &mut packed).map_err(|error| match error {
                        BackupError::Io { what: "read", cause, .. } => broken(cause),
                        other => other,
                    })?;
                }
                _ => return Err(not_whole(format!("`{}` is not part of a backup", entry.path.display()))),
            }
        }
        // Reading to the end checks the archive's checksum, which follows the last entry.
        io::copy(&mut self.tar.into_inner(), &mut io::sink()).map_err(broken)?;
        match (list, manifest) {
            (Some(list), Some(manifest)) => Ok((list, manifest)),
            _ => Err(not_whole("the end is missing".to_owned())),
        }
    }
}

fn entry_of(packed: &tar::Entry<'_, impl Read>) -> io::Result<Entry> {
    let header = packed.header();
    let kind = match header.entry_type() {
        EntryType::Regular => Kind::File,
        EntryType::Directory => Kind::Folder,
        EntryType::Symlink => {
            let target = packed.link_name()?.ok_or_else(|| io::Error::other("a link has no target"))?;
            Kind::Link(target.into_owned())
        }
        other => return Err(io::Error::other(format!("unsupported entry type {other:?}"))),
    };
    let path = packed.path()?.components().collect();
    Ok(Entry { path, kind, mode: header.mode()? & 0o777, bytes: packed.size(), modified: header.mtime()? })
}

fn text(packed: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    packed.take(TEXT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}
