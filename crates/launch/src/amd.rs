//! The AMD GPUs of this computer, as the kernel's driver lists them in files. Tested with such files, not with a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use longshore_model::Gpu;

use crate::gpu_reading::GpuReading;

/// The number of the vendor on the PCI bus.
const VENDOR: &str = "0x1002";
/// What the device of an AMD GPU begins with. Its unique number follows.
const DEVICE_PREFIX: &str = "AMD-";
/// The names of products by their number, for drivers that tell no name.
const PRODUCTS: &[(&str, &str)] = &[
    ("0x738c", "AMD Instinct MI100"),
    ("0x740c", "AMD Instinct MI250X"),
    ("0x740f", "AMD Instinct MI210"),
    ("0x74a0", "AMD Instinct MI300A"),
    ("0x74a1", "AMD Instinct MI300X"),
    ("0x744c", "AMD Radeon RX 7900 XTX"),
];

/// The GPUs among the graphics cards in a folder such as `/sys/class/drm`, by their addresses on the bus. A GPU without a
/// unique number is left out: no worker could be told which one it is.
pub(crate) fn read(cards: &Path) -> Vec<GpuReading> {
    let mut found: Vec<GpuReading> =
        card_folders(cards).iter().filter_map(|folder| reading(folder)).collect();
    found.sort_by(|a, b| a.bus_id.cmp(&b.bus_id));
    found
}

/// The unique number of an AMD GPU, as the library of AMD names it; `None` for a device of another vendor.
pub fn amd_unique_id(device: &str) -> Option<&str> {
    device.strip_prefix(DEVICE_PREFIX)
}

/// The file through which programs use an AMD GPU, such as `/dev/dri/renderD128`; `None` if the computer has no such GPU.
pub fn amd_render_node(device: &str) -> Option<String> {
    render_node(Path::new("/sys/class/drm"), device)
}

fn render_node(cards: &Path, device: &str) -> Option<String> {
    let folder =
        card_folders(cards).into_iter().find(|folder| device_of(folder).as_deref() == Some(device))?;
    let nodes = fs::read_dir(folder.join("drm")).ok()?.flatten();
    let names = nodes.filter_map(|node| node.file_name().into_string().ok());
    names.filter(|name| name.starts_with("renderD")).min().map(|name| format!("/dev/dri/{name}"))
}

/// The folders of the devices of AMD's cards. A card's outputs, such as `card0-DP-1`, have folders too.
fn card_folders(cards: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cards).into_iter().flatten().flatten();
    let is_card = |name: &str| name.strip_prefix("card").is_some_and(|number| u32::from_str(number).is_ok());
    let cards = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_card));
    let devices = cards.map(|card| card.path().join("device"));
    devices.filter(|folder| text(folder, "vendor").as_deref() == Some(VENDOR)).collect()
}

fn device_of(folder: &Path) -> Option<String> {
    let id = text(folder, "unique_id")?;
    let is_number = id.bytes().all(|byte| byte.is_ascii_hexdigit()) && id.bytes().any(|byte| byte != b'0');
    is_number.then(|| format!("{DEVICE_PREFIX}{id}"))
}

fn reading(folder: &Path) -> Option<GpuReading> {
    let device = device_of(folder)?;
    let product = text(folder, "device").unwrap_or_default();
    let known = PRODUCTS.iter().find(|(number, _)| *number == product).map(|(_, name)| (*name).to_owned());
    let type_id = text(folder, "product_name")
        .or(known)
        .unwrap_or_else(|| format!("AMD GPU {product}").trim().to_owned());
    let memory: Option<u64> = number(folder, "mem_info_vram_total");
    let gpu = Gpu { device, type_id, memory_mib: memory.unwrap_or_default() >> 20 };
    let bus_id = fs::canonicalize(folder).ok()?.file_name()?.to_str().map(str::to_owned);
    let used: Option<u64> = number(folder, "mem_info_vram_used");
    Some(GpuReading {
        bus_id,
        temperature_c: temperature_c(folder),
        use_percent: number(folder, "gpu_busy_percent"),
        memory_used_mib: used.map(|bytes| bytes >> 20),
        ..GpuReading::of(gpu)
    })
}

