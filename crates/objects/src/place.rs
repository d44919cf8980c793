//! The address of a place in object storage, as an operator writes it.

use std::fmt;
use std::path::PathBuf;

/// Longest prefix in bytes. With the name of a payload, it stays below the 1024 bytes that all providers accept.
const PREFIX_BYTES_MAX: usize = 512;

/// How an address looks.
const EXAMPLES: &str =
    "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix?account=NAME, or file:///srv/longshore";

/// The kind of storage that keeps the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// S3 of AWS, and servers that speak the same protocol.
    S3,
    /// Google Cloud Storage, with its own protocol.
    Google,
    /// Azure Blob Storage, with its own protocol.
    Azure,
    /// A directory, which computers may share.
    Directory,
}

/// A bucket, or a directory, and the prefix of all names in it. Has no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) provider: Provider,
    /// Empty for a directory.
    pub(crate) bucket: String,
    /// Without slashes at its ends; may be empty. For a directory its absolute path.
    pub(crate) prefix: String,
    /// The address of the server, for others than AWS, Google and Azure.
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    /// The storage account of Azure.
    pub(crate) account: Option<String>,
}

impl Place {
    /// Reads an address such as `s3://bucket/prefix?region=eu-central-1`.
    ///
    /// # Errors
    /// What is wrong with it, to be put behind the name of the setting. The text has nothing that may be a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| format!("is no address: it must be like {EXAMPLES}"))?;
        let provider = match scheme {
            "s3" => Provider::S3,
            "gs" => Provider::Google,
            "az" => Provider::Azure,
            "file" => Provider::Directory,
            _ => return Err(format!("begins with `{}://`; it must be like {EXAMPLES}", printable(scheme))),
        };
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        if path.contains('@') {
            return Err(
                "has credentials before `@`: put them into the file of `blobs_credentials_file`".to_owned()
            );
        }
        let mut place =
            if provider == Provider::Directory { directory(path)? } else { bucket(provider, path)? };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            place.set(option)?;
        }
        Ok(place)
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let is_web = value.starts_with("http://") || value.starts_with("https://");
        let is_plain =
            !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        match (name, self.provider) {
            ("endpoint", Provider::S3 | Provider::Google | Provider::Azure)
                if is_web && !value.contains('@') =>
            {
                self.endpoint = Some(value.trim_end_matches('/').to_owned());
            }
            ("endpoint", Provider::S3 | Provider::Google | Provider::Azure) => {
                return Err(
                    "has an `endpoint` that is no address such as https://minio.example:9000".to_owned()
                );
            }
            ("region", Provider::S3) if is_plain => self.region = Some(value.to_owned()),
            ("account", Provider::Azure) if is_plain => self.account = Some(value.to_owned()),
            // The value may be a secret.
            _ => {
                let known = match self.provider {
                    Provider::S3 => "`endpoint` and `region`",
                    Provider::Google => "`endpoint`",
                    Provider::Azure => "`account` and `endpoint`",
                    Provider::Directory => "nothing",
                };
                return Err(format!(
                    "has `{}` behind its `?`, where only {known} can be; keys belong into the file of \
                     `blobs_credentials_file`",
                    printable(name)
                ));
            }
        }
        Ok(())
    }

    /// The directory of `file://`.
    pub fn directory(&self) -> Option<PathBuf> {
        (self.provider == Provider::Directory).then(|| PathBuf::from(&self.prefix))
    }
}

impl fmt::Display for Place {
    /// The bucket and the prefix, which are what the objects' names begin with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.provider {
            Provider::S3 => "s3",
            Provider::Google => "gs",
            Provider::Azure => "az",
            Provider::Directory => "file",
        };
        let slash = if self.prefix.is_empty() || self.prefix.starts_with('/') { "" } else { "/" };
        write!(f, "{scheme}://{}{slash}{}", self.bucket, self.prefix)
    }
}

fn directory(path: &str) -> Result<Place, String> {
    let is_safe = path.starts_with('/') && !path.split('/').any(|part| part == ".." || part == ".");
    if !is_safe || path.trim_matches('/').is_empty() {
        return Err("must name an absolute directory, such as file:///srv/longshore".to_owned());
    }
    Ok(Place { prefix: path.trim_end_matches('/').to_owned(), ..place(Provider::Directory) })
}

fn bucket(provider: Provider, path: &str) -> Result<Place, String> {
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    if bucket.is_empty() {
        return Err(format!("names no bucket: it must be like {EXAMPLES}"));
    }
    if !bucket.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        return Err(format!("has {:?} as its bucket, which is no name of one", printable(bucket)));
    }
    let prefix = prefix.trim_matches('/');
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:=".contains(&b))
    };
    if prefix.len() > PREFIX_BYTES_MAX || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
        return Err(format!(
            "has a prefix that cannot be used: at most {PREFIX_BYTES_MAX} letters, digits and `_ - . : =`, in parts with `/` \
             between them that do not start with a dot"
        ));
    }
    Ok(Place { bucket: bucket.to_owned(), prefix: prefix.to_owned(), ..place(provider) })
}

fn place(provider: Provider) -> Place {
    Place {
        provider,
        bucket: String::new(),
        prefix: String::new(),
        endpoint: None,
        region: None,
        account: None,
    }
}

/// The start of a text, for an error.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_provider_bucket_and_prefix() {
        for (text, shown) in [
            ("s3://jobs", "s3://jobs"),
            ("s3://jobs/", "s3://jobs"),
            ("s3://jobs/prod/eu/?region=eu-central-1&endpoint=http://127.0.0.1:9000/", "s3://jobs/prod/eu"),
            ("gs://jobs/prod", "gs://jobs/prod"),
            ("az://jobs/prod?account=acme", "az://jobs/prod"),
            ("file:///srv/longshore/", "file:///srv/longshore"),
        ] {
            assert_eq!(Place::parse(text).unwrap().to_string(), shown, "{text}");
        }
        let place = Place::parse("s3://jobs/a?region=eu-central-1&endpoint=http://127.0.0.1:9000/").unwrap();
        assert_eq!(place.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(place.region.as_deref(), Some("eu-central-1"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_what_may_be_a_secret() {
        for (text, expected) in [
            ("bucket", "is no address"),
            ("ftp://hidden/x", "begins with `ftp://`"),
            ("s3://", "names no bucket"),
            ("s3:///prefix", "names no bucket"),
            ("s3://key:hidden@bucket", "credentials before `@`"),
            ("s3://b/x?secret_access_key=hidden", "`secret_access_key` behind its `?`"),
            ("s3://b/x?endpoint=http://key:hidden@h", "`endpoint` that is no address"),
            ("s3://b/x?endpoint=minio:9000", "`endpoint` that is no address"),
            ("s3://b/../x", "a prefix that cannot be used"),
            ("s3://b/.x", "a prefix that cannot be used"),
            ("s3://b c/x", "no name of one"),
            ("file://srv/x", "an absolute directory"),
            ("file:///", "an absolute directory"),
            ("file:///srv/../x", "an absolute directory"),
            ("gs://b?region=x", "only `endpoint` can be"),
        ] {
            let refusal = Place::parse(text).unwrap_err();
            assert!(refusal.contains(expected) && !refusal.contains("hidden"), "{text}: {refusal}");
        }
    }
}
