//! The submitted members of a job, from the cache or from the store.

use bytes::Bytes;
use longshore_model::{JobId, JobRow};
use longshore_store::Payload;

use super::EndpointShared;
use crate::actor::request::unread;
use crate::{BudgetPermit, EndpointError};

impl EndpointShared {
    /// The members of the job's submitted JSON object. `room` is the memory reserved for them.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Unreadable`] if the disk cannot be read now.
    /// - [`EndpointError::Damaged`] if the stored members are missing or not those that were written.
    pub(crate) async fn input(&self, row: &JobRow, room: &BudgetPermit) -> Result<Bytes, EndpointError> {
        match self.services.payload_cache.input(row.key) {
            Some(Payload::Inline(bytes)) => Ok(bytes),
            // Boxed: few takes read the disk, and every future would reserve the size.
            cached => Box::pin(self.read_input(row, cached, room)).await,
        }
    }

    async fn read_input(
        &self,
        row: &JobRow,
        cached: Option<Payload>,
        room: &BudgetPermit,
    ) -> Result<Bytes, EndpointError> {
        let payload = match cached {
            Some(payload) => Some(payload),
            None => self.services.store.input(row.key).await.map_err(|error| unread(&error))?,
        };
        match payload {
            Some(payload) => self.fetch(payload, room).await,
            None => Err(EndpointError::Damaged("the store has no input of the job".to_owned())),
        }
    }

    /// Logs that a part of a job could not be read, if `error` says that. `part` names the part, such as `input`.
    pub(crate) fn note_unread(&self, job: JobId, part: &str, error: &EndpointError) {
        self.services.read_faults.note(self.now(), self.id, job, part, error);
    }
}
