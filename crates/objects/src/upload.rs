//! Uploads: small objects in one request, larger ones in parts.

use bytes::Bytes;
use futures_util::future::try_join_all;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};

/// An object up to this length is one request. Providers take parts from 5 MiB on.
const PART_BYTES: usize = 8 << 20;
/// Parts that are sent at the same time.
const PARTS_AT_ONCE: usize = 2;

/// Stores the bytes under the path.
pub(crate) async fn put(store: &dyn ObjectStore, path: &Path, bytes: Bytes) -> object_store::Result<()> {
    if bytes.len() <= PART_BYTES {
        return store.put(path, bytes.into()).await.map(drop);
    }
    let mut upload = store.put_multipart(path).await?;
    let sent = send(upload.as_mut(), &bytes).await;
    if sent.is_err() {
        // Parts that stay cost money until a rule of the bucket removes them.
        let _ = upload.abort().await;
    }
    sent
}

async fn send(upload: &mut dyn MultipartUpload, bytes: &Bytes) -> object_store::Result<()> {
    let parts: Vec<Bytes> = (0..bytes.len())
        .step_by(PART_BYTES)
        .map(|at| bytes.slice(at..bytes.len().min(at + PART_BYTES)))
        .collect();
    for parts in parts.chunks(PARTS_AT_ONCE) {
        let parts: Vec<_> = parts.iter().map(|part| upload.put_part(part.clone().into())).collect();
        try_join_all(parts).await?;
    }
    upload.complete().await.map(drop)
}
