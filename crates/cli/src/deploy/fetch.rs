//! Fetches deployed code from a server, for a worker on another computer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::read::GzDecoder;
use longshore_client::Client;
use longshore_model::CodeHash;
use ring::digest::{SHA256, digest};

use super::{code_cache, short};
use crate::dev::error::DevError;
use crate::screen::Screen;

/// Environment variable with the address of the code, which ends with its hash.
const URL_ENV: &str = "LONGSHORE_CODE_URL";
/// Environment variable with the token of a worker.
const TOKEN_ENV: &str = "RUNPOD_AI_API_KEY";

/// Returns the folder of the code at `from`, or else at the address in the environment. Fetches it into the folder `cache`
/// unless it is there.
pub(super) async fn fetched(
    from: Option<&str>,
    cache: Option<&Path>,
    screen: &Screen,
) -> Result<PathBuf, DevError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = from.map(str::to_owned).or_else(|| variable(URL_ENV)).ok_or_else(|| {
        DevError::new(format!(
            "there is no code to run: name a folder, or an address with --from or in {URL_ENV}; the answer of \
             `POST /v1/endpoints/ENDPOINT/worker-token` has it"
        ))
    })?;
    let hash: CodeHash = url.rsplit('/').next().unwrap_or_default().parse().map_err(|error| {
        DevError::new(format!("the address of code must end with its hash, as {URL_ENV} does: {error}"))
    })?;
    let cache = cache.map(Path::to_owned).or_else(default_cache).ok_or_else(|| {
        DevError::new("there is no home folder to keep the code in: name a folder with --cache")
    })?;
    let folder = cache.join(hash.as_str());
    let cannot = |error: io::Error| DevError::new(format!("cannot use {}: {error}", folder.display()));
    if code_cache::keep(&folder).map_err(cannot)? {
        return Ok(folder);
    }
    let token = variable(TOKEN_ENV).ok_or_else(|| {
        DevError::new(format!("there is no worker token in {TOKEN_ENV} to fetch the code with"))
    })?;
    let step = screen.step(format!("fetching code {}", short(hash.as_str())));
    let archive = Client::new(&url, &token)?.code_archive(&url).await?;
    let found = const_hex::encode(digest(&SHA256, &archive));
    if found != hash.as_str() {
        return Err(DevError::new(format!(
            "the archive from {url} is not the code {}: its hash is {}; nothing was run",
            short(hash.as_str()),
            short(&found)
        )));
    }
    let unpacked = tokio::task::spawn_blocking(move || {
        unpack(&archive, &cache, &hash)?;
        // Other workers remove no folder that is kept.
        code_cache::keep(&cache.join(hash.as_str()))?;
        code_cache::prune(&cache);
        Ok(())
    });
    let unpacked = unpacked.await.map_err(io::Error::other).and_then(|unpacked| unpacked);
    unpacked
        .map_err(|error| DevError::new(format!("cannot unpack the code to {}: {error}", folder.display())))?;
    step.done("code fetched");
    Ok(folder)
}

/// Unpacks code into the folder of its hash, which appears whole. Several workers may do this concurrently.
fn unpack(archive: &Bytes, cache: &Path, hash: &CodeHash) -> io::Result<()> {
    fs::create_dir_all(cache)?;
    let draft = cache.join(format!(".{hash}.{}", std::process::id()));
    let folder = cache.join(hash.as_str());
    let placed = fs::create_dir(&draft)
        .and_then(|()| tar::Archive::new(GzDecoder::new(&archive[..])).unpack(&draft))
        .and_then(|()| fs::rename(&draft, &folder));
    if placed.is_err() {
        let _ = fs::remove_dir_all(&draft);
        // Another worker was faster.
        return if folder.is_dir() { Ok(()) } else { placed };
    }
    Ok(())
}

/// `longshore/code` in the user's folder for files that can be fetched again.
fn default_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
    Some(base.join("longshore/code"))
}