/// The first temperature that a sensor of the card tells, in degrees Celsius.
fn temperature_c(folder: &Path) -> Option<i32> {
    let mut sensors = fs::read_dir(folder.join("hwmon")).ok()?.flatten();
    let milli: i32 = sensors.find_map(|sensor| number(&sensor.path(), "temp1_input"))?;
    Some(milli / 1_000)
}

fn number<T: FromStr>(folder: &Path, name: &str) -> Option<T> {
    text(folder, name)?.parse().ok()
}

/// The text of a file; `None` if it is empty or cannot be read.
fn text(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The name of a card, its address on the bus, and its files with their texts.
    type Card<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    /// A folder as the kernel has one, with cards of these files.
    fn cards(cards: &[Card<'_>]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (card, bus, files) in cards {
            let device = dir.path().join("devices").join(bus);
            for (path, text) in *files {
                let path = device.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{text}\n")).unwrap();
            }
            fs::create_dir_all(dir.path().join("drm").join(card)).unwrap();
            symlink(&device, dir.path().join("drm").join(card).join("device")).unwrap();
        }
        dir
    }

    const MI210: &[(&str, &str)] = &[
        ("vendor", "0x1002"),
        ("device", "0x740f"),
        ("unique_id", "18f68e602b8a790f"),
        ("mem_info_vram_total", "68702699520"),
        ("mem_info_vram_used", "10485760"),
        ("gpu_busy_percent", "12"),
        ("hwmon/hwmon3/temp1_input", "43000"),
        ("drm/renderD129/dev", "226:129"),
        ("drm/card1/dev", "226:1"),
    ];

    #[test]
    fn cards_of_amd_are_found_and_no_others() {
        let named = [&MI210[..2], &[("unique_id", "2"), ("product_name", "Radeon PRO W7900")]].concat();
        let without_id = &MI210[..2];
        let other = [("vendor", "0x10de"), ("unique_id", "3")];
        let dir = cards(&[
            ("card1", "0000:83:00.0", MI210),
            ("card0", "0000:03:00.0", &named),
            ("card2", "0000:84:00.0", without_id),
            ("card3", "0000:85:00.0", &other),
            ("card1-DP-1", "0000:86:00.0", MI210),
        ]);
        let found = read(&dir.path().join("drm"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            (found[0].gpu.device.as_str(), found[0].gpu.type_id.as_str()),
            ("AMD-2", "Radeon PRO W7900")
        );
        let mi210 = &found[1];
        assert_eq!((mi210.gpu.type_id.as_str(), mi210.gpu.memory_mib), ("AMD Instinct MI210", 65_520));
        assert_eq!((mi210.bus_id.as_deref(), mi210.temperature_c), (Some("0000:83:00.0"), Some(43)));
        assert_eq!((mi210.use_percent, mi210.memory_used_mib), (Some(12), Some(10)));
        assert_eq!(amd_unique_id(&mi210.gpu.device), Some("18f68e602b8a790f"));
        let node = render_node(&dir.path().join("drm"), &mi210.gpu.device);
        assert_eq!(node.as_deref(), Some("/dev/dri/renderD129"));
        assert_eq!(render_node(&dir.path().join("drm"), "AMD-7"), None);
        assert_eq!(read(Path::new("/no/such/folder")), []);
    }

    #[test]
    fn damaged_files_are_survived() {
        let zero = [("vendor", "0x1002"), ("unique_id", "0")];
        let odd = [("vendor", "0x1002"), ("unique_id", "../x"), ("mem_info_vram_total", "many")];
        let empty =
            [("vendor", "0x1002"), ("unique_id", "5"), ("mem_info_vram_total", "many"), ("product_name", "")];
        let dir = cards(&[("card0", "a", &odd), ("card1", "b", &empty), ("card2", "c", &zero)]);
        let found = read(&dir.path().join("drm"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].gpu.type_id.as_str(), found[0].gpu.memory_mib), ("AMD GPU", 0));
    }
}
