//! Placements by example, and the invariants of every history.

use alloc::vec;

use proptest::prelude::*;

use super::*;

const SMALL: &str = "NVIDIA L4";
const LARGE: &str = "NVIDIA H100 80GB HBM3";

fn gpus(types: &[(&str, u64, usize)]) -> Vec<Gpu> {
    let all = types.iter().flat_map(|&(type_id, memory_mib, n)| (0..n).map(move |_| (type_id, memory_mib)));
    let gpu = |(at, (type_id, memory_mib)): (usize, (&str, u64))| Gpu {
        device: at.to_string(),
        type_id: type_id.to_string(),
        memory_mib,
    };
    all.enumerate().map(gpu).collect()
}

fn machine() -> GpuInventory {
    GpuInventory::new(gpus(&[(SMALL, 23_034, 2), (LARGE, 81_559, 4)]))
}

fn need(types: &[&str], count: usize) -> GpuNeed {
    GpuNeed { types: types.iter().map(|t| (*t).to_string()).collect(), count }
}

fn worker(n: u32) -> WorkerId {
    format!("w{n}").parse().unwrap()
}

fn endpoint(n: u128) -> EndpointId {
    EndpointId::mint(n)
}

fn devices(placed: &Result<Vec<Gpu>, PlacementError>) -> Vec<&str> {
    placed.as_ref().unwrap().iter().map(|gpu| gpu.device.as_str()).collect()
}

#[test]
fn the_first_type_with_enough_free_ones_is_taken() {
    let mut rack = machine();
    let both = need(&[SMALL, LARGE], 2);
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(1), &both)), ["0", "1"]);
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(2), &both)), ["2", "3"]);
    assert!(rack.free(&worker(1)));
    assert!(!rack.free(&worker(1)), "the worker holds no GPU");
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(3), &need(&[SMALL], 1))), ["0"]);
    let any = rack.place(Millis(0), endpoint(1), &worker(4), &need(&[], 2));
    assert_eq!(devices(&any), ["4", "5"], "of one type, although one of another was free before");
}

#[test]
fn the_reason_names_what_is_missing() {
    let mut rack = machine();
    let reason = |rack: &mut GpuInventory, need: &GpuNeed| {
        rack.place(Millis(0), endpoint(1), &worker(1), need).unwrap_err()
    };
    let never = reason(&mut rack, &need(&["AMD Instinct"], 1));
    assert_eq!(
        never.reason(),
        "a worker needs a GPU of AMD Instinct; this machine has 4 x NVIDIA H100 80GB HBM3, 2 x NVIDIA L4"
    );
    assert!(matches!(never, PlacementError::NeverFits(_)));
    assert!(matches!(reason(&mut rack, &need(&[], 5)), PlacementError::NeverFits(_)));
    assert_eq!(rack.waiters().count(), 0, "an endpoint that never fits does not wait");
    rack.place(Millis(0), endpoint(1), &worker(1), &need(&[SMALL], 2)).unwrap();
    let taken = rack.place(Millis(0), endpoint(2), &worker(2), &need(&[SMALL], 1)).unwrap_err();
    assert_eq!(taken, PlacementError::InUse("a worker needs a GPU of NVIDIA L4; 0 of 2 are free".into()));
    let behind = rack.place(Millis(0), endpoint(3), &worker(2), &need(&[SMALL], 2)).unwrap_err();
    let words =
        "a worker needs 2 GPUs of NVIDIA L4; 0 of 2 are free, and 1 endpoint is before this one in line";
    assert_eq!(behind.reason(), words);
}

#[test]
fn shares_of_one_gpu_go_to_different_workers() {
    let share = |device: &str| Gpu { device: device.into(), type_id: SMALL.into(), memory_mib: 0 };
    let mut rack = GpuInventory::new(["a::1", "b::1", "a::2", "b::2"].map(share).to_vec());
    let never = rack.place(Millis(0), endpoint(1), &worker(1), &need(&[], 3));
    assert!(matches!(never, Err(PlacementError::NeverFits(_))), "there are two GPUs: {never:?}");
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(1), &need(&[], 1))), ["a::1"]);
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(2), &need(&[], 2))), ["b::1", "a::2"]);
    let busy = rack.place(Millis(0), endpoint(1), &worker(3), &need(&[], 2));
    assert!(matches!(busy, Err(PlacementError::InUse(_))), "{busy:?}");
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(3), &need(&[], 1))), ["b::2"]);
}

