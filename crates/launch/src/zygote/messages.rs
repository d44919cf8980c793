//! Messages over the sockets of zygotes: a length, and JSON; and open files beside bytes.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message that is read, in bytes.
const MESSAGE_BYTES_MAX: u32 = 1024 * 1024;

/// Writes a message as JSON after its length.
pub(crate) fn send(mut stream: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    stream.write_all(&framed(message)?)
}

/// Reads the next message, and waits for it.
pub(crate) fn receive<T: DeserializeOwned>(mut stream: &UnixStream) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Writes a message, with two open files at its first byte.
pub(crate) fn send_with_files(
    stream: &UnixStream,
    message: &impl Serialize,
    files: [BorrowedFd<'_>; 2],
) -> io::Result<()> {
    let bytes = framed(message)?;
    send_files(stream, &bytes[..1], files)?;
    (&mut &*stream).write_all(&bytes[1..])
}

/// Writes one byte or more, with two open files at the first.
pub(crate) fn send_files(stream: &UnixStream, bytes: &[u8], files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("two files do not fit beside a message"));
    }
    sendmsg(stream, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn framed(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}
