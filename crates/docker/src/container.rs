//! The container of a worker, as the daemon is asked to create it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, HostConfig, HostConfigLogConfig, Mount, MountType,
    RestartPolicy, RestartPolicyNameEnum,
};
use longshore_launch::{Volumes, WorkerSpec, amd_render_node, amd_unique_id, put_worker_runtime_first};
use longshore_model::ComputeType;

use crate::code::{CODE, CWD, CodeMounts};
use crate::daemon::Daemon;
use crate::image::Image;
use crate::labels::Owner;
use crate::settings::DockerSettings;

/// The largest number of processes in a container.
const PIDS_MAX: i64 = 4_096;
/// The size of `/dev/shm`: workers with a GPU pass tensors between processes through it.
const SHM_GPU_BYTES: i64 = 1 << 30;
const SHM_BYTES: i64 = 64 << 20;
/// Where the first volume is, as images for serverless workers expect it.
const FIRST_VOLUME: &str = "/runpod-volume";
/// The groups that may use the files of GPUs of AMD.
const AMD_GROUPS: [&str; 2] = ["video", "render"];
/// The kind of NVIDIA's GPUs in the Container Device Interface.
const CDI_GPU: &str = "nvidia.com/gpu";
/// Where all volumes are, by their ids.
const VOLUMES: &str = "/runpod-volumes";

/// Where the worker runtime is.
const WORKER_RUNTIME: &str = "/longshore/runtime";

/// What is put into a container beside what its spec names.
pub(crate) struct Contents {
    pub(crate) image: Image,
    /// The folders of deployed code; `None` without code.
    pub(crate) code: Option<CodeMounts>,
    /// The folder of the worker runtime; `None` without one.
    pub(crate) worker_runtime: Option<PathBuf>,
    /// The size of what the container may write; `None`: no limit.
    pub(crate) disk_bytes: Option<u64>,
}

