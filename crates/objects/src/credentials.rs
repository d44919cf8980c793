//! The file with the keys for object storage: lines `NAME=value`, with the names of the providers' environment variables.

use std::fmt;
use std::path::Path;

use crate::place::Provider;

/// Largest file. A key of a service account has about 3 KB.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Keys for object storage, by the names of the providers' environment variables in lower case.
#[derive(Clone, Default)]
pub struct Credentials {
    pub(crate) values: Vec<(String, String)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.values.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

impl Credentials {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it. The text has the number of the line, and no value.
    pub fn read(path: &Path) -> Result<Self, String> {
        let about = |what: String| format!("the file {} {what}", path.display());
        let size = std::fs::metadata(path).map_err(|cause| about(format!("cannot be read: {cause}")))?.len();
        if size > FILE_BYTES_MAX {
            return Err(about(format!("has {size} bytes, which is no file with keys")));
        }
        let text =
            std::fs::read_to_string(path).map_err(|cause| about(format!("cannot be read: {cause}")))?;
        Self::parse(&text).map_err(about)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut values = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            // AWS's own file has its keys below the name of a profile.
            if line.is_empty() || line.starts_with('#') || line == "[default]" {
                continue;
            }
            let malformed = || {
                format!(
                    "has no `NAME=value` in line {number}, such as AWS_SECRET_ACCESS_KEY=… with the key behind it"
                )
            };
            let (name, value) = line.split_once('=').ok_or_else(malformed)?;
            let name = name.trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && name.contains('_');
            if !is_name || value.is_empty() {
                return Err(malformed());
            }
            values.push((name, value.to_owned()));
        }
        Ok(Self { values })
    }

    /// Fails if a name is not one of the provider's.
    pub(crate) fn check(&self, provider: Provider) -> Result<(), String> {
        let start = match provider {
            Provider::S3 => "aws_",
            Provider::Google => "google_",
            Provider::Azure => "azure_",
            Provider::Directory => return Ok(()),
        };
        match self.values.iter().find(|(name, _)| !name.starts_with(start)) {
            None => Ok(()),
            Some((name, _)) => Err(format!(
                "the file of `blobs_credentials_file` has {}; for this address all names begin with {}",
                name.to_ascii_uppercase(),
                start.to_ascii_uppercase()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_environment_files_and_of_aws_are_read() {
        let text = "# keys\n[default]\naws_access_key_id = AK\nAWS_SECRET_ACCESS_KEY=\"hidden=\"\n\n";
        let read = Credentials::parse(text).unwrap();
        assert_eq!(read.values[1], ("aws_secret_access_key".to_owned(), "hidden=".to_owned()));
        assert!(read.check(Provider::S3).is_ok() && read.check(Provider::Google).is_err());
        assert!(!format!("{read:?}").contains("hidden"));
    }

    #[test]
    fn a_line_that_is_no_key_is_named_by_its_number_alone() {
        for text in ["AWS_X=1\nhidden", "AWS_X=1\n=hidden", "AWS_X=1\nhidden value=", "AWS_X=1\n[hidden]"] {
            let refusal = Credentials::parse(text).unwrap_err();
            assert!(refusal.contains("line 2") && !refusal.contains("hidden"), "{refusal}");
        }
    }
}
