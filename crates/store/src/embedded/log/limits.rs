//! How the log is cut into files.

/// The sizes of the log's parts. Any will do: they cost time and space, not safety.
#[derive(Clone, Copy, Debug)]
pub struct SegmentLimits {
    /// A segment is at most this long, unless one commit is longer.
    pub segment_bytes: u32,
    /// The file of a segment is lengthened by this much at a time, for frames that are at most a sixteenth as long; longer
    /// ones go past the page cache.
    pub ahead_bytes: u32,
    /// A newest segment that is not longer is made anew when the folder is opened, instead of being continued in
    /// another one: else every start would leave a file behind.
    pub short_bytes: u32,
    /// So much that nobody needs any more may be in the log, and as much again as is needed.
    pub dead_bytes: u64,
}

impl Default for SegmentLimits {
    /// 64 MiB, 1 MiB, 1 MiB and 128 MiB.
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, ahead_bytes: 1 << 20, short_bytes: 1 << 20, dead_bytes: 128 << 20 }
    }
}