#[test]
fn pools_are_matched_by_their_memory() {
    let mut rack = machine();
    let pool = |name| need(&[name], 1);
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(1), &pool("AMPERE_24"))), ["0"]);
    assert_eq!(devices(&rack.place(Millis(0), endpoint(1), &worker(2), &pool("ADA_80_PRO"))), ["2"]);
    assert!(matches!(
        rack.place(Millis(0), endpoint(1), &worker(3), &pool("HOPPER_141")),
        Err(PlacementError::NeverFits(_))
    ));
    for no_pool in ["", "16", "_16", "AMPERE", "AMPERE_", "AMPERE_16_", "ampere_16", "A_1_2", "A_-1"] {
        assert_eq!(pool_gb(no_pool), None, "{no_pool}");
    }
}

#[test]
fn free_gpus_are_reserved_for_the_first_waiter() {
    let mut rack = GpuInventory::new(gpus(&[(LARGE, 81_559, 2)]));
    let one = need(&[LARGE], 1);
    rack.place(Millis(0), endpoint(1), &worker(1), &one).unwrap();
    rack.place(Millis(0), endpoint(1), &worker(2), &one).unwrap();
    rack.place(Millis(1), endpoint(2), &worker(9), &need(&[LARGE], 2)).unwrap_err();
    rack.free(&worker(1));
    rack.place(Millis(2), endpoint(1), &worker(3), &one).unwrap_err();
    rack.free(&worker(2));
    rack.place(Millis(3), endpoint(1), &worker(3), &one).unwrap_err();
    rack.place(Millis(3), endpoint(2), &worker(9), &need(&[LARGE], 2)).unwrap();
    assert_eq!(rack.waiters().collect::<Vec<_>>(), [&endpoint(1)]);
}

#[test]
fn a_reservation_ends_after_its_time() {
    let mut rack = GpuInventory::new(gpus(&[(LARGE, 81_559, 2)]));
    let (one, two) = (need(&[LARGE], 1), need(&[LARGE], 2));
    rack.place(Millis(0), endpoint(1), &worker(1), &one).unwrap();
    rack.place(Millis(0), endpoint(2), &worker(9), &two).unwrap_err();
    rack.place(Millis(RESERVATION_MS - 1), endpoint(3), &worker(2), &one).unwrap_err();
    rack.place(Millis(RESERVATION_MS), endpoint(3), &worker(2), &one).unwrap();
    rack.free(&worker(2));
    rack.place(Millis(2 * RESERVATION_MS - 1), endpoint(3), &worker(2), &one).unwrap();
    rack.free(&worker(2));
    let again = rack.place(Millis(2 * RESERVATION_MS), endpoint(3), &worker(2), &one);
    again.expect_err("the one that needs two has its turn again");
}

#[test]
fn an_endpoint_that_leaves_has_no_reservation() {
    let mut rack = GpuInventory::new(gpus(&[(LARGE, 81_559, 2)]));
    rack.place(Millis(0), endpoint(1), &worker(1), &need(&[], 1)).unwrap();
    rack.place(Millis(0), endpoint(2), &worker(2), &need(&[], 2)).unwrap_err();
    rack.leave(&endpoint(2));
    rack.place(Millis(0), endpoint(3), &worker(3), &need(&[], 1)).unwrap();
}

#[test]
fn adopted_workers_keep_their_gpus() {
    let mut rack = machine();
    rack.hold(&worker(1), &gpus(&[(SMALL, 23_034, 2)]));
    rack.place(Millis(0), endpoint(1), &worker(2), &need(&[SMALL], 1)).unwrap_err();
    rack.free(&worker(1));
    rack.place(Millis(0), endpoint(1), &worker(2), &need(&[SMALL], 1)).unwrap();
}

/// One event: an endpoint wants one more worker, or a worker exits.
#[derive(Clone, Debug)]
enum Event {
    Wanted { endpoint: u8, types: Vec<bool>, count: usize },
    Ends { nth: usize },
    Leaves { endpoint: u8 },
    Passes { ms: u64 },
}

fn happening() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..5_u8, prop::collection::vec(any::<bool>(), 2), 0..4_usize)
            .prop_map(|(endpoint, types, count)| Event::Wanted { endpoint, types, count }),
        3 => (0..8_usize).prop_map(|nth| Event::Ends { nth }),
        1 => (0..5_u8).prop_map(|endpoint| Event::Leaves { endpoint }),
        1 => (0..2 * RESERVATION_MS).prop_map(|ms| Event::Passes { ms }),
    ]
}

