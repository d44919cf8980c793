//! Numbers of requests that a node passes on, so that one that arrives twice is known: a post to a job's stream is stored once.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;

/// The number of a request that a node passes on. Random, so that no two requests about a job have the same one, whichever nodes
/// gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestNo(NonZeroU64);

impl RequestNo {
    /// The number that these random bits make; 0 makes that of 1.
    pub fn from_entropy(bits: u64) -> Self {
        Self(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN))
    }

    /// Reads the text that `Display` writes. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
        NonZeroU64::new(number).map(Self)
    }
}

/// Writes 16 hexadecimal digits.
impl fmt::Display for RequestNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The numbers of the last posts to a stream, the newest first. Posts without a number are not counted.
///
/// A worker awaits the response to a post before the next one, so that one number would do for it. The others are for workers that
/// send several concurrently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastPosts([Option<RequestNo>; Self::MAX]);

impl LastPosts {
    /// How many numbers are kept.
    pub const MAX: usize = 4;

    /// Whether no post had a number.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Whether the post is one of these.
    pub fn contains(&self, post: RequestNo) -> bool {
        self.0.contains(&Some(post))
    }

    /// Adds the newest post, and forgets the oldest one if there are too many.
    pub fn push(&mut self, post: RequestNo) {
        self.0.rotate_right(1);
        self.0[0] = Some(post);
    }

    /// The stored form: 8 bytes for each number, the highest first. Empty without a number.
    pub fn to_stored(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|post| post.0.get().to_be_bytes()).collect()
    }

    /// Reads what [`to_stored`](Self::to_stored) has written. `None` for other bytes.
    pub fn from_stored(stored: &[u8]) -> Option<Self> {
        let (numbers, rest) = stored.as_chunks::<8>();
        if numbers.len() > Self::MAX || !rest.is_empty() {
            return None;
        }
        let mut posts = Self::default();
        for (place, bytes) in posts.0.iter_mut().zip(numbers) {
            *place = Some(RequestNo(NonZeroU64::new(u64::from_be_bytes(*bytes))?));
        }
        Some(posts)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use alloc::vec;

    use super::*;

    fn posts(numbers: &[u64]) -> LastPosts {
        let mut posts = LastPosts::default();
        for number in numbers {
            posts.push(RequestNo::from_entropy(*number));
        }
        posts
    }

    #[test]
    fn the_last_four_posts_are_known() {
        let kept = posts(&[1, 2, 3, 4, 5]);
        let known = [1, 2, 3, 4, 5, 6].map(|number| kept.contains(RequestNo::from_entropy(number)));
        assert_eq!(known, [false, true, true, true, true, false]);
        assert!(!kept.is_empty() && LastPosts::default().is_empty());
    }

    #[test]
    fn the_stored_form_has_eight_bytes_for_each_number() {
        assert_eq!(posts(&[]).to_stored(), [0; 0]);
        assert_eq!(posts(&[7, 258]).to_stored(), [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7]);
        for count in 0..=5 {
            let kept = posts(&(1..=count).collect::<Vec<_>>());
            assert_eq!(LastPosts::from_stored(&kept.to_stored()), Some(kept));
        }
        for other in [vec![0; 8], vec![1; 7], vec![1; 9], vec![1; 40]] {
            assert_eq!(LastPosts::from_stored(&other), None, "{other:?}");
        }
    }

    #[test]
    fn a_number_is_read_from_its_text_only() {
        for bits in [0, 1, 0xabc, u64::MAX] {
            let post = RequestNo::from_entropy(bits);
            assert_eq!(RequestNo::parse(&post.to_string()), Some(post));
        }
        for other in
            ["", "1", "0000000000000000", "+00000000000000a", "000000000000000A", "00000000000000001"]
        {
            assert_eq!(RequestNo::parse(other), None, "{other}");
        }
    }
}
