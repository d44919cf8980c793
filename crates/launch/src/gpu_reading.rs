//! The GPUs of this computer, and how they are: those of NVIDIA and of AMD.

use std::path::Path;

use longshore_model::Gpu;

use crate::{amd, nvidia};

/// Where Linux lists the graphics cards.
const CARDS: &str = "/sys/class/drm";
/// The file through which programs compute on GPUs of AMD. Without it, such cards only draw.
const AMD_COMPUTE: &str = "/dev/kfd";

/// What a driver said about a GPU when it was last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuReading {
    /// The GPU, or the part of one that is a device of its own.
    pub gpu: Gpu,
    /// Its address on the PCI bus, such as `00000000:3B:00.0`; `None` if unknown.
    pub bus_id: Option<String>,
    /// The version of CUDA's instructions that it runs, such as `9.0`; `None` if unknown.
    pub compute_capability: Option<String>,
    /// The version of the driver; `None` if unknown.
    pub driver_version: Option<String>,
    /// Its temperature in degrees Celsius; `None` if unknown.
    pub temperature_c: Option<i32>,
    /// The share of the last moments in which it computed, in percent; `None` if unknown, as for a part of a GPU.
    pub use_percent: Option<u8>,
    /// Its memory that programs use, in MiB; `None` if unknown, as for a part of a GPU.
    pub memory_used_mib: Option<u64>,
    /// The number of memory errors since the driver was loaded that could not be corrected; `None` if it counts none.
    pub ecc_errors: Option<u64>,
    /// Why no worker should get the GPU; `None` while it works.
    pub fault: Option<String>,
}

impl GpuReading {
    /// The reading of a GPU about which nothing else is known.
    pub fn of(gpu: Gpu) -> Self {
        Self {
            gpu,
            bus_id: None,
            compute_capability: None,
            driver_version: None,
            temperature_c: None,
            use_percent: None,
            memory_used_mib: None,
            ecc_errors: None,
            fault: None,
        }
    }
}

/// Asks the drivers for the GPUs that can be assigned to workers; empty without a driver. Blocks on the system's own files for
/// a few values.
///
/// # Errors
///
/// There is a driver of NVIDIA, but its tool failed, took too long, or printed something else. The text says which.
pub async fn read_gpus() -> Result<Vec<GpuReading>, String> {
    let mut gpus = nvidia::nvidia_gpus().await?;
    if Path::new(AMD_COMPUTE).exists() {
        gpus.extend(amd::read(Path::new(CARDS)));
    }
    Ok(gpus)
}
