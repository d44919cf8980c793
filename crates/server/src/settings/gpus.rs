//! The GPUs that the operator lists, and their prices.

use std::collections::{BTreeMap, BTreeSet};

use longshore_model::Gpu;
use serde::Deserialize;

use super::SettingsError;

/// Whether GPUs are shared among workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GpuSharing {
    On,
    Off,
}

/// GPUs of one type.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GpuSettings {
    #[serde(rename = "type")]
    type_id: String,
    count: Option<u32>,
    devices: Option<Vec<String>>,
    #[serde(default)]
    memory_gib: u32,
    /// How many workers each GPU has at a time.
    #[serde(default = "one")]
    shares: u32,
}

fn one() -> u32 {
    1
}

/// More than any computer has; a larger count is a mistake.
const GPUS_MAX: usize = 1_024;
/// More than any GPU has memory for; a larger number is a mistake.
const SHARES_MAX: u32 = 64;

/// Returns every GPU with its device, or its shares.
pub(super) fn inventory(settings: &[GpuSettings]) -> Result<Vec<Gpu>, SettingsError> {
    let refused = |text: String| Err(SettingsError::Value(text));
    let mut gpus: Vec<Gpu> = Vec::new();
    // Numbers of devices go on after the previous table, with any number of shares.
    let mut numbered = 0;
    for GpuSettings { type_id, count, devices, memory_gib, shares } in settings {
        if type_id.trim().is_empty() {
            return refused("a [[gpus]] table has an empty `type`; endpoints ask for GPUs by it".to_owned());
        }
        let devices = match (count, devices) {
            (Some(count), None) if (1..=GPUS_MAX).contains(&(*count as usize)) => {
                (numbered..numbered + *count as usize).map(|n| n.to_string()).collect()
            }
            (None, Some(devices)) if !devices.is_empty() => devices.clone(),
            _ => {
                return refused(format!(
                    "[[gpus]] of the type {type_id:?} needs either `count`, from 1 to {GPUS_MAX}, or `devices`"
                ));
            }
        };
        if !(1..=SHARES_MAX).contains(shares) {
            return refused(format!(
                "`shares` in [[gpus]] of the type {type_id:?} is {shares}; it must be from 1 to {SHARES_MAX}"
            ));
        }
        if let Some(device) = devices.iter().find(|device| device.contains(Gpu::SHARE)) {
            return refused(format!(
                "device {device:?} in [[gpus]] names a share; name the GPU and set `shares`"
            ));
        }
        numbered += devices.len();
        let memory_mib = u64::from(*memory_gib) * 1_024 / u64::from(*shares);
        // The first share of every GPU comes before the second of any, so that workers spread over the GPUs.
        for share in 1..=*shares {
            let name = |device: &String| match shares {
                1 => device.clone(),
                _ => format!("{device}{}{share}", Gpu::SHARE),
            };
            let of_device = |device| Gpu { device: name(device), type_id: type_id.clone(), memory_mib };
            gpus.extend(devices.iter().map(of_device));
        }
    }
    let mut seen = BTreeSet::new();
    match gpus
        .iter()
        .find(|gpu| gpu.device.is_empty() || gpu.device.contains(',') || !seen.insert(&gpu.device))
    {
        Some(Gpu { device, .. }) => {
            refused(format!("device {device:?} in [[gpus]] is a duplicate or names no GPU"))
        }
        None => Ok(gpus),
    }
}

pub(super) fn check_prices(prices: &BTreeMap<String, f64>) -> Result<(), SettingsError> {
    match prices.iter().find(|(_, price)| !price.is_finite() || **price < 0.0) {
        Some((name, price)) => {
            Err(SettingsError::Value(format!("the price of {name:?} is {price}; it must be 0 or more")))
        }
        None => Ok(()),
    }
}
