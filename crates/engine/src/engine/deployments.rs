//! Changes of an endpoint together with the template of its workers, in one commit: deploys, and returns to an earlier
//! version.

use std::sync::Arc;

use longshore_model::{Endpoint, SharedWith, Template, TemplateId};

use super::Engine;
use super::endpoints::keep_identity;
use crate::CatalogError;
use crate::catalog::templates::runs_the_same;
use crate::supervisor::FleetEvent;

/// The longest part of a template's name in the name of an endpoint's own template.
const NAME_CHARS_MAX: usize = 150;

/// When a changed endpoint gets a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewVersion {
    /// If its workers have to be replaced.
    IfWorkersChange,
    /// If any field of the endpoint or its template changed.
    IfChanged,
}

/// The result of [`Engine::deploy`].
#[derive(Clone, Debug)]
pub struct Deployed {
    /// The endpoint's record after the change.
    pub endpoint: Arc<Endpoint>,
    /// The template that it uses.
    pub template: Arc<Template>,
    /// Whether anything changed. If not, nothing was written.
    pub is_changed: bool,
}

impl Engine {
    /// Changes an endpoint and the template of its workers by `change`, in one commit. `by` is the id of the key that
    /// changes them.
    ///
    /// `change` receives the endpoint's record and its template. It may replace the template by another stored one, which
    /// is then used. The endpoint's present template is changed if no other endpoint uses it. In all other cases a changed
    /// template becomes one of the endpoint's own, so that no other endpoint changes.
    ///
    /// # Errors
    ///
    /// - The error of `change`.
    /// - [`CatalogError::NotFound`] for an unknown endpoint.
    /// - [`CatalogError::Conflict`] if the slug or the template's name is taken, or if a network volume or the registry
    ///   credentials do not exist.
    /// - [`CatalogError::Store`] if the change could not be made durable. Nothing has changed.
    pub async fn deploy<E: From<CatalogError>>(
        &self,
        id_or_slug: &str,
        by: &str,
        new_version: NewVersion,
        change: impl FnOnce(&mut Endpoint, &mut Template) -> Result<(), E> + Send,
    ) -> Result<Deployed, E> {
        let _lock = self.catalog().lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        let before = handle.record();
        let used = self.catalog().known_template(&before.template_id)?;
        let (mut record, mut wanted) = (Endpoint::clone(&before), Template::clone(&used));
        change(&mut record, &mut wanted)?;
        keep_identity(&mut record, &before);
        let template = self.placed(&before, wanted)?;
        let is_stored = self.catalog().template(&template.id).is_some_and(|stored| *stored == template);
        record.template_id = template.id;
        if record == *before && is_stored {
            // After crashes, a person who deploys again wants the next start now.
            handle.shared().notify_fleet(FleetEvent::Configured);
            return Ok(Deployed { endpoint: before, template: used, is_changed: false });
        }
        if new_version == NewVersion::IfChanged
            || template.id != used.id
            || !runs_the_same(&template, &used)
            || !record.volumes().eq(before.volumes())
            || record.lb_ports() != before.lb_ports()
        {
            record.version += 1;
        }
        let template = Arc::new(template);
        let put = (!is_stored).then(|| Arc::clone(&template));
        let endpoint = self.commit_endpoint(&handle, record, put, by).await?;
        Ok(Deployed { endpoint, template, is_changed: true })
    }

    /// Returns the template under the id and the name with which it is to be stored for `endpoint`.
    fn placed(&self, endpoint: &Endpoint, wanted: Template) -> Result<Template, CatalogError> {
        let catalog = self.catalog();
        let stored = catalog.template(&wanted.id);
        let is_only_user =
            |id: &TemplateId| catalog.endpoints_using(id).iter().all(|user| user.id() == endpoint.id);
        let template = match &stored {
            Some(stored) if **stored == wanted => return Ok(wanted),
            Some(stored) if stored.id == endpoint.template_id && is_only_user(&stored.id) => {
                Template { created_at: stored.created_at, ..wanted }
            }
            None if catalog.state().check_template(&wanted).is_ok() => wanted,
            _ => {
                let all = catalog.templates();
                let name = own_name(&wanted.name, endpoint);
                let own = all.iter().find(|other| other.name == name);
                let (id, created_at) = match own {
                    Some(own) if is_only_user(&own.id) => (own.id, own.created_at),
                    _ => (TemplateId::mint(self.entropy()), self.now()),
                };
                let is_taken = own.is_some_and(|own| own.id != id);
                let name = if is_taken { format!("{name} ({id})") } else { name };
                Template { id, name, created_at, endpoints: SharedWith::default(), ..wanted }
            }
        };
        catalog.state().check_template(&template)?;
        catalog.check_registry_auth(&template, stored.as_deref())?;
        catalog.check_secrets(&template, stored.as_deref())?;
        Ok(template)
    }
}

/// The name of an endpoint's own template that is made from the template with this name.
fn own_name(name: &str, endpoint: &Endpoint) -> String {
    let suffix = format!(" ({})", endpoint.id);
    let start: String = name.strip_suffix(&suffix).unwrap_or(name).chars().take(NAME_CHARS_MAX).collect();
    start + &suffix
}