/// What the container of `spec` is made of.
pub(crate) fn body(
    spec: &WorkerSpec,
    contents: &Contents,
    owner: &Owner,
    daemon: &Daemon,
    settings: &DockerSettings,
    volumes: &Volumes,
) -> ContainerCreateBody {
    let words = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
    ContainerCreateBody {
        image: Some(contents.image.id.clone()),
        entrypoint: words(&spec.entrypoint),
        cmd: words(&spec.cmd),
        env: Some(environment(spec, contents)),
        working_dir: match contents.code {
            Some(_) => Some(CWD.to_owned()),
            None => spec.workdir.as_deref().and_then(Path::to_str).map(str::to_owned),
        },
        labels: Some(owner.labels(spec)),
        host_config: Some(HostConfig {
            memory: bytes(spec.limits.memory_bytes),
            // The same number: no swap on top.
            memory_swap: bytes(spec.limits.memory_bytes),
            nano_cpus: spec.limits.vcpus.map(|vcpus| (vcpus * 1e9) as i64),
            pids_limit: Some(PIDS_MAX),
            shm_size: Some(match spec.compute_type {
                ComputeType::Gpu => SHM_GPU_BYTES,
                ComputeType::Cpu => SHM_BYTES,
            }),
            init: daemon.has_init.then_some(true),
            cap_drop: Some(settings.cap_drop.clone()),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                ..RestartPolicy::default()
            }),
            log_config: Some(log_config()),
            mounts: Some(mounts(spec, contents, volumes)),
            storage_opt: contents
                .disk_bytes
                .map(|bytes| HashMap::from([("size".to_owned(), bytes.to_string())])),
            device_requests: gpus(spec, daemon).map(|request| vec![request]),
            devices: Some(amd_devices(spec)).filter(|devices| !devices.is_empty()),
            group_add: has_amd(spec).then(|| AMD_GROUPS.map(str::to_owned).to_vec()),
            network_mode: Some(settings.network.clone()),
            extra_hosts: (!settings.is_host_network() && settings.network != "none")
                .then(|| vec!["host.docker.internal:host-gateway".to_owned()]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn bytes(limit: Option<u64>) -> Option<i64> {
    limit.and_then(|bytes| i64::try_from(bytes).ok())
}

/// The variables as `NAME=value`, with the paths of the volumes as the container sees them.
fn environment(spec: &WorkerSpec, contents: &Contents) -> Vec<String> {
    let mut env = spec.env.clone();
    if contents.worker_runtime.is_some() {
        put_worker_runtime_first(&mut env, Path::new(WORKER_RUNTIME), contents.image.python_path.clone());
    }
    if let Some(first) = spec.volumes.first() {
        let paths: Vec<String> = spec.volumes.iter().map(|volume| format!("{VOLUMES}/{volume}")).collect();
        env.insert("RUNPOD_VOLUME_ID".to_owned(), first.to_string());
        env.insert("LONGSHORE_VOLUME_PATH".to_owned(), FIRST_VOLUME.to_owned());
        env.insert("LONGSHORE_VOLUME_PATHS".to_owned(), paths.join(":"));
    }
    if spec.compute_type == ComputeType::Cpu {
        // Images for GPUs ask the runtime of NVIDIA for all of them.
        env.insert("NVIDIA_VISIBLE_DEVICES".to_owned(), "void".to_owned());
    }
    env.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn mounts(spec: &WorkerSpec, contents: &Contents, volumes: &Volumes) -> Vec<Mount> {
    let mount = |source: &Path, target: String| Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target),
        ..Mount::default()
    };
    let read_only =
        |source: &Path, target: &str| Mount { read_only: Some(true), ..mount(source, target.to_owned()) };
    let runtime = contents.worker_runtime.as_deref().map(|folder| read_only(folder, WORKER_RUNTIME));
    let code = contents
        .code
        .iter()
        .flat_map(|mounts| [read_only(&mounts.code, CODE), mount(&mounts.cwd, CWD.to_owned())]);
    let first = spec.volumes.first().map(|volume| mount(&volumes.path(volume), FIRST_VOLUME.to_owned()));
    let all = spec.volumes.iter().map(|volume| mount(&volumes.path(volume), format!("{VOLUMES}/{volume}")));
    first.into_iter().chain(all).chain(runtime).chain(code).collect()
}

/// The GPUs of the placement. Without a placement, a GPU worker gets all GPUs, if the daemon can give any.
fn gpus(spec: &WorkerSpec, daemon: &Daemon) -> Option<DeviceRequest> {
    if spec.compute_type == ComputeType::Cpu || has_amd(spec) {
        return None;
    }
    let devices: Vec<String> = spec.placement.gpus.iter().map(|gpu| gpu.card().to_owned()).collect();
    let wanted = if devices.is_empty() { vec!["all".to_owned()] } else { devices.clone() };
    let by_cdi: Vec<String> = wanted.iter().map(|device| format!("{CDI_GPU}={device}")).collect();
    if by_cdi.iter().all(|device| daemon.cdi_devices.contains(device)) {
        return Some(DeviceRequest {
            driver: Some("cdi".to_owned()),
            device_ids: Some(by_cdi),
            ..DeviceRequest::default()
        });
    }
    let request = DeviceRequest {
        driver: Some("nvidia".to_owned()),
        capabilities: Some(vec![vec!["gpu".to_owned()]]),
        ..DeviceRequest::default()
    };
    match devices.is_empty() {
        false => Some(DeviceRequest { device_ids: Some(devices), ..request }),
        true if daemon.has_nvidia => Some(DeviceRequest { count: Some(-1), ..request }),
        true => None,
    }
}

/// Whether the worker has GPUs of AMD.
fn has_amd(spec: &WorkerSpec) -> bool {
    spec.placement.gpus.iter().any(|gpu| amd_unique_id(gpu.card()).is_some())
}

/// The files through which a container uses its GPUs of AMD.
fn amd_devices(spec: &WorkerSpec) -> Vec<DeviceMapping> {
    let nodes = spec.placement.gpus.iter().filter_map(|gpu| amd_render_node(gpu.card()));
    let shared = has_amd(spec).then(|| "/dev/kfd".to_owned());
    let device = |path: String| DeviceMapping {
        path_on_host: Some(path.clone()),
        path_in_container: Some(path),
        cgroup_permissions: Some("rwm".to_owned()),
    };
    shared.into_iter().chain(nodes).map(device).collect()
}

/// The daemon's own copy of the output, which the server reads: bounded, and kept for a server that is away.
fn log_config() -> HostConfigLogConfig {
    let options = [("max-size", "10m"), ("max-file", "3")];
    HostConfigLogConfig {
        typ: Some("local".to_owned()),
        config: Some(options.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashSet};

    use bollard::{API_DEFAULT_VERSION, Docker};
    use longshore_launch::{InstallationId, Limits, RegistryLogin};
    use longshore_model::{EndpointId, Gpu, Placement, VolumeId};

    use super::*;
    use crate::labels;
    use crate::settings::PullPolicy;

    fn daemon(dir: &Path) -> Daemon {
        let socket = dir.join("docker.sock");
        std::fs::write(&socket, "").unwrap();
        Daemon {
            docker: Docker::connect_with_unix(socket.to_str().unwrap(), 1, API_DEFAULT_VERSION).unwrap(),
            architecture: "amd64".to_owned(),
            has_init: false,
            has_nvidia: true,
            enforces: (true, true),
            may_limit_disk: false,
            cdi_devices: HashSet::new(),
        }
    }

    fn contents() -> Contents {
        let image = Image { id: "sha256:1".to_owned(), python_path: Some("/app".to_owned()) };
        Contents { image, code: None, worker_runtime: None, disk_bytes: None }
    }

    fn spec() -> WorkerSpec {
        let gpu = Gpu { device: "GPU-1".into(), type_id: "NVIDIA L4".into(), memory_mib: 1 };
        WorkerSpec {
            worker: "w-1".parse().unwrap(),
            endpoint: EndpointId::mint(1),
            version: 2,
            image: "chat:1".to_owned(),
            registry_login: Some(RegistryLogin { username: "ada".into(), password: "hush".into() }),
            entrypoint: vec![],
            cmd: vec!["serve".to_owned()],
            code: None,
            workdir: None,
            volumes: vec![VolumeId::mint(1), VolumeId::mint(2)],
            server_url: "http://10.0.0.5:8080".to_owned(),
            env: BTreeMap::from([("TOKEN".to_owned(), "secret-value".to_owned())]),
            private_home: false,
            compute_type: ComputeType::Gpu,
            placement: Placement { gpus: vec![gpu], ..Placement::default() },
            limits: Limits { memory_bytes: Some(1 << 30), vcpus: Some(1.5) },
            flashboot: false,
            secret_variables: BTreeSet::new(),
            disk_bytes: None,
        }
    }

    fn made(spec: &WorkerSpec, network: &str) -> ContainerCreateBody {
        made_with(spec, network, &contents(), &[])
    }

    fn made_with(
        spec: &WorkerSpec,
        network: &str,
        contents: &Contents,
        cdi_devices: &[&str],
    ) -> ContainerCreateBody {
        let dir = tempfile::tempdir().unwrap();
        let settings = DockerSettings {
            socket: dir.path().join("docker.sock"),
            server_url: None,
            network: network.to_owned(),
            pull: PullPolicy::Missing,
            pull_stall: std::time::Duration::from_secs(1),
            cap_drop: vec!["NET_RAW".to_owned()],
            base_image: None,
            images_bytes_max: None,
            orphan_interval: std::time::Duration::from_secs(1),
        };
        let owner = Owner::new(InstallationId(7), 8);
        let volumes = Volumes::at("/data/volumes".into());
        let cdi_devices = cdi_devices.iter().map(|it| (*it).to_owned()).collect();
        let daemon = Daemon { cdi_devices, ..daemon(dir.path()) };
        body(spec, contents, &owner, &daemon, &settings, &volumes)
    }

    #[tokio::test]
    async fn a_container_has_its_gpus_volumes_limits_and_labels() {
        let spec = spec();
        let body = made(&spec, "host");
        assert_eq!((body.entrypoint, body.cmd), (None, Some(vec!["serve".to_owned()])));
        let env = body.env.unwrap();
        for variable in ["TOKEN=secret-value", "LONGSHORE_VOLUME_PATH=/runpod-volume"] {
            assert!(env.iter().any(|it| it == variable), "{env:?}");
        }
        let labels = body.labels.unwrap();
        let text = format!("{labels:?}");
        assert!(!text.contains("secret-value") && !text.contains("hush"), "{text}");
        let found = labels::worker(&labels).unwrap();
        assert_eq!((found.worker, found.endpoint, found.version), (spec.worker, spec.endpoint, 2));
        assert_eq!((found.placement, found.server_url), (spec.placement, Some(spec.server_url)));
        let host = body.host_config.unwrap();
        assert_eq!(
            (host.memory, host.memory_swap, host.nano_cpus),
            (Some(1 << 30), Some(1 << 30), Some(1_500_000_000))
        );
        assert_eq!(host.device_requests.unwrap()[0].device_ids, Some(vec!["GPU-1".to_owned()]));
        let targets: Vec<_> = host.mounts.unwrap().into_iter().filter_map(|mount| mount.target).collect();
        assert_eq!(targets[0], FIRST_VOLUME);
        assert_eq!((targets.len(), host.extra_hosts, host.init), (3, None, None));
    }

    #[tokio::test]
    async fn a_cpu_worker_sees_no_gpu_and_another_network_reaches_the_host() {
        let spec = WorkerSpec { compute_type: ComputeType::Cpu, volumes: vec![], ..spec() };
        let body = made(&spec, "bridge");
        assert!(body.env.unwrap().contains(&"NVIDIA_VISIBLE_DEVICES=void".to_owned()));
        let host = body.host_config.unwrap();
        assert_eq!((host.device_requests, host.mounts), (None, Some(vec![])));
        assert_eq!(host.extra_hosts, Some(vec!["host.docker.internal:host-gateway".to_owned()]));
        let all = WorkerSpec { placement: Placement::default(), compute_type: ComputeType::Gpu, ..spec };
        let request = made(&all, "host").host_config.unwrap().device_requests.unwrap().remove(0);
        assert_eq!((request.count, request.device_ids), (Some(-1), None), "all GPUs without a placement");
    }

    #[tokio::test]
    async fn the_container_device_interface_is_preferred_where_it_has_every_device() {
        let request = |cdi: &[&str], spec: &WorkerSpec| {
            let host = made_with(spec, "host", &contents(), cdi).host_config.unwrap();
            host.device_requests.unwrap().remove(0)
        };
        let one = spec();
        let made = request(&["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=all"], &one);
        assert_eq!((made.driver.as_deref(), made.capabilities), (Some("cdi"), None));
        assert_eq!(made.device_ids.unwrap(), ["nvidia.com/gpu=GPU-1"]);
        let made = request(&["nvidia.com/gpu=GPU-2", "nvidia.com/gpu=all"], &one);
        assert_eq!(made.driver.as_deref(), Some("nvidia"), "the daemon does not know this device");
        let all = WorkerSpec { placement: Placement::default(), ..one };
        assert_eq!(request(&["nvidia.com/gpu=all"], &all).device_ids.unwrap(), ["nvidia.com/gpu=all"]);
    }

    #[tokio::test]
    async fn the_worker_runtime_and_the_code_are_mounted_read_only() {
        let code = CodeMounts { code: "/data/code".into(), cwd: "/data/cwd".into() };
        let contents = Contents {
            code: Some(code),
            worker_runtime: Some("/data/runtime".into()),
            disk_bytes: Some(5),
            ..contents()
        };
        let body = made_with(&spec(), "host", &contents, &[]);
        let env = body.env.unwrap();
        assert!(env.contains(&"PYTHONPATH=/longshore/runtime:/app".to_owned()), "{env:?}");
        assert_eq!(body.working_dir.as_deref(), Some("/longshore/work"));
        let host = body.host_config.unwrap();
        assert_eq!(host.storage_opt.unwrap()["size"], "5");
        let mounts = host.mounts.unwrap();
        let read_only: Vec<_> = mounts.iter().filter(|mount| mount.read_only == Some(true)).collect();
        let targets: Vec<_> = read_only.iter().filter_map(|mount| mount.target.as_deref()).collect();
        assert_eq!(targets, ["/longshore/runtime", "/longshore/code"]);
        assert!(mounts.iter().any(|mount| mount.target.as_deref() == Some("/longshore/work")));
    }

    #[tokio::test]
    async fn a_gpu_of_amd_is_given_by_its_files() {
        let gpu = Gpu { device: "AMD-18f6".into(), type_id: "AMD Instinct MI210".into(), memory_mib: 1 };
        let placement = Placement { gpus: vec![gpu], ..Placement::default() };
        let host = made(&WorkerSpec { placement, ..spec() }, "host").host_config.unwrap();
        assert_eq!(host.device_requests, None);
        assert_eq!(host.devices.unwrap()[0].path_on_host.as_deref(), Some("/dev/kfd"));
        assert_eq!(host.group_add.unwrap(), ["video", "render"]);
    }
}
