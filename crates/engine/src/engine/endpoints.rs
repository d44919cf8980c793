//! Creating, changing and deleting endpoints: each has a record in the catalog, an actor, and managed workers if its
//! provider has a launcher.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{Endpoint, EndpointNo, Template};
use longshore_store::Write;

use super::Engine;
use crate::actor::request::Request;
use crate::catalog::versions::{RecordedChange, Records};
use crate::supervisor::FleetEvent;
use crate::{CatalogError, EndpointHandle};

/// The interval at which a draining deletion counts the running jobs.
const DRAIN_POLL: Duration = Duration::from_millis(200);

impl Engine {
    /// Creates an endpoint and starts its actor and supervisor. Returns its record, with the `no` and `created_at` that
    /// are set here.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::Conflict`] if the slug is another endpoint's slug or id, or if the template or a network
    ///   volume does not exist.
    /// - [`CatalogError::Store`] if the endpoint could not be made durable. Nothing has changed.
    pub async fn create_endpoint(&self, endpoint: Endpoint) -> Result<Arc<Endpoint>, CatalogError> {
        let _lock = self.catalog().lock().await;
        let mut record = endpoint;
        record.created_at = self.now();
        record.deleting = false;
        {
            let state = self.catalog().state();
            record.no = EndpointNo(state.last_endpoint_no + 1);
            state.check_slug(&record)?;
        }
        let template = self.catalog().known_template(&record.template_id)?;
        self.catalog().check_volumes(&record, None)?;
        let mut recorded = RecordedChange::default();
        let is = Records { endpoint: &record, template: &template };
        self.catalog().record_change(&mut recorded, None, is, &record.user_id)?;
        let mut writes = recorded.take_writes();
        writes.push(Write::PutEndpoint(Box::new(record.clone())));
        self.catalog().commit(writes).await?;
        let handle = self.open_endpoint(record, false);
        {
            let mut state = self.catalog().state_mut();
            state.versions.apply(recorded);
            state.put_endpoint(handle.clone());
        }
        self.supervise(&handle, Vec::new());
        Ok(handle.record())
    }

    /// Changes an endpoint's record by `change` and returns it. `by` is the id of the key that changes it. `change`
    /// cannot set its id, `no` and `created_at`. If the template or the network volumes changed, `version` grows by one,
    /// so that the workers are replaced. If nothing changed, nothing is written; a wait after crashes ends nevertheless,
    /// as after a change.
    ///
    /// # Errors
    ///
    /// - The error of `change`.
    /// - [`CatalogError::NotFound`] for an unknown endpoint.
    /// - [`CatalogError::Conflict`] as of [`Engine::create_endpoint`].
    /// - [`CatalogError::Store`] if the change could not be made durable. Nothing has changed.
    pub async fn update_endpoint<E: From<CatalogError>>(
        &self,
        id_or_slug: &str,
        by: &str,
        change: impl FnOnce(&mut Endpoint) -> Result<(), E> + Send,
    ) -> Result<Arc<Endpoint>, E> {
        let _lock = self.catalog().lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        let before = handle.record();
        let mut record = Endpoint::clone(&before);
        change(&mut record)?;
        keep_identity(&mut record, &before);
        if record == *before {
            // After crashes, an operator who saves the settings again wants the next start now.
            handle.shared().notify_fleet(FleetEvent::Configured);
            return Ok(before);
        }
        if record.template_id != before.template_id {
            // The variables of another template are the operator's.
            record.deployed_env.clear();
        }
        if record.template_id != before.template_id
            || !record.volumes().eq(before.volumes())
            || record.lb_ports() != before.lb_ports()
        {
            record.version += 1;
        }
        Ok(self.commit_endpoint(&handle, record, None, by).await?)
    }

