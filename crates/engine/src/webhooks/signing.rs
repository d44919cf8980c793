//! Signs calls by the Standard Webhooks scheme: `v1,` and the Base64 of an HMAC-SHA256 over id, time and body.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use longshore_model::Millis;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// The prefix of a secret in the API, before its Base64.
const PREFIX: &str = "whsec_";
/// Limit of the secrets of an endpoint that are valid at one time; a rotation drops the oldest ones over it.
const SECRETS_MAX: usize = 3;

/// The webhook secrets of one endpoint, newest first. Stored as a JSON row, sealed.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Secrets {
    secrets: Vec<Secret>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Secret {
    /// The key's 32 bytes in Base64.
    key: String,
    created_at: Millis,
    /// When the secret becomes invalid; `None` for the newest.
    expires_at: Option<Millis>,
}

/// The times of a secret, without its key: the API shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookSecret {
    /// When a rotation made the secret.
    pub created_at: Millis,
    /// Until when calls are signed with the secret; `None` for the newest.
    pub expires_at: Option<Millis>,
}

impl Secrets {
    /// Returns the JSON of the stored row. It contains the keys.
    pub fn to_json(&self) -> Bytes {
        // Texts and numbers always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Parses the JSON of a stored row.
    ///
    /// # Errors
    ///
    /// The JSON is invalid or has other members.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// Adds a new secret made of `bits`, which must be random, and returns its text. The other secrets stay valid for
    /// `overlap_ms` ms at most.
    pub fn rotate(&mut self, bits: [u128; 2], now: Millis, overlap_ms: u64) -> String {
        let end = now + overlap_ms;
        self.secrets.retain(|secret| secret.is_valid(now));
        for secret in &mut self.secrets {
            secret.expires_at = Some(secret.expires_at.map_or(end, |before| before.min(end)));
        }
        let key = BASE64.encode(bits.map(u128::to_be_bytes).concat());
        let text = format!("{PREFIX}{key}");
        self.secrets.insert(0, Secret { key, created_at: now, expires_at: None });
        self.secrets.retain(|secret| secret.is_valid(now));
        self.secrets.truncate(SECRETS_MAX);
        text
    }

    /// Returns the times of the secrets that are valid now, newest first.
    pub fn shown(&self, now: Millis) -> Vec<WebhookSecret> {
        let valid = self.secrets.iter().filter(|secret| secret.is_valid(now));
        valid
            .map(|secret| WebhookSecret { created_at: secret.created_at, expires_at: secret.expires_at })
            .collect()
    }

    /// Returns the value of the `webhook-signature` header: one signature per valid secret, newest first, separated by
    /// spaces. `None` without a valid secret.
    pub fn sign(&self, id: &str, now: Millis, body: &[u8]) -> Option<String> {
        let mut signatures = String::new();
        for secret in self.secrets.iter().filter(|secret| secret.is_valid(now)) {
            // Only a row that was changed outside of the server has another key; it signs nothing.
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
    fn is_valid(&self, now: Millis) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// Returns the value of the `webhook-timestamp` header: seconds since the epoch.
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
    fn the_signature_matches_the_test_vector_of_the_scheme() {
        // The test vector of the scheme's own implementations.
        let secrets = of_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = secrets.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Millis(1_614_265_330_000),
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn there_are_two_signatures_while_two_secrets_are_valid() {
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
        let stored = Secrets::from_json(&secrets.to_json()).unwrap();
        assert_eq!(sign(&stored, 2_500), new);
    }

    #[test]
    fn a_rotation_without_overlap_ends_the_others_immediately_and_the_number_is_limited() {
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
    fn a_secret_has_the_prefix_and_32_bytes() {
        let text = Secrets::default().rotate([u128::MAX, 0], Millis(1), 0);
        assert_eq!(text.len(), PREFIX.len() + 44);
        assert_eq!(BASE64.decode(&text[PREFIX.len()..]).unwrap().len(), 32);
    }
}
