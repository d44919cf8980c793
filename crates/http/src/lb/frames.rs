//! The frames of a WebSocket, as far as they tell activity from pings (RFC 6455, 5.2).

/// The longest head of a frame, in bytes.
const HEAD_BYTES_MAX: usize = 14;
/// The opcodes of pings and pongs.
const PINGS: [u8; 2] = [0x9, 0xA];

/// Reads the frames of one direction as they pass, and keeps no more of them than one head.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    /// The rest of the present frame's payload, in bytes.
    payload_bytes: u64,
    /// Whether the present frame is neither a ping nor a pong.
    is_activity: bool,
}

impl Frames {
    /// Notes the next bytes. Returns whether they have a part of a frame that is neither a ping nor a pong. Bytes that
    /// are no frames give some result.
    pub(super) fn note(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_activity = false;
        while !bytes.is_empty() {
            if self.payload_bytes > 0 {
                let passed = self.payload_bytes.min(bytes.len() as u64);
                self.payload_bytes -= passed;
                bytes = &bytes[passed as usize..];
                has_activity |= self.is_activity;
                continue;
            }
            self.head[self.head_bytes] = bytes[0];
            self.head_bytes += 1;
            bytes = &bytes[1..];
            if let Some(payload_bytes) = self.whole_head() {
                self.is_activity = !PINGS.contains(&(self.head[0] & 0x0F));
                self.payload_bytes = payload_bytes;
                self.head_bytes = 0;
                has_activity |= self.is_activity;
            }
        }
        has_activity
    }

    /// The length of the payload in bytes, once the head is complete.
    fn whole_head(&self) -> Option<u64> {
        let head = &self.head[..self.head_bytes];
        let second = *head.get(1)?;
        let length_bytes = match second & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask_bytes = if second & 0x80 == 0 { 0 } else { 4 };
        if head.len() < 2 + length_bytes + mask_bytes {
            return None;
        }
        let extended = head[2..2 + length_bytes].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        Some(if length_bytes == 0 { u64::from(second & 0x7F) } else { extended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with this opcode. A masked one is a client's.
    fn frame(opcode: u8, payload: usize, is_masked: bool) -> Vec<u8> {
        let mask = if is_masked { 0x80 } else { 0 };
        let mut frame = vec![0x80 | opcode];
        match payload {
            0..126 => frame.push(mask | payload as u8),
            126..65_536 => {
                frame.push(mask | 0x7E);
                frame.extend((payload as u16).to_be_bytes());
            }
            _ => {
                frame.push(mask | 0x7F);
                frame.extend((payload as u64).to_be_bytes());
            }
        }
        frame.extend([7; 4].iter().filter(|_| is_masked));
        frame.extend(std::iter::repeat_n(0x89, payload));
        frame
    }

    /// The frames that count, when the bytes come in pieces of this size.
    fn active(frames: &[Vec<u8>], piece: usize) -> Vec<bool> {
        let mut reader = Frames::default();
        let note = |frame: &Vec<u8>| frame.chunks(piece).filter(|part| reader.note(part)).count() > 0;
        frames.iter().map(note).collect()
    }

    #[test]
    fn pings_and_pongs_are_no_activity_however_the_bytes_are_cut() {
        for is_masked in [false, true] {
            for payload in [0, 1, 125, 126, 300, 70_000] {
                let frames: Vec<_> = [0x1, 0x9, 0x2, 0xA, 0x9, 0x8, 0x0, 0xA]
                    .into_iter()
                    .map(|opcode| {
                        frame(opcode, if opcode >= 8 { payload.min(125) } else { payload }, is_masked)
                    })
                    .collect();
                for piece in [1, 2, 3, 7, 1_000, 100_000] {
                    let expected = [true, false, true, false, false, true, true, false];
                    assert_eq!(active(&frames, piece), expected, "{payload} bytes in pieces of {piece}");
                }
            }
        }
    }

    #[test]
    fn every_sequence_of_bytes_is_read() {
        let mut rng = 7_u64;
        let mut reader = Frames::default();
        for _ in 0..10_000 {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = rng.to_le_bytes();
            reader.note(&bytes[..=(rng >> 61) as usize]);
            assert!(reader.head_bytes < HEAD_BYTES_MAX);
            // Otherwise the whole test could be the payload of one frame.
            reader.payload_bytes %= 20;
        }
    }
}
