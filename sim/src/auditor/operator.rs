//! The operator's changes of endpoints.

use bytes::Bytes;
use serde_json::Value;

use super::Auditor;
use super::endpoint::{Range, TemplateChange};
use super::exchange::Exchange;
use super::job::EndpointNo;
use super::time_bounds::{EventTime, Span};

impl Auditor {
    /// A change or deletion arrived.
    pub(super) fn operation_arrived(&mut self, exchange: &Exchange, is_deletion: bool) {
        let Some(endpoint) = exchange.endpoint else { return };
        if is_deletion {
            let span = Span { from: self.ledger.now, until: None };
            self.model.endpoints[endpoint.0].deleted.get_or_insert(span);
        } else if let Ok(asked) = serde_json::from_slice::<Value>(&exchange.body) {
            // The change may be in effect from now on, even without a response.
            self.widen_settings(endpoint, &asked, false);
            self.model.endpoints[endpoint.0].workers_min = None;
        }
    }

    /// The record of an endpoint was shown.
    pub(super) fn endpoint_shown(&mut self, exchange: &Exchange, body: &Bytes, is_created: bool) {
        let Ok(record) = serde_json::from_slice::<Value>(body) else { return };
        let Some(id) = record["id"].as_str() else { return };
        let endpoint = match exchange.endpoint {
            Some(endpoint) if !is_created => endpoint,
            _ => self.model.endpoint(id, &self.rules),
        };
        if let Some(slug) = record["slug"].as_str() {
            self.model.name_endpoint(slug, endpoint);
        }
        self.widen_settings(endpoint, &record, is_created);
        let is_alone = !self.exchanges.values().any(|other| {
            other.endpoint == Some(endpoint) && other.operation == super::operation::Operation::ChangeEndpoint
        });
        let now = self.ledger.now;
        let entry = &mut self.model.endpoints[endpoint.0];
        if let Some(template) = record["templateId"].as_str()
            && entry.template.as_deref() != Some(template)
        {
            // If another change may have set the value, the time is unknown.
            let asked = serde_json::from_slice::<Value>(&exchange.body).unwrap_or_default();
            let is_this = asked["templateId"] == template && is_alone;
            entry.template_changed =
                exchange.arrived.filter(|_| is_this).map(|changed| TemplateChange { changed, answered: now });
            entry.template = Some(template.into());
        }
        entry.workers_min = record["workersMin"].as_u64().filter(|_| is_alone);
        if is_created {
            entry.is_created = true;
        }
    }

    fn widen_settings(&mut self, endpoint: EndpointNo, record: &Value, is_all: bool) {
        let settings = &mut self.model.endpoints[endpoint.0].settings;
        let ranges: [(&str, &mut Range); 6] = [
            ("executionTimeoutMs", &mut settings.execution_timeout_ms),
            ("maxRetries", &mut settings.max_retries),
            ("resultRetentionMs", &mut settings.retention_ms),
            ("syncResultRetentionMs", &mut settings.sync_retention_ms),
            ("workersMin", &mut settings.workers_min),
            ("workersMax", &mut settings.workers_max),
        ];
        for (name, range) in ranges {
            match record[name].as_u64() {
                Some(value) if is_all => *range = Range::only(value),
                Some(value) => range.widen(value),
                None => {}
            }
        }
        let retry_on = record["retryOn"].as_array();
        settings.may_retry_errors |=
            retry_on.is_some_and(|list| list.iter().any(|word| word == "handlerError"));
        let keeps_lost = |list: &Vec<Value>| list.iter().any(|word| word == "workerLost");
        if retry_on.is_some_and(|list| !keeps_lost(list)) {
            // The first loss may already be the last.
            settings.max_retries.low = 0;
        }
        settings.is_buffered |= record["durability"] == "buffered";
        settings.queue_length_max =
            settings.queue_length_max.min(record["maxQueueLength"].as_u64().unwrap_or(u64::MAX));
        settings.is_external |= record["provider"].as_str().is_some_and(|provider| provider != "process");
    }

    /// A deletion was answered, or never will be.
    pub(super) fn deletion_settled(
        &mut self,
        exchange: &Exchange,
        until: Option<EventTime>,
        status: Option<u16>,
    ) {
        let Some(endpoint) = exchange.endpoint else { return };
        let entry = &mut self.model.endpoints[endpoint.0];
        match status {
            Some(204) => {
                entry.is_deleted = true;
                if let Some(span) = &mut entry.deleted {
                    span.until = span.until.or(until);
                }
            }
            Some(400..500)
                if !entry.is_deleted
                    && entry.deleted.is_some_and(|span| Some(span.from) == exchange.arrived) =>
            {
                entry.deleted = None;
            }
            _ => {}
        }
    }
}
