//! A `FileService` for tests that accepts all code and stores nothing.

use std::io::Write as _;
use std::sync::Mutex;

use longshore_model::{CodeHash, EndedWorker, EndpointId, Gpu, Millis, Placement, Served, WorkerId};

use crate::{CodeArchive, CodeError, CodeUpload, CodeVersion, FileService, IsUsed, KeptCode, WorkerLog};

#[derive(Default)]
pub(super) struct FakeFiles {
    /// The keys that have sent code.
    senders: Mutex<Vec<String>>,
}

/// The hash of all code that clients send.
pub(super) const SENT: &str = "0000000000000000000000000000000000000000000000000000000000000009";

/// The bytes of the only archive of code that the server has.
pub(super) const ARCHIVE: &[u8] = b"an archive";

impl FileService for FakeFiles {
    fn worker_log(&self, _endpoint: &EndpointId, _worker: &WorkerId) -> Option<WorkerLog> {
        None
    }

    fn ended_workers(&self, _endpoint: &EndpointId) -> Vec<EndedWorker> {
        let gpu = Gpu { device: "0".to_owned(), type_id: "NVIDIA L4".to_owned(), memory_mib: 0 };
        let placement = Placement { started_at: Millis(1_000), gpus: vec![gpu], ..Placement::default() };
        vec![EndedWorker {
            worker: "w-ended".parse().unwrap(),
            version: 3,
            placement,
            ended_at: Millis(3_500),
            code: None,
            signal: Some(9),
            because: None,
            was_stopped: false,
            stop_reason: None,
            served: Some(Served { ready_at: Some(Millis(1_400)), jobs_done: 7 }),
        }]
    }

    fn keep_code(&self, upload: CodeUpload<'_>) -> Result<KeptCode, CodeError> {
        if upload.archive.is_empty() {
            return Err(CodeError::Unusable("the archive is empty".to_owned()));
        }
        self.senders.lock().unwrap().push(upload.sender.to_owned());
        Ok(KeptCode { version: version(upload.name, upload.archive.len() as u64), is_changed: true })
    }

    fn was_sent_by(&self, code: &CodeHash, key: &str) -> bool {
        code.as_str() == SENT && self.senders.lock().unwrap().iter().any(|sender| sender == key)
    }

    fn code_versions(&self, name: &str) -> Vec<CodeVersion> {
        vec![version(name, 1)]
    }

    fn has_code(&self, code: &CodeHash) -> bool {
        !code.as_str().starts_with('f')
    }

    fn open_code(&self, code: &CodeHash) -> Option<CodeArchive> {
        let mut file = (code.as_str() == SENT).then(|| tempfile::tempfile().unwrap())?;
        file.write_all(ARCHIVE).unwrap();
        Some(CodeArchive { file, bytes: ARCHIVE.len() as u64 })
    }

    fn forget_code(&self, _: IsUsed) {}
}

fn version(name: &str, bytes: u64) -> CodeVersion {
    CodeVersion { name: name.to_owned(), hash: SENT.parse().unwrap(), files: 1, bytes, created_at: Millis(0) }
}
