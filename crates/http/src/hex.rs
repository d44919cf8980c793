//! Bytes as lower-case hexadecimal digits.

/// The digits of every byte.
static PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Writes two digits for each byte; `digits` is twice as long as `bytes`.
pub(crate) fn write(bytes: &[u8], digits: &mut [u8]) {
    for (byte, pair) in bytes.iter().zip(digits.as_chunks_mut().0) {
        *pair = PAIRS[usize::from(*byte)];
    }
}

/// The digits as a text of their own.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut digits = vec![0; 2 * bytes.len()];
    write(bytes, &mut digits);
    digits.into_iter().map(char::from).collect()
}
