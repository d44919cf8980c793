//! Opens a place with its credentials.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;

use longshore_trust::Roots;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use crate::place::Provider;
use crate::transport::Transport;
use crate::{Credentials, ObjectError, Place, Storage};

/// A request that failed is sent again at most this often, and only within [`RETRY_TIME`].
const RETRIES_MAX: usize = 4;
const RETRY_TIME: Duration = Duration::from_secs(10);

impl Storage {
    /// Opens a place. Without `credentials`, those of the environment count, and those that the computer's provider gives.
    /// Sends nothing yet.
    ///
    /// # Errors
    /// What cannot be used, without secrets.
    pub fn open(place: &Place, credentials: &Credentials, roots: &Roots) -> Result<Self, ObjectError> {
        credentials.check(place.provider).map_err(ObjectError::NotPermitted)?;
        let store: Arc<dyn ObjectStore> = match place.provider {
            Provider::S3 => Arc::new(s3(place, credentials, roots)?),
            Provider::Google => Arc::new(google(place, credentials, roots)?),
            Provider::Azure => Arc::new(azure(place, credentials, roots)?),
            Provider::Directory => Arc::new(directory(place)?),
        };
        let prefix = if place.provider == Provider::Directory { "" } else { place.prefix.as_str() };
        Ok(Self::new(store, prefix, &place.to_string()))
    }

    /// Objects in memory, for tests.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(object_store::memory::InMemory::new()), "prefix", "memory://prefix")
    }
}

fn s3(place: &Place, credentials: &Credentials, roots: &Roots) -> Result<impl ObjectStore, ObjectError> {
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in &credentials.values {
        let key = name.parse().map_err(|_| unknown(name))?;
        builder = builder.with_config(key, value);
    }
    builder = builder.with_bucket_name(&place.bucket);
    if let Some(region) = &place.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &place.endpoint {
        builder = builder.with_endpoint(endpoint);
        // Only AWS gives credentials to its computers.
        if builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId).is_none() {
            return Err(ObjectError::NotPermitted(
                "there are no keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong into the file of \
                 `blobs_credentials_file`"
                    .to_owned(),
            ));
        }
    }
    builder.with_retry(retries()).with_http_connector(Transport::with_roots(roots)).build().map_err(unusable)
}

fn google(place: &Place, credentials: &Credentials, roots: &Roots) -> Result<impl ObjectStore, ObjectError> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in &credentials.values {
        let key = name.parse().map_err(|_| unknown(name))?;
        builder = builder.with_config(key, value);
    }
    if let Some(endpoint) = &place.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    let builder = builder.with_bucket_name(&place.bucket).with_retry(retries());
    builder.with_http_connector(Transport::with_roots(roots)).build().map_err(unusable)
}

fn azure(place: &Place, credentials: &Credentials, roots: &Roots) -> Result<impl ObjectStore, ObjectError> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (name, value) in &credentials.values {
        let key = name.parse().map_err(|_| unknown(name))?;
        builder = builder.with_config(key, value);
    }
    if let Some(account) = &place.account {
        builder = builder.with_account(account);
    }
    if let Some(endpoint) = &place.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    let builder = builder.with_container_name(&place.bucket).with_retry(retries());
    builder.with_http_connector(Transport::with_roots(roots)).build().map_err(unusable)
}

fn directory(place: &Place) -> Result<impl ObjectStore + use<>, ObjectError> {
    let path = &place.prefix;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|cause| ObjectError::Failed(format!("the directory {path} cannot be made: {cause}")))?;
    Ok(LocalFileSystem::new_with_prefix(path).map_err(unusable)?.with_fsync(true))
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME }
}

fn unknown(name: &str) -> ObjectError {
    ObjectError::NotPermitted(format!(
        "the file of `blobs_credentials_file` has {}, which means nothing for this address",
        name.to_ascii_uppercase()
    ))
}

/// The builders' errors name what is missing, and may quote a key that they cannot read.
#[expect(clippy::needless_pass_by_value, reason = "it is the function of a `map_err`")]
fn unusable(error: object_store::Error) -> ObjectError {
    ObjectError::of(&error)
}
