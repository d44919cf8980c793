//! A `FileService` for tests that accepts all code and stores nothing.

use bytes::Bytes;
use longshore_model::{CodeHash, EndpointId, Millis, WorkerId};

use crate::{CodeError, CodeVersion, FileService, IsUsed, WorkerLog};

pub(super) struct FakeFiles;

impl FileService for FakeFiles {
    fn worker_log(&self, _endpoint: &EndpointId, _worker: &WorkerId) -> Option<WorkerLog> {
        None
    }

    fn ended_workers(&self, _endpoint: &EndpointId) -> Vec<WorkerId> {
        vec!["w-ended".parse().unwrap()]
    }

    fn keep_code(&self, name: &str, archive: Bytes) -> Result<CodeVersion, CodeError> {
        if archive.is_empty() {
            return Err(CodeError::Unusable("the archive is empty".to_owned()));
        }
        Ok(CodeVersion {
            name: name.to_owned(),
            hash: "0".repeat(64).parse().unwrap(),
            files: 1,
            bytes: archive.len() as u64,
            created_at: Millis(0),
        })
    }

    fn code_versions(&self, name: &str) -> Vec<CodeVersion> {
        self.keep_code(name, Bytes::from_static(b"x")).into_iter().collect()
    }

    fn has_code(&self, code: &CodeHash) -> bool {
        !code.as_str().starts_with('f')
    }

    fn forget_code(&self, _: IsUsed) {}
}
