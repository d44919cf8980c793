//! The CSRF value of a session: what the console's script sends, and no other page knows.

use ring::hmac;

const CONTEXT: &[u8] = b"longshore console csrf";

/// The CSRF value of the session whose cookie has this value: 64 hexadecimal digits. It follows from the cookie, so that it
/// needs no storage and every server of an installation knows it; the cookie does not follow from it.
pub(crate) fn csrf_of(cookie: &str) -> String {
    const_hex::encode(hmac::sign(&key(cookie), CONTEXT))
}

/// Whether `sent` is the CSRF value of the session with this cookie. The comparison takes constant time.
pub(crate) fn is_csrf_of(cookie: &str, sent: &[u8]) -> bool {
    const_hex::decode(sent).is_ok_and(|mac| hmac::verify(&key(cookie), CONTEXT, &mac).is_ok())
}

fn key(cookie: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, cookie.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_one_cookie() {
        let csrf = csrf_of("a");
        assert_eq!(csrf.len(), 64);
        assert!(is_csrf_of("a", csrf.as_bytes()));
        assert!(!is_csrf_of("b", csrf.as_bytes()));
        for bad in ["", "new", "00", &csrf[..62], &format!("{csrf}00"), "é"] {
            assert!(!is_csrf_of("a", bad.as_bytes()), "{bad}");
        }
    }
}
