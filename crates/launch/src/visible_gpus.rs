//! How a process sees its own GPUs and no others: by the variables of the libraries of NVIDIA and AMD.

use std::collections::BTreeMap;

use longshore_model::{ComputeType, Gpu};

use crate::amd::amd_unique_id;

const VISIBLE_DEVICES: &str = "CUDA_VISIBLE_DEVICES";
const ROCR_VISIBLE_DEVICES: &str = "ROCR_VISIBLE_DEVICES";

/// Sets the variables by which a worker sees only its `own` GPUs. Without GPUs of its own, a `Gpu` worker sees every GPU
/// of the computer. A `Cpu` worker sees none, unless its template sets the variable.
pub(crate) fn set_visible_gpus(env: &mut BTreeMap<String, String>, compute_type: ComputeType, own: &[Gpu]) {
    if compute_type == ComputeType::Cpu {
        env.entry(VISIBLE_DEVICES.to_owned()).or_default();
    }
    let of_amd: Vec<&str> = own.iter().filter_map(|gpu| amd_unique_id(gpu.card())).collect();
    if !of_amd.is_empty() {
        let devices: Vec<String> = of_amd.iter().map(|id| format!("GPU-{id}")).collect();
        env.insert(ROCR_VISIBLE_DEVICES.to_owned(), devices.join(","));
        // It would count among those that are visible already.
        env.remove("HIP_VISIBLE_DEVICES");
        env.insert(VISIBLE_DEVICES.to_owned(), String::new());
        return;
    }
    if !own.is_empty() {
        let devices: Vec<&str> = own.iter().map(Gpu::card).collect();
        env.insert(VISIBLE_DEVICES.to_owned(), devices.join(","));
        // The numbers are the driver's. By default the library counts the fastest GPU first.
        env.insert("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(set_by_template: Option<&str>, compute_type: ComputeType, own: &[&str]) -> Option<String> {
        let gpu = |device: &&str| Gpu { device: (*device).into(), type_id: "L4".into(), memory_mib: 0 };
        let own: Vec<Gpu> = own.iter().map(gpu).collect();
        let mut env: BTreeMap<_, _> = set_by_template
            .map(|devices| (VISIBLE_DEVICES.to_owned(), devices.to_owned()))
            .into_iter()
            .collect();
        set_visible_gpus(&mut env, compute_type, &own);
        assert_eq!(
            env.get("CUDA_DEVICE_ORDER").map(String::as_str),
            (!own.is_empty()).then_some("PCI_BUS_ID")
        );
        env.remove(VISIBLE_DEVICES)
    }

    #[test]
    fn a_worker_sees_its_own_gpus_and_no_others() {
        let visible_gpus = |template, own: &[&str]| visible(template, ComputeType::Gpu, own);
        assert_eq!(visible_gpus(None, &["2", "GPU-7"]).unwrap(), "2,GPU-7");
        assert_eq!(visible_gpus(Some("0,1,2,3"), &["2"]).unwrap(), "2", "a template cannot claim more");
        assert_eq!(
            visible_gpus(None, &["GPU-7::2", "GPU-8::1"]).unwrap(),
            "GPU-7,GPU-8",
            "shares are no devices"
        );
        assert_eq!(visible_gpus(None, &[]), None, "without an inventory of GPUs nothing is hidden");
    }

    #[test]
    fn a_gpu_of_amd_is_named_as_its_library_does() {
        let gpu = Gpu { device: "AMD-18f6".into(), type_id: "AMD Instinct MI210".into(), memory_mib: 0 };
        let mut env = BTreeMap::from([("HIP_VISIBLE_DEVICES".to_owned(), "0,1".to_owned())]);
        set_visible_gpus(&mut env, ComputeType::Gpu, &[gpu]);
        let expected = [(ROCR_VISIBLE_DEVICES, "GPU-18f6"), (VISIBLE_DEVICES, "")];
        assert_eq!(env, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn a_cpu_worker_sees_no_gpu_unless_its_template_says_so() {
        assert_eq!(visible(None, ComputeType::Cpu, &[]).unwrap(), "");
        assert_eq!(visible(Some("0,1,2,3"), ComputeType::Cpu, &[]).unwrap(), "0,1,2,3");
    }
}
