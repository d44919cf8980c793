//! Integers in as few bytes as they need: seven bits a byte, the lowest first.

/// Appends a number, in 1 to 10 bytes.
pub(crate) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number from the start of `bytes`; `None` if there is no whole number.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for at in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if at == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes a number that counts bytes, and as many bytes after it.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_cut_ones_do_not() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(take(&mut bytes.as_slice()), Some(value));
            bytes.pop();
            assert_eq!(take(&mut bytes.as_slice()), None);
        }
        assert_eq!(take(&mut [0xff; 12].as_slice()), None);
        assert_eq!(take_bytes(&mut [3, 1, 2].as_slice()), None);
    }
}
