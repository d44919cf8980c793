//! Secrets are sealed in the store and open where they are used.

use longshore_engine::{CatalogError, Resealed, Submission, reseal};
use longshore_model::{EnvValue, Millis, RegistryAuth, Secret, SecretName, SharedWith};
use longshore_store::{Payload, Store};
use longshore_vault::{Keyring, MasterKey};

use crate::harness::{Disks, credentials, endpoint, job, take, template};

const CONFIG: &str = r#"{"accessSecret":"hush-3"}"#;

fn key() -> MasterKey {
    MasterKey::mint().unwrap()
}

fn name() -> SecretName {
    "HF_TOKEN".parse().unwrap()
}

fn named(value: &str) -> Secret {
    let (name, value) = (name(), value.to_owned());
    Secret { name, value, endpoints: SharedWith::default(), created_at: Millis(0), updated_at: Millis(0) }
}

/// The stored bytes of all settings, template environments, JSON rows and inputs of jobs, as text.
async fn stored_text(disks: &Disks) -> String {
    let stored = disks.store.catalog().await.unwrap();
    let mut text = format!("{:?}", stored.settings);
    text.extend(stored.templates.iter().map(|template| serde_json::to_string(&template.env).unwrap()));
    text.extend(stored.json_rows.iter().map(|row| format!("{:?}", row.json)));
    for endpoint in &stored.endpoints {
        for row in disks.store.jobs(endpoint.no, 0, 100).await.unwrap() {
            match disks.store.input(row.key).await.unwrap().unwrap() {
                Payload::Inline(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Payload::Blob(blob) => {
                    let bytes = longshore_blobs::Blobs::get(disks.blobs.as_ref(), &blob.name).await.unwrap();
                    text.push_str(&String::from_utf8_lossy(&bytes.unwrap()));
                }
            }
        }
    }
    text
}

/// Stores a secret of each kind, and jobs with a small and a large input. Returns the worker token of the endpoint.
async fn store_secrets(disks: &Disks, keyring: &Keyring) -> String {
    let engine = disks.start_sealing(keyring).await.unwrap();
    let mut secret = template("t");
    secret.env.insert("TOKEN".to_owned(), "hush-1".into());
    secret.env.insert("NAMED".to_owned(), EnvValue::secret(name()));
    engine.catalog().create_secret(named("hush-4")).await.unwrap();
    let secret = engine.catalog().create_template(secret).await.unwrap();
    let auth = RegistryAuth { password: "hush-2".to_owned(), ..credentials(1, "r") };
    engine.catalog().create_registry_auth(auth).await.unwrap();
    let demo = engine.create_endpoint(endpoint(secret.id, "demo")).await.unwrap().id;
    let handle = engine.endpoint("demo").unwrap();
    for bytes in [1, 2_000] {
        let plain = job(&engine, "{}");
        let config = format!(r#""s3Config":{CONFIG}"#);
        let member = engine.sealed_s3_config(plain.id, CONFIG).unwrap().unwrap_or(config);
        let members = format!(r#"{member},"input":{{"a":"{}"}}"#, "x".repeat(bytes));
        handle.jobs().submit(Submission { members: members.into(), ..plain }).await.unwrap();
    }
    engine.worker_token(&demo)
}

/// Starts an engine and checks that every secret is open.
async fn assert_open(disks: &Disks, keyring: &Keyring, token: &str) {
    let engine = disks.start_sealing(keyring).await.unwrap();
    assert_eq!(engine.catalog().templates()[0].env["TOKEN"], "hush-1".into());
    assert_eq!(engine.catalog().templates()[0].env["NAMED"], EnvValue::secret(name()));
    assert_eq!(engine.catalog().secret(&name()).unwrap().value, "hush-4");
    assert_eq!(engine.catalog().registry_auths()[0].password, "hush-2");
    let demo = engine.endpoint("demo").unwrap();
    assert_eq!(engine.worker_token(&demo.record().id), token);
    for worker in ["w1", "w2"] {
        let jobs = take(&demo, worker, 0).await;
        assert!(jobs[0].members.starts_with(format!(r#""s3Config":{CONFIG},"input":"#).as_bytes()));
    }
}

#[tokio::test]
async fn no_secret_is_stored_open_and_every_secret_is_usable() {
    let disks = Disks::new();
    let keyring = Keyring::new(vec![key()]);
    let token = store_secrets(&disks, &keyring).await;
    let text = stored_text(&disks).await;
    assert!(!text.contains("hush") && text.matches("longshore-sealed:1:").count() == 7, "{text}");
    assert_open(&disks, &keyring, &token).await;
}

#[tokio::test]
async fn an_engine_without_the_right_key_does_not_start_and_names_the_key() {
    let disks = Disks::new();
    let keyring = Keyring::new(vec![key()]);
    store_secrets(&disks, &keyring).await;
    for wrong in [Keyring::default(), Keyring::new(vec![key()])] {
        let error = disks.start_sealing(&wrong).await.err().unwrap().to_string();
        assert!(error.contains(&keyring.key_ids()[0]) && error.contains("LONGSHORE_SECRETS_KEY"), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
}

#[tokio::test]
async fn open_secrets_are_sealed_at_the_next_start_with_a_key() {
    let disks = Disks::new();
    let token = store_secrets(&disks, &Keyring::default()).await;
    assert_eq!(stored_text(&disks).await.matches("hush").count(), 6);
    let keyring = Keyring::new(vec![key()]);
    assert_open(&disks, &keyring, &token).await;
    let text = stored_text(&disks).await;
    // Inputs of earlier jobs stay as they are until the jobs are deleted.
    assert_eq!((text.matches("hush-3").count(), text.matches("hush").count()), (2, 2), "{text}");
}

#[tokio::test]
async fn all_secrets_are_resealed_under_a_new_key() {
    let disks = Disks::new();
    let (old, new) = (key(), key());
    let token = store_secrets(&disks, &Keyring::new(vec![old.clone()])).await;
    let both = Keyring::new(vec![new.clone(), old]);
    let resealed = async || reseal(disks.store.as_ref(), disks.blobs.as_ref(), &both).await.unwrap();
    assert_eq!(resealed().await, Resealed { records: 5, jobs: 2, closed_jobs: 0 });
    assert_eq!(resealed().await, Resealed::default());
    assert_open(&disks, &Keyring::new(vec![new]), &token).await;
}

#[tokio::test]
async fn a_new_value_is_stored_with_the_new_versions_of_the_endpoints_that_use_it() {
    let disks = Disks::new();
    let keyring = Keyring::new(vec![key()]);
    store_secrets(&disks, &keyring).await;
    let engine = disks.start_sealing(&keyring).await.unwrap();
    let plain = engine.catalog().create_template(template("plain")).await.unwrap();
    engine.create_endpoint(endpoint(plain.id, "other")).await.unwrap();
    let set = |value: &'static str| {
        move |secret: &mut Secret| {
            value.clone_into(&mut secret.value);
            Ok::<_, CatalogError>(())
        }
    };
    let versions = || ["demo", "other"].map(|slug| engine.endpoint(slug).unwrap().record().version);
    let changed = engine.catalog().update_secret(&name(), "key-1", set("hush-4")).await.unwrap();
    assert_eq!((versions(), changed.updated_at), ([1, 1], changed.created_at), "nothing changed");
    engine.catalog().update_secret(&name(), "key-1", set("hush-5")).await.unwrap();
    assert_eq!(versions(), [2, 1]);
    assert!(!stored_text(&disks).await.contains("hush"));
    drop(engine);
    let again = disks.start_sealing(&keyring).await.unwrap();
    assert_eq!(again.catalog().secret(&name()).unwrap().value, "hush-5");
    assert_eq!(again.endpoint("demo").unwrap().record().version, 2);
}

#[tokio::test]
async fn a_change_that_cannot_be_stored_changes_neither_value_nor_version() {
    let disks = Disks::new();
    store_secrets(&disks, &Keyring::default()).await;
    let engine = disks.start_sealing(&Keyring::default()).await.unwrap();
    let later = disks.start_sealing(&Keyring::default()).await.unwrap();
    // The second engine has taken the shards over, so no commit of the first one succeeds.
    let set = |secret: &mut Secret| {
        "stale".clone_into(&mut secret.value);
        Ok::<_, CatalogError>(())
    };
    assert!(matches!(
        engine.catalog().update_secret(&name(), "key-1", set).await,
        Err(CatalogError::Store(_))
    ));
    for engine in [engine, later] {
        assert_eq!(engine.catalog().secret(&name()).unwrap().value, "hush-4");
        assert_eq!(engine.endpoint("demo").unwrap().record().version, 1);
    }
}

#[tokio::test]
async fn a_secret_is_created_once_named_only_if_it_exists_and_deleted_only_if_unused() {
    let disks = Disks::new();
    let engine = disks.start_sealing(&Keyring::default()).await.unwrap();
    let catalog = engine.catalog();
    let mut user = template("t");
    user.env.insert("TOKEN".to_owned(), EnvValue::secret(name()));
    let conflict = |error: CatalogError, text: &str| {
        assert!(matches!(&error, CatalogError::Conflict(said) if said.contains(text)), "{error:?}");
    };
    conflict(catalog.create_template(user.clone()).await.unwrap_err(), "secret HF_TOKEN does not exist");
    catalog.create_secret(named("a")).await.unwrap();
    conflict(catalog.create_secret(named("b")).await.unwrap_err(), "exists already");
    let user = catalog.create_template(user).await.unwrap();
    conflict(catalog.delete_secret(&name(), |_| true).await.unwrap_err(), user.id.as_str());
    catalog.delete_template(&user.id, |_| true).await.unwrap();
    assert!(matches!(catalog.delete_secret(&name(), |_| false).await, Err(CatalogError::Changed)));
    catalog.delete_secret(&name(), |_| true).await.unwrap();
    assert!(matches!(catalog.delete_secret(&name(), |_| true).await, Err(CatalogError::NotFound)));
}
