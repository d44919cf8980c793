//! Secrets are sealed in the store and open where they are used.

use longshore_engine::{Resealed, Submission, reseal};
use longshore_model::RegistryAuth;
use longshore_store::{Payload, Store};
use longshore_vault::{Keyring, MasterKey};

use crate::harness::{Disks, credentials, endpoint, job, take, template};

const CONFIG: &str = r#"{"accessSecret":"hush-3"}"#;

fn key() -> MasterKey {
    MasterKey::mint().unwrap()
}

/// The stored bytes of all settings, template environments, JSON rows and inputs of jobs, as text.
async fn stored_text(disks: &Disks) -> String {
    let stored = disks.store.catalog().await.unwrap();
    let mut text = format!("{:?}", stored.settings);
    text.extend(stored.templates.iter().map(|template| format!("{:?}", template.env)));
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
    secret.env.insert("TOKEN".to_owned(), "hush-1".to_owned());
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
    assert_eq!(engine.catalog().templates()[0].env["TOKEN"], "hush-1");
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
    assert!(!text.contains("hush") && text.matches("longshore-sealed:1:").count() == 5, "{text}");
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
    assert_eq!(stored_text(&disks).await.matches("hush").count(), 4);
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
    assert_eq!(resealed().await, Resealed { records: 3, jobs: 2, closed_jobs: 0 });
    assert_eq!(resealed().await, Resealed::default());
    assert_open(&disks, &Keyring::new(vec![new]), &token).await;
}
