//! The keys that encrypt stored secrets: read at the start, and changed by `longshore secret`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use longshore_cli::{NewKeyArgs, RotateArgs, ServeArgs};
use longshore_vault::{Keyring, MasterKey};

use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{confidential, parts, serve};

/// Environment variable with keys.
const VARIABLE: &str = "LONGSHORE_SECRETS_KEY";

/// The keys of the variable, followed by those of the file.
pub(crate) fn vault(settings: &Settings) -> Result<Keyring, StartupError> {
    let mut keys = Vec::new();
    if let Some(text) = confidential::variable(VARIABLE) {
        keys = read(VARIABLE, &text)?;
    }
    let path = &settings.secrets_key_file;
    if !path.as_os_str().is_empty() {
        let origin = path.display().to_string();
        let unreadable =
            |cause: io::Error| StartupError::SecretsKey { origin: origin.clone(), cause: cause.to_string() };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(path = %origin, "secrets key file is accessible to other users; set its mode to 600");
        }
        let in_file = read(&origin, &text)?;
        let new = in_file.into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>();
        keys.extend(new);
    }
    Ok(Keyring::new(keys))
}

fn read(origin: &str, text: &str) -> Result<Vec<MasterKey>, StartupError> {
    MasterKey::read_all(text)
        .map_err(|cause| StartupError::SecretsKey { origin: origin.to_owned(), cause: cause.to_string() })
}

/// Prints a line. A closed standard output does not fail a finished command.
fn tell(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Runs `longshore secret new-key`.
pub(crate) fn new_key(args: &NewKeyArgs) -> Result<(), StartupError> {
    let key = MasterKey::mint().map_err(|_| StartupError::NoRandom)?;
    let line = format!("# longshore secrets key {}\n{}\n", key.id(), key.text());
    let Some(path) = &args.file else {
        // A closed pipe means that the reader does not need the key.
        let _ = io::stdout().write_all(line.as_bytes());
        return Ok(());
    };
    let cannot = |cause| StartupError::NewSecretsKey { path: path.clone(), cause };
    let before = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot(error)),
    };
    if !before.trim().is_empty() {
        read(&path.display().to_string(), &before)?;
    }
    replace(path, &format!("{line}{before}")).map_err(cannot)?;
    tell(&format!("key {} is the first one in {}", key.id(), path.display()));
    tell("store a copy outside the data directory: without the key its secrets are lost");
    Ok(())
}

/// Replaces the file atomically and durably, because secrets are lost with their keys.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    // A leftover of a crash may have other permissions.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

/// Runs `longshore secret rotate`.
pub(crate) async fn rotate(args: &RotateArgs) -> Result<(), StartupError> {
    let args = ServeArgs {
        data_dir: args.data_dir.clone(),
        config: args.config.clone(),
        secrets_key_file: args.secrets_key_file.clone(),
        ..ServeArgs::default()
    };
    let settings = Settings::load(&args, serve::environment())?;
    let vault = vault(&settings)?;
    let Some(first) = vault.key_ids().into_iter().next() else {
        let cause = "no key: name a file with --secrets-key-file, or set LONGSHORE_SECRETS_KEY".to_owned();
        return Err(StartupError::SecretsKey { origin: "nothing".to_owned(), cause });
    };
    let data = parts::open_data(&settings).await?;
    let done = longshore_engine::reseal(data.store.as_ref(), data.blobs.as_ref(), &vault).await?;
    tell(&format!("sealed under key {first}: {} records, {} jobs", done.records, done.jobs));
    if done.closed_jobs > 0 {
        let closed = done.closed_jobs;
        tell(&format!("{closed} jobs have an `s3Config` that no key decrypts; their workers get none"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_goes_in_front_of_the_others_and_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let args = NewKeyArgs { file: Some(path.clone()) };
        new_key(&args).unwrap();
        let first = fs::read_to_string(&path).unwrap();
        new_key(&args).unwrap();
        let both = fs::read_to_string(&path).unwrap();
        assert!(both.ends_with(&first) && both.len() == 2 * first.len());
        assert_eq!(MasterKey::read_all(&both).unwrap().len(), 2);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "no key\n").unwrap();
        let error = new_key(&args).unwrap_err().to_string();
        assert!(error.contains("line 1 is not a key"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "no key\n");
    }
}
