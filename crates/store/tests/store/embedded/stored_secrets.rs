//! A data directory with a secret and a template that names it, stored in the repository: every later version must open
//! it and find the same values. `tests/fixtures/README.md` has the command that wrote it.

use std::path::Path;

use flate2::read::GzDecoder;
use longshore_model::{EnvValue, JsonRowKind, Millis, Secret, SharedWith, Template};
use longshore_store::{EmbeddedStore, JsonRow, Store as _, Write};
use tempfile::TempDir;

use super::stored_archive::write_archive;
use crate::rows::{claim, commit, template};

const ARCHIVE: &[u8] = include_bytes!("../../fixtures/secrets.tar.gz");
const NAME: &str = "HF_TOKEN";

/// A template whose environment has a text and the name of a secret.
fn user() -> Template {
    let mut template = template(1);
    template.env.insert("TOKEN".to_owned(), EnvValue::secret(NAME.parse().unwrap()));
    template
}

fn secret() -> Secret {
    Secret {
        name: NAME.parse().unwrap(),
        value: "ü\"\n".to_owned(),
        endpoints: SharedWith::Every,
        created_at: Millis(3),
        updated_at: Millis(4),
    }
}

async fn write_to(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    let epoch = claim(&store).await;
    let row = serde_json::to_vec(&secret()).unwrap();
    let writes = vec![
        Write::PutTemplate(Box::new(user())),
        Write::PutJsonRow(JsonRowKind::Secret, NAME.to_owned(), row.into()),
    ];
    commit(&store, epoch, writes).await.unwrap();
}

async fn assert_complete(dir: &Path) {
    let catalog = EmbeddedStore::open(dir).unwrap().catalog().await.unwrap();
    assert_eq!(catalog.templates, [user()]);
    let [JsonRow { kind: JsonRowKind::Secret, id, json }] = &catalog.json_rows[..] else {
        panic!("{:?}", catalog.json_rows)
    };
    assert_eq!((id.as_str(), serde_json::from_slice::<Secret>(json).unwrap()), (NAME, secret()));
}

#[tokio::test]
async fn a_stored_directory_with_secrets_opens() {
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(ARCHIVE)).unpack(dir.path()).unwrap();
    assert_complete(&dir.path().join("data")).await;
}

/// Also writes the archive of this version if `LONGSHORE_WRITE_FIXTURE` names a file.
#[tokio::test]
async fn this_version_writes_the_same_secrets() {
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    write_to(&data).await;
    write_archive(&data);
    assert_complete(&data).await;
}
