//! The kinds of JSON rows.

/// The kind of a JSON row. The store keeps each row under its kind and id, and does not read the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum JsonRowKind {
    // The numbers are on disk: append, never reuse.
    /// Credentials for a registry of container images. Contains secrets.
    RegistryAuth = 1,
    /// A named directory that workers share.
    NetworkVolume = 2,
    /// The metered run time of workers.
    Usage = 3,
    /// The secrets with which an endpoint's webhooks are signed.
    WebhookSecrets = 4,
    /// An owner of keys: its name and its number.
    Owner = 5,
    // Reserved: 6 a schedule, 7 a batch, 8 a file.
    /// A bulk task: a change of many jobs.
    BulkTask = 9,
    /// A value that templates name in the environment of workers.
    Secret = 10,
    /// A session of the console.
    ConsoleSession = 11,
    /// A version of an endpoint. Contains secrets: the texts of `env`.
    EndpointVersion = 12,
    /// A code that opens a session of the console.
    ConsoleCode = 13,
    // Other kinds take 14 and up.
}

impl JsonRowKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::RegistryAuth,
        Self::NetworkVolume,
        Self::Usage,
        Self::WebhookSecrets,
        Self::Owner,
        Self::BulkTask,
        Self::Secret,
        Self::ConsoleSession,
        Self::EndpointVersion,
        Self::ConsoleCode,
    ];

    /// Whether rows of this kind are secrets, which are stored encrypted.
    pub fn is_secret(self) -> bool {
        matches!(self, Self::RegistryAuth | Self::WebhookSecrets | Self::Secret | Self::EndpointVersion)
    }

    /// The kind's number on disk.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number on disk; `None` for an unknown number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::JsonRowKind;

    #[test]
    fn numbers_are_told_apart() {
        let known: alloc::vec::Vec<_> = (0..=u8::MAX).filter_map(JsonRowKind::from_number).collect();
        assert_eq!(known, JsonRowKind::ALL);
        assert_eq!(JsonRowKind::ALL.map(JsonRowKind::number), [1, 2, 3, 4, 5, 9, 10, 11, 12, 13]);
    }
}
