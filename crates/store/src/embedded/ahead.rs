//! Room in the write-ahead log before it is needed.
//!
//! A sync of a file that has grown also writes how long the file is now: one more write that the disk is waited
//! for, and about twice the processor's time for a small commit. A log that has started over is overwritten in
//! place and does not grow; until then this keeps it somewhat longer than what is in it. What follows the last
//! commit means nothing to `SQLite`: a frame without the log's present salts ends the log.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rusqlite::Connection;

use super::doubt::{FRAME_HEADER_BYTES, LOG_HEADER_BYTES};

/// Written at once, and never across the border of such a piece: Linux keeps what is written at once together,
/// and counts (and sometimes writes) all of it whenever a commit changes a part.
const PIECE: [u8; 4096] = [0; 4096];

/// Keeps the log longer than it has to be. Made anew when anybody but the connection has changed its length.
#[derive(Debug)]
pub(super) struct Ahead {
    frame_bytes: u64,
    step_bytes: u64,
    /// Where the log's file ends.
    log_end: u64,
}

impl Ahead {
    /// For a database, its log, and steps of so many pages.
    pub fn new(db: &Connection, log: &File, step_pages: u32) -> rusqlite::Result<Self> {
        let page_bytes: u32 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let frame_bytes = FRAME_HEADER_BYTES + u64::from(page_bytes);
        let log_end = log.metadata().map_or(0, |metadata| metadata.len());
        Ok(Self { frame_bytes, step_bytes: u64::from(step_pages) * frame_bytes, log_end })
    }

    /// Lengthens the log of so many frames if commits are about to reach the end of its file. To be called inside
    /// a writing transaction: whoever else writes to the log waits for its end.
    pub fn make_room(&mut self, log: &File, frames: u32) {
        let used = LOG_HEADER_BYTES + u64::from(frames) * self.frame_bytes;
        if used + self.step_bytes / 4 <= self.log_end {
            return;
        }
        // It is only faster with it. A disk that cannot do this will say so to the commit that follows.
        self.log_end = self.lengthen(log).unwrap_or(u64::MAX);
    }

    fn lengthen(&self, log: &File) -> io::Result<u64> {
        let mut end = log.metadata()?.len();
        let until = end + self.step_bytes;
        while end < until {
            let piece = &PIECE[(end % PIECE.len() as u64) as usize..];
            log.write_all_at(piece, end)?;
            end += piece.len() as u64;
        }
        Ok(end)
    }
}
