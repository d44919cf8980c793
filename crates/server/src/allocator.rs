//! The allocator of the program.

use mimalloc::MiMalloc;

// Without huge pages (`no_thp`): with huge pages 10 000 connections that send a byte now and then held 420 MB, without
// 210. Not the second line of mimalloc (`v2`): there a thread that sleeps keeps what others free of its memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    /// The resident memory of this process, in bytes.
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// A payload is read on one of many threads, which then sleeps, and is freed where its answer was sent.
    #[test]
    fn what_other_threads_free_is_used_again_while_its_own_thread_sleeps() {
        const BYTES: usize = 10_000_000;
        const THREADS: usize = 40;
        let before = resident();
        let mut sleepers = Vec::new();
        for _ in 0..THREADS {
            let (give, given) = mpsc::channel();
            let (wake, woken) = mpsc::channel::<()>();
            let sleeper = thread::spawn(move || {
                give.send(vec![1_u8; BYTES]).unwrap();
                // Ends when the other side is dropped.
                let _ended = woken.recv();
            });
            drop(given.recv().unwrap());
            sleepers.push((wake, sleeper));
        }
        let grown = resident().saturating_sub(before);
        for (wake, sleeper) in sleepers {
            drop(wake);
            sleeper.join().unwrap();
        }
        // Other tests allocate meanwhile.
        assert!(grown < THREADS * BYTES / 4, "{grown} bytes are held after {THREADS} payloads of {BYTES}");
    }
}
