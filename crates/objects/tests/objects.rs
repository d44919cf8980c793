//! The behaviour of payloads and code as objects, in memory and in a directory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use longshore_blobs::{BlobError, Blobs, RemoteBlobs as _};
use longshore_objects::{CodeObjects, Credentials, ObjectBlobs, Place, Storage};
use longshore_trust::Roots;
use tempfile::TempDir;

fn in_directory(dir: &TempDir) -> Storage {
    let place = Place::parse(&format!("file://{}/objects", dir.path().display())).unwrap();
    Storage::open(&place, &Credentials::default(), &Roots::none()).unwrap()
}

async fn on_each(case: impl AsyncFn(Storage)) {
    case(Storage::in_memory()).await;
    let dir = TempDir::new().unwrap();
    case(in_directory(&dir)).await;
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_payload_is_put_read_and_deleted() {
    on_each(async |storage| {
        let blobs = ObjectBlobs::new(storage);
        let big: Bytes = (0..20_000_000_u32).map(|i| (i >> 3) as u8).collect::<Vec<_>>().into();
        for (name, bytes) in [("7/1.input", big), ("7/2.input", Bytes::new()), ("top", "x".into())] {
            assert_eq!(blobs.get(name).await.unwrap(), None);
            blobs.put(name, bytes.clone()).await.unwrap();
            assert!(blobs.get(name).await.unwrap() == Some(bytes));
            blobs.delete(name).await.unwrap();
            assert_eq!(blobs.get(name).await.unwrap(), None);
            blobs.delete(name).await.unwrap();
        }
        blobs.put("7/1.input", "longer than the next".into()).await.unwrap();
        blobs.put("7/1.input", "short".into()).await.unwrap();
        assert_eq!(blobs.get("7/1.input").await.unwrap(), Some("short".into()));
    })
    .await;
}

#[tokio::test]
async fn a_folder_lists_its_own_payloads_with_full_names() {
    on_each(async |storage| {
        let blobs = ObjectBlobs::new(storage);
        for name in ["7/b.input", "7/a.output.1", "70/c.input", "7/deep/d", "top"] {
            blobs.put(name, "x".into()).await.unwrap();
        }
        assert_eq!(blobs.list("7").await.unwrap(), names(&["7/a.output.1", "7/b.input"]));
        assert_eq!(blobs.list("7/deep").await.unwrap(), names(&["7/deep/d"]));
        assert_eq!(blobs.folders().await.unwrap(), names(&["7", "70"]));
        assert!(blobs.list("8").await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn no_name_leads_out_of_the_prefix() {
    on_each(async |storage| {
        let blobs = ObjectBlobs::new(storage);
        for name in ["../x", "/tmp/x", "7/../../x", ".tmp/0", ""] {
            assert!(matches!(blobs.put(name, "x".into()).await, Err(BlobError::Name(_))), "{name}");
            assert!(matches!(blobs.get(name).await, Err(BlobError::Name(_))), "{name}");
            assert!(matches!(blobs.delete(name).await, Err(BlobError::Name(_))), "{name}");
            assert!(matches!(blobs.list(name).await, Err(BlobError::Name(_))), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_listing_has_every_payload_with_the_time_of_the_storage() {
    on_each(async |storage| {
        storage.probe().await.unwrap();
        let blobs = ObjectBlobs::new(storage);
        let before = blobs.clock_ms().await.unwrap();
        let mut put: Vec<String> =
            (0..2_500).map(|number| format!("{}/job-{number}.input", number % 3)).collect();
        for name in &put {
            blobs.put(name, "x".into()).await.unwrap();
        }
        let after = blobs.clock_ms().await.unwrap();
        let mut found = Vec::new();
        let mut listing = blobs.listing();
        while let Some(page) = listing.recv().await {
            found.extend(page.unwrap());
        }
        // File systems count their times in coarser steps than clocks.
        assert!(found.iter().all(|blob| (before - 1_000..=after + 1_000).contains(&blob.modified_ms)));
        let mut found: Vec<String> = found.into_iter().map(|blob| blob.name).collect();
        found.sort();
        put.sort();
        assert_eq!(found, put);
    })
    .await;
}

#[tokio::test]
async fn a_place_belongs_to_one_installation() {
    on_each(async |storage| {
        let (first, second) = (ObjectBlobs::new(storage.clone()), ObjectBlobs::new(storage));
        assert!(matches!(first.claim("one", false).await, Err(BlobError::Place(_))));
        first.claim("one", true).await.unwrap();
        first.claim("one", false).await.unwrap();
        let refused = second.claim("two", true).await.unwrap_err();
        assert!(refused.to_string().contains("another installation"), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn no_payload_is_reported_missing_while_the_directory_is() {
    let dir = TempDir::new().unwrap();
    let blobs = ObjectBlobs::new(in_directory(&dir));
    blobs.claim("one", true).await.unwrap();
    blobs.put("7/x", "kept".into()).await.unwrap();
    assert_eq!(blobs.get("7/y").await.unwrap(), None);
    // The disk is unmounted.
    let root = dir.path().join("objects");
    std::fs::rename(&root, dir.path().join("away")).unwrap();
    std::fs::create_dir(&root).unwrap();
    assert!(matches!(blobs.get("7/x").await, Err(BlobError::Io(_))));
}

#[tokio::test]
async fn code_is_listed_when_its_note_is_there() {
    on_each(async |storage| {
        let code = CodeObjects::new(storage);
        code.put("abc", "archive".into(), "{}".into()).await.unwrap();
        let hashes: Vec<_> = code.hashes().await.unwrap().into_iter().map(|(hash, _)| hash).collect();
        assert_eq!(hashes, names(&["abc"]));
        assert_eq!(code.archive("abc").await.unwrap(), Some("archive".into()));
        assert_eq!(code.note("abc").await.unwrap(), Some("{}".into()));
        code.remove("abc").await.unwrap();
        assert!(code.hashes().await.unwrap().is_empty() && code.archive("abc").await.unwrap().is_none());
    })
    .await;
}
