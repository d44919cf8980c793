//! Why a TLS connection was not made, in the words of users.

use std::error::Error;
use std::fmt;
use std::io;

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error as TlsError, InvalidMessage};

/// Why a TLS connection was not made. `Display` is a reason that follows a colon, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// The peer's first bytes are not TLS: usually it speaks plain HTTP on this port.
    NotTls,
    /// No trusted authority signed the certificate.
    UnknownIssuer,
    /// The peer's own certificate is marked as an authority's, which TLS clients refuse, trusted or not.
    AuthorityAsServer,
    /// The certificate is for other names.
    OtherName {
        /// The host of the URL.
        expected: String,
        /// The names and addresses in the certificate; may be empty.
        presented: Vec<String>,
    },
    /// The certificate is no longer valid.
    Expired {
        /// The certificate's last second, RFC 3339; empty if unknown.
        not_after: String,
    },
    /// The certificate is not valid yet, or this computer's clock is behind.
    NotYetValid {
        /// The certificate's first second, RFC 3339; empty if unknown.
        not_before: String,
    },
    /// Another reason, in the words of the TLS library.
    Other(String),
}

impl TlsProblem {
    /// Returns the problem that an error of an HTTP client stands for; `None` if TLS is not the cause.
    pub fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(tls) = error.downcast_ref::<TlsError>() {
                return Some(Self::of(tls));
            }
            // The source of an I/O error is the source of the error inside, so that one must be asked for.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            cause = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
        }
        None
    }

    /// Returns the reason, with `peer` as the name of the other side, such as "the receiver".
    pub fn about(&self, peer: &str) -> String {
        let reason = match self {
            Self::NotTls => return format!("{peer} does not speak TLS here"),
            Self::Other(text) => return format!("the TLS connection failed: {text}"),
            Self::UnknownIssuer => "is not signed by a known authority".to_owned(),
            Self::AuthorityAsServer => {
                "is an authority's (CA:TRUE), which is not valid for a server".to_owned()
            }
            Self::OtherName { expected, presented } if presented.is_empty() => {
                format!("is not for {expected}; it has no names")
            }
            Self::OtherName { expected, presented } => {
                format!("is not for {expected}, but for {}", presented.join(", "))
            }
            Self::Expired { not_after } if not_after.is_empty() => "has expired".to_owned(),
            Self::Expired { not_after } => format!("expired at {not_after}"),
            Self::NotYetValid { not_before } if not_before.is_empty() => "is not valid yet".to_owned(),
            Self::NotYetValid { not_before } => format!("is not valid before {not_before}"),
        };
        format!("{peer}'s certificate {reason}")
    }

    fn of(error: &TlsError) -> Self {
        match error {
            TlsError::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NotTls,
            TlsError::InvalidCertificate(error) => Self::of_certificate(error),
            other => Self::Other(other.to_string()),
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::NotValidForNameContext { expected, presented } => Self::OtherName {
                expected: expected.to_str().into_owned(),
                presented: presented.iter().map(|name| plain_name(name).to_owned()).collect(),
            },
            CertificateError::Expired => Self::Expired { not_after: String::new() },
            CertificateError::ExpiredContext { not_after, .. } => {
                Self::Expired { not_after: rfc3339(*not_after) }
            }
            CertificateError::NotValidYet => Self::NotYetValid { not_before: String::new() },
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid { not_before: rfc3339(*not_before) }
            }
            // The TLS library has no variant of its own for this error of its certificate parser.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Self::AuthorityAsServer
            }
            other => Self::Other(other.to_string()),
        }
    }
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.about("the server"))
    }
}

/// Returns the name in a description such as `DnsName("a.example")` or `IpAddress(10.0.0.1)`; the description itself if
/// it has another form.
fn plain_name(description: &str) -> &str {
    let inside = description.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.map_or(description, |name| name.trim_matches('"'))
}

fn rfc3339(time: UnixTime) -> String {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .map(|time| time.to_string())
        .unwrap_or_default()
}