proptest! {
    #[test]
    fn no_gpu_has_two_workers_in_any_history(history in prop::collection::vec(happening(), 1..120)) {
        let mut rack = machine();
        let mut living: Vec<(WorkerId, Vec<Gpu>)> = vec![];
        let mut now = Millis(0);
        for (n, what) in history.into_iter().enumerate() {
            match what {
                Event::Wanted { endpoint: e, types, count } => {
                    let types: Vec<&str> =
                        [SMALL, LARGE].into_iter().zip(types).filter_map(|(t, wanted)| wanted.then_some(t)).collect();
                    let (need, id) = (need(&types, count.max(1)), worker(n as u32));
                    if let Ok(placed) = rack.place(now, endpoint(u128::from(e)), &id, &need) {
                        prop_assert_eq!(placed.len(), need.count);
                        prop_assert!(placed.iter().all(|gpu| gpu.type_id == placed[0].type_id));
                        prop_assert!(types.is_empty() || types.contains(&placed[0].type_id.as_str()));
                        living.push((id, placed));
                    }
                }
                Event::Ends { nth } if nth < living.len() => {
                    let (id, _) = living.swap_remove(nth);
                    prop_assert!(rack.free(&id));
                }
                Event::Ends { .. } => {}
                Event::Leaves { endpoint: e } => rack.leave(&endpoint(u128::from(e))),
                Event::Passes { ms } => now = now + ms,
            }
            let mut taken: Vec<&str> =
                living.iter().flat_map(|(_, gpus)| gpus).map(|gpu| gpu.device.as_str()).collect();
            taken.sort_unstable();
            let all = taken.len();
            taken.dedup();
            prop_assert_eq!(taken.len(), all, "a GPU has two workers");
            let free = rack.gpus().filter(|(_, worker)| worker.is_none()).count();
            prop_assert_eq!(free + all, 6, "a GPU got lost, or there are more than there are");
        }
        for (id, _) in &living {
            rack.free(id);
        }
        prop_assert!(rack.gpus().all(|(_, worker)| worker.is_none()), "the end of a worker frees all of its GPUs");
    }

    /// Every endpoint always wants one more worker, and every worker exits within half of a reservation. Then every
    /// endpoint that fits is placed repeatedly.
    #[test]
    fn every_waiter_is_placed_in_the_end(
        counts in prop::collection::vec(1..5_usize, 2..6),
        lives in prop::collection::vec(1..RESERVATION_MS / 2, 40),
    ) {
        let mut rack = GpuInventory::new(gpus(&[(LARGE, 81_559, 4)]));
        let mut placed = vec![0_u32; counts.len()];
        let mut living: Vec<(Millis, WorkerId)> = vec![];
        let mut now = Millis(0);
        let end = Millis(RESERVATION_MS * 2 * counts.len() as u64);
        let mut n = 0;
        while now < end {
            for (e, &count) in counts.iter().enumerate() {
                while rack.place(now, endpoint(e as u128), &worker(n), &need(&[], count)).is_ok() {
                    placed[e] += 1;
                    living.push((now + lives[n as usize % lives.len()], worker(n)));
                    n += 1;
                }
            }
            living.sort();
            let (at, id) = living.remove(0);
            now = now.max(at);
            rack.free(&id);
        }
        prop_assert!(placed.iter().all(|&times| times > 0), "placed {placed:?} times");
    }
}

/// An L4.
fn an_l4(device: &str) -> Gpu {
    Gpu { device: device.into(), type_id: "L4".into(), memory_mib: 1 }
}