    /// Commits the changed record of an endpoint, its template if that changed with it, and the version. Then gives the
    /// record to the endpoint's actor and supervisor, and returns it. The caller holds the lock.
    pub(super) async fn commit_endpoint(
        &self,
        handle: &EndpointHandle,
        record: Endpoint,
        changed_template: Option<Arc<Template>>,
        by: &str,
    ) -> Result<Arc<Endpoint>, CatalogError> {
        let catalog = self.catalog();
        let before = handle.record();
        let template_before = catalog.known_template(&before.template_id)?;
        let used = match &changed_template {
            Some(template) => Arc::clone(template),
            None => catalog.known_template(&record.template_id)?,
        };
        catalog.state().check_slug(&record)?;
        catalog.check_volumes(&record, Some(&before))?;
        let mut recorded = RecordedChange::default();
        let was = Records { endpoint: &before, template: &template_before };
        let is = Records { endpoint: &record, template: &used };
        catalog.record_change(&mut recorded, Some(was), is, by)?;
        let mut writes = recorded.take_writes();
        if let Some(template) = &changed_template {
            writes.push(catalog.template_write(template)?);
        }
        writes.push(Write::PutEndpoint(Box::new(record.clone())));
        catalog.commit(writes).await?;
        if let Some(template) = changed_template {
            catalog.state_mut().put_template(template);
        }
        self.publish(handle, record);
        let mut state = catalog.state_mut();
        state.versions.apply(recorded);
        state.put_endpoint(handle.clone());
        Ok(handle.record())
    }

    /// Gives the actor and the supervisor of an endpoint its changed record. With another provider, the present
    /// supervisor lets its workers finish, and another supervisor starts.
    fn publish(&self, handle: &EndpointHandle, record: Endpoint) {
        let before = handle.record().provider;
        handle.configure(record);
        if handle.record().provider != before {
            handle.shared().notify_fleet(FleetEvent::ProviderChanged);
            handle.shared().set_fleet(None, None);
        }
        self.supervise(handle, Vec::new());
    }

    /// Deletes an endpoint, if it is `as_expected` both before its jobs are drained and after. When this returns, the
    /// endpoint is in no list and its requests fail; its workers are stopped and its jobs deleted afterwards. With
    /// `drain`, the running jobs end first, each by its execution timeout at the latest, and no other job starts
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::NotFound`] for an unknown or deleted endpoint.
    /// - [`CatalogError::Changed`] if the endpoint is not as expected.
    /// - [`CatalogError::Store`] if the deletion could not be made durable.
    ///
    /// After [`CatalogError::Changed`] and [`CatalogError::Store`] the endpoint delivers jobs as before.
    pub async fn delete_endpoint(
        &self,
        id_or_slug: &str,
        drain: bool,
        as_expected: impl Fn(&Endpoint) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        if !as_expected(&handle.record()) {
            return Err(CatalogError::Changed);
        }
        if drain {
            self.drain(&handle).await;
        }
        let _lock = self.catalog().lock().await;
        if handle.shared().is_deleted() {
            return Err(CatalogError::NotFound);
        }
        if let Err(error) = self.commit_deletion(&handle, as_expected).await {
            // Ends the pause of `drain`.
            let record = Endpoint::clone(&handle.record());
            let _ = handle.shared().requests.send(Request::Configure(Box::new(record)));
            return Err(error);
        }
        self.meter_jobs(&handle);
        self.catalog().state_mut().remove_endpoint(handle.no());
        handle.shared().deleted.store(true, Ordering::Release);
        if let Some(balancer) = handle.balancer() {
            balancer.refuse_all();
        }
        handle.shared().notify_fleet(FleetEvent::Deleted { drain });
        handle.shared().set_fleet(None, None);
        let engine = self.clone();
        self.spawn(async move { engine.finish_delete(handle).await });
        Ok(())
    }

    /// Marks the endpoint's record as deleted in the store. The next start continues the deletion.
    async fn commit_deletion(
        &self,
        handle: &EndpointHandle,
        as_expected: impl Fn(&Endpoint) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let mut record = Endpoint::clone(&handle.record());
        if !as_expected(&record) {
            return Err(CatalogError::Changed);
        }
        record.deleting = true;
        Ok(self.catalog().commit(vec![Write::PutEndpoint(Box::new(record))]).await?)
    }

    /// Pauses the delivery of jobs and waits until no job runs. Each ends by its execution timeout at the latest.
    async fn drain(&self, handle: &EndpointHandle) {
        let (reply, paused) = tokio::sync::oneshot::channel();
        let _ = handle.shared().requests.send(Request::Pause { reply });
        let _ = paused.await;
        while handle.workers().fleet_view().await.is_ok_and(|view| view.running > 0) {
            tokio::time::sleep(DRAIN_POLL).await;
        }
    }
}

/// Undoes a change of what identifies an endpoint.
pub(super) fn keep_identity(record: &mut Endpoint, before: &Endpoint) {
    (record.id, record.no, record.created_at) = (before.id, before.no, before.created_at);
    record.endpoint_type = before.endpoint_type;
    record.deleting = false;
}
