//! The names and addresses in a server's certificate.

use std::net::IpAddr;

use super::unusable_name;
use crate::exit::CommandResult;

/// Longest host name in bytes (RFC 1035).
const NAME_BYTES_MAX: usize = 253;
/// Longest label of a host name in bytes (RFC 1035).
const LABEL_BYTES_MAX: usize = 63;

/// Returns the given names in their order, each once.
///
/// # Errors
///
/// A name is neither a host name, with or without `*.` in front, nor an IP address.
pub(super) fn checked(given: &[String]) -> CommandResult<Vec<String>> {
    let mut names = Vec::new();
    for name in given {
        if !is_usable(name) {
            return Err(unusable_name(name));
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

/// Returns the host name of this computer, if it is one that a certificate can have, and the names of the loopback
/// address.
pub(super) fn of_this_computer() -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = Some(host).filter(|host| is_usable(host) && host != "localhost");
    host.into_iter().chain(["localhost", "127.0.0.1", "::1"].map(str::to_owned)).collect()
}

/// Returns whether a certificate can have this name.
fn is_usable(name: &str) -> bool {
    if name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let host = name.strip_prefix("*.").unwrap_or(name);
    // A name such as 10.0.0 or 1.2.3.4.5 is a mistyped address.
    let is_number =
        host.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    name.len() <= NAME_BYTES_MAX && !is_number && host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_urls_and_typing_errors() {
        for name in ["gpu.lan", "gpu", "GPU-1.lan", "my_box", "*.lan", "10.0.0.7", "::1", "fd00::7", "a1"] {
            assert!(is_usable(name), "{name}");
        }
        let long = "a".repeat(64);
        for name in [
            "",
            ".",
            "gpu.",
            "a..b",
            "https://gpu.lan",
            "gpu.lan:8080",
            "[::1]",
            "10.0.0",
            "10.0.0.256",
            "a b",
            "-a",
            "a-",
            "*",
            "*.*.lan",
            "a.*",
            "köln.lan",
            long.as_str(),
        ] {
            assert!(!is_usable(name), "{name}");
        }
    }

    #[test]
    fn repeated_names_are_in_the_certificate_once() {
        let given = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(checked(&given).unwrap(), ["b", "a"]);
        assert!(of_this_computer().ends_with(&["localhost", "127.0.0.1", "::1"].map(str::to_owned)));
    }
}