#[test]
fn a_sick_gpu_is_not_placed_and_its_worker_is_told() {
    let mut inventory = GpuInventory::new(vec![an_l4("0"), an_l4("1")]);
    let (endpoint, need) = (EndpointId::mint(1), GpuNeed { types: vec![], count: 1 });
    let (worker, other): (WorkerId, WorkerId) = ("w1".parse().unwrap(), "w2".parse().unwrap());
    let placed = inventory.place(Millis(0), endpoint, &worker, &need).unwrap();
    assert_eq!(placed[0].device, "0");
    let well = [(an_l4("0"), None), (an_l4("1"), None)];
    assert_eq!(inventory.update(&well), []);
    let sick = [(an_l4("0"), Some("GPU is lost".into()))];
    let told = inventory.update(&sick);
    assert_eq!(told, [(worker.clone(), "its GPU 0 (L4) is sick: GPU is lost".into())]);
    assert_eq!(inventory.update(&sick), [], "told once");
    assert_eq!(inventory.fault("1"), Some("the driver no longer lists it"));
    assert_eq!(inventory.stock(), "2 × L4 (2 sick)");
    inventory.free(&worker);
    assert!(matches!(inventory.place(Millis(1), endpoint, &other, &need), Err(PlacementError::NeverFits(_))));
    assert_eq!(inventory.shortage(Millis(1), endpoint, &need), Some(Shortage::Sick("GPU is lost".into())));
    let many = GpuNeed { types: vec![], count: 3 };
    assert_eq!(inventory.shortage(Millis(1), endpoint, &many), Some(Shortage::Impossible));
    // One is back, and another one is new.
    inventory.update(&[(an_l4("1"), None), (an_l4("2"), None), (an_l4("0"), Some("GPU is lost".into()))]);
    let placed = inventory.place(Millis(2), endpoint, &other, &need).unwrap();
    assert_eq!(placed[0].device, "1");
    assert_eq!((inventory.fault("1"), inventory.stock().as_str()), (None, "3 × L4 (1 sick)"));
}

#[test]
fn while_the_driver_does_not_answer_no_gpu_is_placed_and_no_worker_is_replaced() {
    let mut inventory = GpuInventory::new(vec![an_l4("0"), an_l4("1")]);
    let (endpoint, need) = (EndpointId::mint(1), GpuNeed { types: vec![], count: 1 });
    let (worker, other): (WorkerId, WorkerId) = ("w1".parse().unwrap(), "w2".parse().unwrap());
    inventory.place(Millis(0), endpoint, &worker, &need).unwrap();
    inventory.set_unreadable("nvidia-smi failed".into());
    assert_eq!(
        (inventory.fault("0"), inventory.stock().as_str()),
        (Some("nvidia-smi failed"), "2 × L4 (2 sick)")
    );
    assert!(inventory.place(Millis(1), endpoint, &other, &need).is_err());
    assert_eq!(inventory.update(&[(an_l4("0"), None), (an_l4("1"), None)]), []);
    assert_eq!(inventory.place(Millis(2), endpoint, &other, &need).unwrap()[0].device, "1");
}

#[test]
fn the_line_says_what_has_to_come_free_and_who_holds_it() {
    let mut rack = GpuInventory::new(gpus(&[(LARGE, 81_559, 3), (SMALL, 24_564, 1)]));
    rack.place(Millis(0), endpoint(1), &worker(1), &need(&[LARGE], 1)).unwrap();
    rack.place(Millis(0), endpoint(1), &worker(2), &need(&[LARGE], 1)).unwrap();
    rack.place(Millis(0), endpoint(1), &worker(3), &need(&[SMALL], 1)).unwrap();
    rack.place(Millis(1), endpoint(2), &worker(8), &need(&[LARGE], 3)).unwrap_err();
    rack.place(Millis(1), endpoint(3), &worker(9), &need(&[LARGE, SMALL], 1)).unwrap_err();
    let line = |rack: &GpuInventory| {
        let shown = |one: InLine| {
            let holders: Vec<_> = one.holders.iter().map(ToString::to_string).collect();
            format!("{} missing, {} free of {}: {}", one.missing, one.free, one.type_id, holders.join(" "))
        };
        rack.line().into_iter().map(shown).collect::<Vec<_>>()
    };
    let workers =
        |numbers: &[u32]| numbers.iter().map(|n| worker(*n).to_string()).collect::<Vec<_>>().join(" ");
    // The first one needs two more of the large type. A small one is the least that the second one needs.
    let expected = [
        format!("2 missing, 1 free of {LARGE}: {}", workers(&[1, 2])),
        format!("1 missing, 0 free of {SMALL}: {}", workers(&[3])),
    ];
    assert_eq!(line(&rack), expected);
    rack.free(&worker(1));
    rack.free(&worker(2));
    rack.free(&worker(3));
    assert_eq!(
        line(&rack),
        [format!("0 missing, 3 free of {LARGE}: "), format!("0 missing, 1 free of {SMALL}: ")]
    );
}
