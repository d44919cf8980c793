//! Cuts what differs from job to job out of a message: numbers, ids of jobs and workers.

/// What stands in place of a number or an id.
const CUT: char = '#';
/// Where the dashes of a UUID are, and its length.
const UUID_DASHES: [usize; 4] = [8, 13, 18, 23];
const UUID_BYTES: usize = 36;

/// The text with `#` in place of each word that has a digit, each UUID, and the id of the worker. A number with a fraction
/// or separators (`1,024`, `12:30`, `2.5`) is one.
pub(super) fn without_ids(text: &str, worker: Option<&str>) -> String {
    let (mut rest, mut out) = (text, String::with_capacity(text.len()));
    while let Some(next) = rest.chars().next() {
        let word = word_bytes(rest);
        if word == 0 {
            out.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let is_id = worker.is_some_and(|worker| rest[..word] == *worker);
        let cut = match uuid_of(rest) {
            Some(uuid) => uuid,
            None if is_id || has_digit(&rest[..word]) => word + fraction_of(&rest[word..]),
            None => {
                out.push_str(&rest[..word]);
                rest = &rest[word..];
                continue;
            }
        };
        out.push(CUT);
        rest = &rest[cut..];
    }
    out
}

/// The length of the word at the start, in bytes.
fn word_bytes(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(text.len())
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The length of the UUID at the start.
fn uuid_of(text: &str) -> Option<usize> {
    let bytes = text.as_bytes().get(..UUID_BYTES)?;
    let fits = |(at, byte): (usize, &u8)| {
        if UUID_DASHES.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    bytes.iter().enumerate().all(fits).then_some(UUID_BYTES)
}

/// The length of what continues a number: separators, each with a word that has a digit.
fn fraction_of(text: &str) -> usize {
    let mut len = 0;
    while let Some(rest) = text[len..].strip_prefix(['.', ',', ':', '-', '/']) {
        let word = word_bytes(rest);
        if word == 0 || !has_digit(&rest[..word]) {
            break;
        }
        len += 1 + word;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_are_cut() {
        for (text, expected) in [
            ("no such customer: 4711", "no such customer: #"),
            ("Tried to allocate 2.50 GiB of 1,024 at 12:30:05", "Tried to allocate # GiB of # at #"),
            ("job 019a2b3c-4d5e-7f60-8123-456789abcdef gone", "job # gone"),
            ("abcdefab-abcd-abcd-abcd-abcdefabcdef", "#"),
            ("lease of worker dxlaisrq expired, 9 s ago", "lease of worker # expired, # s ago"),
            ("at 0x7f3a2b in tensor_3", "at # in #"),
            ("naïve dxlaisrqs – keine Übung", "naïve dxlaisrqs – keine Übung"),
            ("range 1-", "range #-"),
            ("", ""),
        ] {
            assert_eq!(without_ids(text, Some("dxlaisrq")), expected);
        }
    }
}
