//! Changes of the catalog: checked, committed, then seen.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{Endpoint, EndpointNo, Template, TemplateId};
use longshore_store::Write;

use super::Engine;
use crate::actor::request::Request;
use crate::secrets::sealed_template;
use crate::supervisor::FleetEvent;
use crate::{CatalogError, EndpointHandle};

/// How often a draining deletion looks whether the running jobs are done.
const DRAIN_LOOK: Duration = Duration::from_millis(200);

impl Engine {
    /// Adds an endpoint. Its `no` and `created_at` are set here. Refused: a slug that is taken (also by an id),
    /// a template that does not exist.
    pub async fn create_endpoint(&self, endpoint: Endpoint) -> Result<Arc<Endpoint>, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let mut record = endpoint;
        record.created_at = self.now();
        record.deleting = false;
        {
            let catalog = self.catalog();
            record.no = EndpointNo(catalog.last_endpoint_no + 1);
            catalog.admits(&record)?;
        }
        self.admits_volumes(&record, None)?;
        self.commit(vec![Write::PutEndpoint(Box::new(record.clone()))]).await?;
        let handle = self.open_endpoint(record, false);
        self.catalog_mut().put_endpoint(handle.clone());
        self.supervise(&handle, Vec::new());
        Ok(handle.record())
    }

    /// Changes an endpoint's record by `change`; `version` grows by one if its workers must be
    /// replaced for it. A `change` that is refused, or leaves it as it is, writes nothing.
    pub async fn update_endpoint<E: From<CatalogError>>(
        &self,
        id_or_slug: &str,
        change: impl FnOnce(&mut Endpoint) -> Result<(), E> + Send,
    ) -> Result<Arc<Endpoint>, E> {
        let _door = self.inner.catalog_lock.lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        let before = handle.record();
        let mut record = Endpoint::clone(&before);
        change(&mut record)?;
        // What identifies it is not for changing.
        (record.id, record.no, record.created_at) = (before.id, before.no, before.created_at);
        record.deleting = false;
        if record == *before {
            return Ok(before);
        }
        if record.template_id != before.template_id || !record.volumes().eq(before.volumes()) {
            record.version += 1;
        }
        self.catalog().admits(&record)?;
        self.admits_volumes(&record, Some(&before))?;
        self.commit(vec![Write::PutEndpoint(Box::new(record.clone()))]).await.map_err(CatalogError::from)?;
        self.publish(&handle, record);
        self.catalog_mut().put_endpoint(handle.clone());
        Ok(handle.record())
    }

    /// Lets an endpoint's actor and supervisor know its new record.
    fn publish(&self, handle: &EndpointHandle, record: Endpoint) {
        let before = handle.record().provider;
        handle.shared.set_record(Arc::new(record.clone()));
        // An actor that is gone needs no settings.
        let _ = handle.shared.requests.send(Request::Configure(Box::new(record)));
        handle.shared.notify_fleet(FleetEvent::Configured);
        if handle.record().provider != before {
            // The workers at the earlier provider finish their jobs and end.
            handle.shared.notify_fleet(FleetEvent::ProviderChanged);
            handle.shared.set_fleet(None, None);
        }
        self.supervise(handle, Vec::new());
    }

    /// Deletes an endpoint: it answers 404 at once, its workers are stopped, its jobs removed in slices.
    /// With `drain` the running jobs may finish first, and this returns when they have.
    pub async fn delete_endpoint(&self, id_or_slug: &str, drain: bool) -> Result<(), CatalogError> {
        self.delete_endpoint_if(id_or_slug, drain, |_| true).await
    }

    /// As [`Engine::delete_endpoint`], if it is `as_expected` before its jobs are let finish, and still when it goes.
    pub async fn delete_endpoint_if(
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
            self.let_run_dry(&handle).await;
        }
        let _door = self.inner.catalog_lock.lock().await;
        if handle.is_deleted() {
            return Err(CatalogError::NotFound);
        }
        let mut record = Endpoint::clone(&handle.record());
        if !as_expected(&record) {
            // Goes on as it was before it was let run dry.
            let _ = handle.shared.requests.send(Request::Configure(Box::new(record)));
            return Err(CatalogError::Changed);
        }
        record.deleting = true;
        self.commit(vec![Write::PutEndpoint(Box::new(record.clone()))]).await?;
        self.meter_jobs(&handle);
        self.catalog_mut().remove_endpoint(record.no);
        handle.shared.deleted.store(true, Ordering::Release);
        handle.shared.notify_fleet(FleetEvent::Deleted { drain });
        handle.shared.set_fleet(None, None);
        let engine = self.clone();
        self.spawn(async move { engine.finish_delete(handle).await });
        Ok(())
    }

    /// Stops handing out jobs and waits until none runs. Each job ends by its execution timeout at the latest.
    async fn let_run_dry(&self, handle: &EndpointHandle) {
        let (reply, paused) = tokio::sync::oneshot::channel();
        let _ = handle.shared.requests.send(Request::Pause { reply });
        let _ = paused.await;
        while handle.fleet_view().await.is_ok_and(|view| view.running > 0) {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    }

    /// Adds a template. Refused: a name that is taken.
    pub async fn create_template(&self, template: Template) -> Result<Arc<Template>, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let mut template = template;
        template.created_at = self.now();
        self.catalog().admits_template(&template)?;
        self.admits_auth(&template, None)?;
        let kept = sealed_template(self.vault(), &template)?;
        self.commit(vec![Write::PutTemplate(Box::new(kept))]).await?;
        let template = Arc::new(template);
        self.catalog_mut().put_template(template.clone());
        Ok(template)
    }

    /// Changes a template by `change`; endpoints that use it get a new `version` if image, command, workdir or
    /// env changed. A `change` that is refused, or leaves it as it is, writes nothing.
    pub async fn update_template<E: From<CatalogError>>(
        &self,
        id: &TemplateId,
        change: impl FnOnce(&mut Template) -> Result<(), E> + Send,
    ) -> Result<Arc<Template>, E> {
        let _door = self.inner.catalog_lock.lock().await;
        let before = self.template(id).ok_or(CatalogError::NotFound)?;
        let mut template = Template::clone(&before);
        change(&mut template)?;
        (template.id, template.created_at) = (before.id, before.created_at);
        if template == *before {
            return Ok(before);
        }
        self.catalog().admits_template(&template)?;
        self.admits_auth(&template, Some(&before))?;
        let users = if runs_the_same(&before, &template) { Vec::new() } else { self.catalog().users_of(id) };
        let kept = sealed_template(self.vault(), &template).map_err(CatalogError::from)?;
        let mut writes = vec![Write::PutTemplate(Box::new(kept))];
        let mut records = Vec::new();
        for user in users {
            let mut record = Endpoint::clone(&user.record());
            record.version += 1;
            writes.push(Write::PutEndpoint(Box::new(record.clone())));
            records.push((user, record));
        }
        self.commit(writes).await.map_err(CatalogError::from)?;
        let template = Arc::new(template);
        self.catalog_mut().put_template(template.clone());
        for (user, record) in records {
            self.publish(&user, record);
        }
        Ok(template)
    }

    /// Deletes a template. Refused while an endpoint uses it, naming the endpoint.
    pub async fn delete_template(&self, id: &TemplateId) -> Result<(), CatalogError> {
        self.delete_template_if(id, |_| true).await
    }

    /// As [`Engine::delete_template`], if it is `as_expected`.
    pub async fn delete_template_if(
        &self,
        id: &TemplateId,
        as_expected: impl FnOnce(&Template) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let template = self.template(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&template) {
            return Err(CatalogError::Changed);
        }
        if let Some(user) = self.catalog().users_of(id).first() {
            let endpoint = user.record().id;
            return Err(CatalogError::Conflict(format!(
                "template {id} is in use by endpoint {endpoint}: delete or change that first"
            )));
        }
        self.commit(vec![Write::DeleteTemplate(*id)]).await?;
        self.catalog_mut().remove_template(id);
        Ok(())
    }
}

/// Whether a worker of the one is as good as a worker of the other.
fn runs_the_same(one: &Template, other: &Template) -> bool {
    one.image_name == other.image_name
        && one.docker_entrypoint == other.docker_entrypoint
        && one.docker_start_cmd == other.docker_start_cmd
        && one.workdir == other.workdir
        && one.env == other.env
}
