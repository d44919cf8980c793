//! Signs calls after the Standard Webhooks scheme: `v1,` and the Base64 of an HMAC-SHA256 over id, time and body.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use longshore_model::Millis;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// What secrets begin with when they are shown.
const PREFIX: &str = "whsec_";
/// The most secrets that are good at a time.
const SECRETS_MAX: usize = 3;

/// The secrets of one endpoint, the newest first.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Secrets {
    secrets: Vec<Secret>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Secret {
    /// Base64.
    key: String,
    created_at: Millis,
    /// From then on it is not used any more; none: until there is a newer one.
    expires_at: Option<Millis>,
}

/// What may be told of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookSecret {
    /// When it was made.
    pub created_at: Millis,
    /// Until when calls are signed with it, too; none for the newest.
    pub expires_at: Option<Millis>,
}

impl Secrets {
    /// As they are kept.
    pub fn to_json(&self) -> Bytes {
        // Texts and numbers always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// From what is kept.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// Makes the newest secret of these random bits; the others are good for `overlap_ms` more. Answers its text.
    pub fn rotate(&mut self, bits: [u128; 2], now: Millis, overlap_ms: u64) -> String {
        let end = now + overlap_ms;
        self.secrets.retain(|secret| secret.is_good(now));
        for secret in &mut self.secrets {
            secret.expires_at = Some(secret.expires_at.map_or(end, |before| before.min(end)));
        }
        let key = BASE64.encode(bits.map(u128::to_be_bytes).concat());
        let text = format!("{PREFIX}{key}");
        self.secrets.insert(0, Secret { key, created_at: now, expires_at: None });
        self.secrets.retain(|secret| secret.is_good(now));
        self.secrets.truncate(SECRETS_MAX);
        text
    }

    /// Those that are good now, newest first.
    pub fn shown(&self, now: Millis) -> Vec<WebhookSecret> {
        let good = self.secrets.iter().filter(|secret| secret.is_good(now));
        good.map(|secret| WebhookSecret { created_at: secret.created_at, expires_at: secret.expires_at })
            .collect()
    }

    /// The value of `webhook-signature`: one signature for each secret that is good. None without a secret.
    pub fn sign(&self, id: &str, now: Millis, body: &[u8]) -> Option<String> {
        let mut signatures = String::new();
        for secret in self.secrets.iter().filter(|secret| secret.is_good(now)) {
            // What was kept is what was made; a record that was tampered with signs nothing.
            let Ok(key) = BASE64.decode(&secret.key) else { continue };
            let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
            context.update(format!("{id}.{}.", seconds(now)).as_bytes());
            context.update(body);
            let gap = if signatures.is_empty() { "" } else { " " };
            // Writing into memory cannot fail.
            let _ = write!(signatures, "{gap}v1,{}", BASE64.encode(context.sign()));
        }
        (!signatures.is_empty()).then_some(signatures)
    }
}

impl Secret {
    fn is_good(&self, now: Millis) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// The value of `webhook-timestamp`.
pub(super) fn seconds(at: Millis) -> u64 {
    at.0 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> Secrets {
        let key = text.strip_prefix(PREFIX).unwrap().to_owned();
        Secrets { secrets: vec![Secret { key, created_at: Millis(0), expires_at: None }] }
    }

    #[test]
    fn a_signature_is_that_of_the_scheme() {
        // The example that implementations of the scheme test themselves with.
        let secrets = of_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = secrets.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Millis(1_614_265_330_000),
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn two_signatures_while_two_secrets_are_good() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.sign("a", Millis(1), b"x"), None);
        let first = secrets.rotate([1, 2], Millis(1_000), 500);
        let second = secrets.rotate([3, 4], Millis(2_000), 500);
        let sign = |secrets: &Secrets, at| secrets.sign("a", Millis(at), b"x").unwrap();
        let (old, new) = (sign(&of_text(&first), 2_100), sign(&of_text(&second), 2_100));
        assert_eq!(sign(&secrets, 2_499), format!("{new} {old}"));
        assert_eq!(sign(&secrets, 2_500), new);
        assert_eq!(secrets.shown(Millis(2_499)).len(), 2);
        let shown = [WebhookSecret { created_at: Millis(2_000), expires_at: None }];
        assert_eq!(secrets.shown(Millis(2_500)), shown);
        let kept = Secrets::from_json(&secrets.to_json()).unwrap();
        assert_eq!(sign(&kept, 2_500), new);
    }

    #[test]
    fn a_rotation_without_overlap_ends_the_others_at_once_and_never_keeps_many() {
        let mut secrets = Secrets::default();
        secrets.rotate([1, 2], Millis(1), 0);
        secrets.rotate([3, 4], Millis(2), 0);
        assert_eq!(secrets.shown(Millis(2)).len(), 1);
        for at in 3..20 {
            secrets.rotate([at, at], Millis(at as u64), 1_000_000);
        }
        assert_eq!(secrets.shown(Millis(20)).len(), SECRETS_MAX);
        assert_eq!(secrets.shown(Millis(20))[1].expires_at, Some(Millis(1_000_019)));
    }

    #[test]
    fn secrets_are_long_and_of_the_known_form() {
        let text = Secrets::default().rotate([u128::MAX, 0], Millis(1), 0);
        assert_eq!(text.len(), PREFIX.len() + 44);
        assert_eq!(BASE64.decode(&text[PREFIX.len()..]).unwrap().len(), 32);
    }
}
