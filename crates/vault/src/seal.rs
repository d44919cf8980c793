//! Seals and opens one text under one master key.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use crate::{MasterKey, NoRandom};

const SALT_BYTES: usize = 16;
/// The HKDF info of the keys of single texts.
const PURPOSE: &[u8] = b"longshore sealed 1";
/// The nonce may be constant, because each derived key seals one text.
const NONCE: [u8; 12] = [0; 12];

/// Seals a text. Returns salt, ciphertext and tag in hexadecimal.
pub(crate) fn seal(master: &MasterKey, context: &str, text: &[u8]) -> Result<String, NoRandom> {
    let mut salt = [0; SALT_BYTES];
    SystemRandom::new().fill(&mut salt).map_err(|_| NoRandom)?;
    let mut sealed = text.to_vec();
    let key = key_for(master, &salt).ok_or(NoRandom)?;
    let nonce = Nonce::assume_unique_for_key(NONCE);
    key.seal_in_place_append_tag(nonce, Aad::from(context), &mut sealed).map_err(|_| NoRandom)?;
    Ok(const_hex::encode(salt) + &const_hex::encode(&sealed))
}

/// Opens a sealed text. `None` if it was changed or sealed in another context.
pub(crate) fn open(master: &MasterKey, context: &str, sealed: &str) -> Option<Vec<u8>> {
    let bytes = bytes_of(sealed)?;
    let (salt, sealed) = bytes.split_at_checked(SALT_BYTES)?;
    let mut sealed = sealed.to_vec();
    let key = key_for(master, salt)?;
    let nonce = Nonce::assume_unique_for_key(NONCE);
    let text = key.open_in_place(nonce, Aad::from(context), &mut sealed).ok()?;
    Some(text.to_vec())
}

/// Decodes lower-case hexadecimal. `None` for upper-case digits or a prefix `0x`, so that bytes have one text only.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    const_hex::decode(text).ok().filter(|bytes| const_hex::encode(bytes) == text)
}

fn key_for(master: &MasterKey, salt: &[u8]) -> Option<LessSafeKey> {
    let extracted = Salt::new(HKDF_SHA256, salt).extract(master.bytes());
    // Fails only for lengths above HKDF's limit.
    let expanded = extracted.expand(&[PURPOSE], &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(expanded)))
}
