//! `/v1/networkvolumes`: directories that the workers of several endpoints share.

use longshore_engine::TrackedKey;
use longshore_model::{Millis, NetworkVolume, VolumeId};
use serde_json::{Map, Value, json};

use super::fields::Field;
use super::from_fields::{Creation, EXAMPLE, new_record};
use super::operations::{operations, schemas};
use super::shared_resource::{SharedResource, create, delete, get, list, update};
use super::views;
use super::volume_fields::VOLUME_FIELDS;
use crate::HttpState;
use crate::openapi::Group;
use crate::services::files::VolumeUse;
use crate::wire::api_error::ApiError;

/// The measurement of the example.
const MEASURED: VolumeUse = VolumeUse { bytes: 14_483_501_056, measured_at: Millis(1_769_860_800_000) };

/// The operations on network volumes.
pub(super) fn group() -> Group {
    type Volume = NetworkVolume;
    let [list, create, get, update, update_by_post, delete] = operations!(
        "NetworkVolume",
        "NetworkVolumes",
        "/v1/networkvolumes",
        "/v1/networkvolumes/{networkVolume}",
        [list::<Volume>, create::<Volume>, get::<Volume>, update::<Volume>, delete::<Volume>],
    );
    let operations = vec![
        list.summary("every network volume"),
        create.summary("creates a network volume").about(
            "Workers of endpoints that name the volume find its directory in `LONGSHORE_VOLUME_PATH`.",
        ),
        get.summary("one network volume"),
        update,
        update_by_post,
        delete.summary("deletes a network volume that no endpoint uses, with its contents"),
    ];
    let create = json!({ "name": "weights", "size": 200, "dataCenterId": "cellar" });
    let made = NetworkVolume::new(create.as_object().cloned().unwrap_or_default(), EXAMPLE);
    let read = made.map_or(Value::Null, |volume| views::volume(&volume, Some(MEASURED)));
    let schemas = schemas!(
        "NetworkVolume",
        VOLUME_FIELDS,
        NetworkVolume::REQUIRED,
        { read: read, create: create, update: json!({ "size": 400 }) },
    );
    let about = "Directories that the workers of several endpoints share and that outlive workers.";
    Group { name: "Network volumes", about, operations, schemas }
}

impl SharedResource for NetworkVolume {
    const NAME: &'static str = "network volume";
    const NOT_FOUND: (&'static str, &'static str) =
        ("network_volume_not_found", "no network volume has this id");
    const FIELDS: &'static [Field] = VOLUME_FIELDS;
    const REQUIRED: &'static [&'static str] = &["name", "size"];

    fn view(&self, state: &HttpState, _key: &TrackedKey) -> Value {
        views::volume(self, state.files().volume_use(&self.id))
    }

    fn new(members: Map<String, Value>, creation: Creation<'_>) -> Result<Self, ApiError> {
        let id = VolumeId::mint(creation.entropy);
        new_record(Self::FIELDS, Self::REQUIRED, id, members, creation.at)
    }
}
