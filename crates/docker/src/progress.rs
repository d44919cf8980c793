//! How far a pull has come, by the messages of the daemon.

use std::collections::HashMap;

use bollard::models::CreateImageInfo;
use longshore_model::StartStage;

/// The layers of an image that is being pulled: the bytes that have arrived, and the size.
#[derive(Debug, Default)]
pub(crate) struct Progress(HashMap<String, (u64, u64)>);

impl Progress {
    /// Reads one message. Messages about the unpacking of a layer count as its arrival.
    pub(crate) fn read(&mut self, message: &CreateImageInfo) {
        let (Some(layer), Some(status)) = (&message.id, message.status.as_deref()) else { return };
        let detail = message.progress_detail.as_ref();
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        match status {
            "Downloading" => {
                let current = number(detail.and_then(|detail| detail.current)).unwrap_or_default();
                let total = number(detail.and_then(|detail| detail.total)).unwrap_or_default();
                self.0.insert(layer.clone(), (current.min(total.max(current)), total.max(current)));
            }
            "Download complete" | "Verifying Checksum" | "Extracting" | "Pull complete" => {
                if let Some((done, total)) = self.0.get_mut(layer) {
                    *done = *total;
                }
            }
            _ => {}
        }
    }

    /// The sum over all layers whose size is known.
    pub(crate) fn stage(&self) -> StartStage {
        let (done_bytes, total_bytes) =
            self.0.values().fold((0, 0), |(done, total), (part, size)| (done + part, total + size));
        StartStage::Pulling { done_bytes, total_bytes }
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    fn message(id: &str, status: &str, current: i64, total: i64) -> CreateImageInfo {
        let detail = ProgressDetail { current: Some(current), total: Some(total) };
        CreateImageInfo {
            id: Some(id.into()),
            status: Some(status.into()),
            progress_detail: Some(detail),
            ..CreateImageInfo::default()
        }
    }

    #[test]
    fn layers_add_up_and_stay_complete_while_they_are_unpacked() {
        let mut progress = Progress::default();
        assert_eq!(progress.stage(), StartStage::Pulling { done_bytes: 0, total_bytes: 0 });
        for (id, status, current, total) in [
            ("latest", "Pulling from library/x", 0, 0),
            ("a", "Downloading", 10, 100),
            ("b", "Downloading", 5, 50),
            ("a", "Download complete", 0, 0),
            ("a", "Extracting", 3, 100),
            ("c", "Already exists", 0, 0),
            ("b", "Downloading", -3, -1),
            ("b", "Downloading", 20, 50),
        ] {
            progress.read(&message(id, status, current, total));
        }
        assert_eq!(progress.stage(), StartStage::Pulling { done_bytes: 120, total_bytes: 150 });
    }
}
