//! Whether this server belongs to the cluster of its database: it must have the keys of the other servers, and its data directory
//! must be of no other cluster.

use std::fs;
use std::io;

use longshore_postgres::{Database, Identity, IdentityTexts};
use longshore_vault::Keyring;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::settings::Settings;
use crate::startup_error::StartupError;

/// The text that every node must be able to decrypt.
const CANARY: &str = "longshore";
/// The places of the texts, which they can be decrypted in alone.
const CANARY_PLACE: &str = "cluster canary";
const SECRET_PLACE: &str = "cluster secret";
/// The file of the data directory that names its cluster.
const FILE: &str = "cluster";

/// Proves that this server belongs to the cluster, and returns the secret that nodes know each other by.
///
/// # Errors
///
/// [`StartupError::Cluster`] with what does not fit, and what to do.
pub(super) async fn prove(
    settings: &Settings,
    database: &Database,
    vault: &Keyring,
) -> Result<String, StartupError> {
    let mut random = [0; 32];
    SystemRandom::new().fill(&mut random).map_err(|_| StartupError::NoRandom)?;
    let identity = Identity::of(database, &sealed(vault, &const_hex::encode(random))?).await?;
    let secret = opened(vault, &identity)?;
    check_folder(settings, database, &identity)?;
    if !identity.has_living_nodes {
        // Under the first of the present keys: the earlier ones may go.
        Identity::replace(database, &sealed(vault, &secret)?).await?;
    }
    Ok(secret)
}

fn sealed(vault: &Keyring, secret: &str) -> Result<IdentityTexts, StartupError> {
    let seal = |place, text| vault.seal(place, text).map_err(|_| StartupError::NoRandom);
    Ok(IdentityTexts {
        secret: seal(SECRET_PLACE, secret)?.into_owned(),
        canary: seal(CANARY_PLACE, CANARY)?.into_owned(),
    })
}

/// Opens the texts with the keys of this server.
fn opened(vault: &Keyring, identity: &Identity) -> Result<String, StartupError> {
    let canary = &identity.texts.canary;
    let is_sealed = longshore_vault::is_sealed(canary);
    if identity.has_living_nodes && !is_sealed && vault.is_sealing() {
        return Err(StartupError::Cluster(
            "the other servers of the database store secrets unencrypted, and this one has a key for them; give all of them the \
             same key, or none"
                .to_owned(),
        ));
    }
    let open = |place, text| {
        vault.open(place, text).map_err(|error| {
            StartupError::Cluster(format!(
                "this server cannot decrypt the secrets of the other servers of the database: {error}; all of them need the \
                 same LONGSHORE_SECRETS_KEY or `secrets_key_file`"
            ))
        })
    };
    open(CANARY_PLACE, canary)?;
    Ok(open(SECRET_PLACE, &identity.texts.secret)?.into_owned())
}

/// Notes the cluster in the data directory at the first start.
fn check_folder(settings: &Settings, database: &Database, identity: &Identity) -> Result<(), StartupError> {
    let path = settings.data_dir.join(FILE);
    let cannot =
        |cause: io::Error| StartupError::Cluster(format!("cannot read or write {}: {cause}", path.display()));
    match fs::read_to_string(&path) {
        Ok(text) if text.trim() == identity.id => Ok(()),
        Ok(_) => Err(StartupError::Cluster(format!(
            "the data directory {} belongs to another cluster than the database {}; name the database of that cluster, or \
             another data directory",
            settings.data_dir.display(),
            database.address()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let draft = path.with_extension("new");
            let written = fs::write(&draft, format!("{}\n", identity.id));
            written.and_then(|()| fs::rename(&draft, &path)).map_err(cannot)
        }
        Err(error) => Err(cannot(error)),
    }
}
