//! Slugs: the readable addresses of endpoints under `/v2`.

/// The form of a slug, without its length. In a path, a `/` of the slug is escaped as `%2F`.
pub const SLUG_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$";
/// The shortest slug, in characters.
pub const SLUG_CHARS_MIN: usize = 2;
/// The longest slug, in characters.
pub const SLUG_CHARS_MAX: usize = 128;

/// First words of addresses under `/v2` that belong to a management API there.
const RESERVED: [&str; 13] = [
    "account",
    "billing",
    "catalog",
    "clusters",
    "global-volumes",
    "network-volumes",
    "openapi.json",
    "pods",
    "registries",
    "serverless",
    "templates",
    "user",
    "v2",
];

/// Whether a text has the form of a slug.
pub fn is_slug(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    (SLUG_CHARS_MIN..=SLUG_CHARS_MAX).contains(&text.len()) && text.split('/').all(is_word)
}

/// Whether a slug is reserved: an endpoint cannot change to it. An endpoint that already has it keeps it.
pub fn is_reserved_slug(slug: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(slug))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_what_model_identifiers_are() {
        let (longest, longer) = (["a"; 128].concat(), ["a"; 129].concat());
        for slug in
            ["ab", "a-", "0a", "my-model-2", "Qwen/Qwen2.5-0.5B_Instruct", "a/b/c", "A.", "a..b", &longest]
        {
            assert!(is_slug(slug), "{slug}");
        }
        for text in
            ["", "a", "-a", ".a", "a b", "ä-b", "a//b", "/ab", "ab/", "a/.b", "a/..", "a%2Fb", "a?b", "a\nb"]
        {
            assert!(!is_slug(text), "{text}");
        }
        assert!(!is_slug(&longer));
    }

    #[test]
    fn what_is_reserved_is_so_in_any_case() {
        assert!(
            is_reserved_slug("serverless")
                && is_reserved_slug("Serverless")
                && is_reserved_slug("openapi.json")
        );
        assert!(!is_reserved_slug("serverless-2") && !is_reserved_slug("user/model"));
        assert!(RESERVED.iter().all(|word| is_slug(word)));
    }
}
