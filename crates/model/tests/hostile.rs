//! Hostile texts as ids and names: each is rejected, or parses to the value that it prints as.

use std::fmt::Display;
use std::str::FromStr;

use longshore_hostile::{cases, mutated, text};
use longshore_model::{
    ApiKey, EndpointId, EndpointNo, JobId, JobKey, JobState, KeyScope, Millis, Permission, ShardId,
    TemplateId, WorkerId,
};
use proptest::prelude::*;

const TOKENS: &[&[u8]] = &[b"-", b"sync-", b"..", b"/", b"\0", b"%2f", b"\xc3\xa9", b"F", b":"];

/// A spoiled id as text; what is no text does not get to a parser.
fn spoiled_text(id: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    mutated(id, TOKENS).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn job_id() -> impl Strategy<Value = JobId> {
    (any::<[u8; 16]>(), any::<bool>()).prop_map(|(raw, sync)| JobId::from_parts(raw, sync))
}

/// What parses prints as something that parses to the same.
fn is_stable<T: FromStr + Display + PartialEq + std::fmt::Debug>(text: &str) -> Option<T> {
    let id: T = text.parse().ok()?;
    assert_eq!(id.to_string().parse::<T>().ok().as_ref(), Some(&id), "{text:?}");
    Some(id)
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn job_ids(id in job_id(), texts in prop_oneof![text(), spoiled_text(job_id().prop_map(|id| id.to_string()))]) {
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(JobId::from_parts(id.raw(), id.is_sync()), id);
        if let Some(parsed) = is_stable::<JobId>(&texts) {
            // Only the case of its digits can differ.
            prop_assert_eq!(parsed.to_string(), texts.to_lowercase());
        }
    }

    #[test]
    fn minted_job_ids_ascend_with_time(tick in 0..u64::MAX / 2, later in 1..u64::MAX / 4, entropy: [u64; 2], sync: bool) {
        let (one, two) = (JobId::mint_at(tick, entropy[0], sync), JobId::mint_at(tick + later, entropy[1], sync));
        // Ids have 48 bits of milliseconds: enough for ten thousand years.
        let fits = (tick + later) >> 12 < 1 << 48;
        prop_assert!(!fits || one < two);
    }

    #[test]
    fn short_ids(entropy: u128, texts in prop_oneof![text(), spoiled_text("[a-z0-9]{14}")]) {
        prop_assert_eq!(EndpointId::mint(entropy).as_str().parse(), Ok(EndpointId::mint(entropy)));
        prop_assert!(ShardId::of(&EndpointId::mint(entropy)).0 < ShardId::COUNT);
        let fits = texts.len() == 14 && texts.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        prop_assert_eq!(is_stable::<EndpointId>(&texts).is_some(), fits);
        prop_assert_eq!(is_stable::<TemplateId>(&texts).is_some(), fits);
    }

    #[test]
    fn worker_ids_name_no_other_file(texts in prop_oneof![text(), spoiled_text("[A-Za-z0-9_.:-]{1,130}")]) {
        if let Some(id) = is_stable::<WorkerId>(&texts) {
            prop_assert_eq!(id.as_str(), texts.as_str());
            let path = std::path::Path::new("/folder").join(id.as_str());
            prop_assert_eq!(path.parent(), Some(std::path::Path::new("/folder")));
            prop_assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(id.as_str()));
        }
    }

    #[test]
    fn states_have_one_name_and_one_number(texts in prop_oneof![text(), spoiled_text(prop::sample::select(JobState::ALL.to_vec()).prop_map(|state| state.to_string()))], number: u8) {
        if let Some(state) = JobState::parse(&texts) {
            prop_assert_eq!(state.as_str(), texts.as_str());
        }
        prop_assert_eq!(JobState::from_number(number).map(|state| state as u8), Some(number).filter(|number| *number < 6));
    }

    #[test]
    fn keys_of_rows(row: i64, no in 0..1_u32 << 23, seq in 0..=JobKey::SEQ_MAX) {
        let key = JobKey { endpoint: EndpointNo(no), seq };
        prop_assert_eq!(JobKey::from_row(key.to_row()), key);
        let _ = JobKey::from_row(row).to_row();
    }

    #[test]
    fn no_scope_permits_what_it_does_not_name(ids in prop::collection::vec(any::<u128>(), 1..3), asked: u128, now: u64, end in prop::option::of(any::<u64>()), disabled: bool) {
        let listed: Vec<EndpointId> = ids.into_iter().map(EndpointId::mint).collect();
        let asked = EndpointId::mint(asked);
        let key = |scope| ApiKey {
            expires_at: end.map(Millis),
            disabled,
            ..ApiKey::new("k".into(), String::new(), String::new(), vec![scope], Millis(0))
        };
        let alive = !disabled && end.is_none_or(|end| now < end);
        let named = listed.contains(&asked);
        let may = |key: &ApiKey, operation| key.permits(operation, Some(&asked), Millis(now));
        let read = key(KeyScope::Read { endpoint_ids: listed.clone() });
        let jobs = key(KeyScope::Jobs { endpoint_ids: listed.clone() });
        prop_assert_eq!(may(&read, Permission::ReadJobs), alive && named);
        prop_assert_eq!(may(&jobs, Permission::ReadJobs), alive && named);
        prop_assert_eq!(may(&jobs, Permission::WriteJobs), alive && named);
        prop_assert_eq!(may(&read, Permission::ReadCatalog), alive && named);
        prop_assert!(!may(&read, Permission::WriteJobs) && !may(&jobs, Permission::ReadCatalog));
        prop_assert!(!may(&read, Permission::WriteCatalog) && !may(&jobs, Permission::WriteCatalog));
        let manage_all = key(KeyScope::manage_all());
        prop_assert!(!may(&manage_all, Permission::WriteJobs) && !may(&manage_all, Permission::ReadJobs));
        prop_assert_eq!(may(&manage_all, Permission::WriteCatalog), alive);
        let manage = key(KeyScope::Manage { endpoint_ids: listed.clone() });
        prop_assert_eq!(may(&manage, Permission::WriteCatalog), alive && named);
        prop_assert!(!may(&manage, Permission::WriteJobs) && !may(&manage, Permission::ReadJobs));
        prop_assert!(!manage.permits(Permission::WriteCatalog, None, Millis(now)));
    }
}
