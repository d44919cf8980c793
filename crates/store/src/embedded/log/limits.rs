//! The sizes of the log's files.

/// The sizes of the log's files, in bytes. Any values are safe; they cost time and space.
#[derive(Clone, Copy, Debug)]
pub struct SegmentLimits {
    /// Limit of the size of a segment. A larger commit gets a segment of its own.
    pub segment_bytes: u32,
    /// The size by which a segment's file is lengthened at a time. Frames of more than a sixteenth of it are written past
    /// the page cache instead.
    pub ahead_bytes: u32,
    /// Limit of the size of a short newest segment. Opening the log writes a short segment anew; otherwise every start
    /// would add a file.
    pub short_bytes: u32,
    /// Dead bytes from which on the log is compacted, unless more bytes are live.
    pub dead_bytes: u64,
}

impl Default for SegmentLimits {
    /// 64 MiB, 1 MiB, 1 MiB and 128 MiB.
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, ahead_bytes: 1 << 20, short_bytes: 1 << 20, dead_bytes: 128 << 20 }
    }
}
