//! How much memory may be requested from the machine now, and which limit determines this amount.
//!
//! If a page of a memory file is not available when it is first touched, the process ends with
//! SIGBUS, or the kernel ends another process. So pages of memory files are reserved before they
//! are used. They are reserved only if the machine, the control groups of this process and the
//! limits of this process leave room for them. Large requests for heap memory must fit as well,
//! together with the heap memory that this process has promised but not touched ([`Promise`]). The
//! system reserves nothing for such requests. So each of several processes may make a request that
//! fits, although all requests together do not fit.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

/// A request for memory that exceeds what is available.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryShortage {
    pub(crate) requested: u64,
    pub(crate) available: u64,
    /// The limit that determines `available`.
    pub(crate) limit: &'static str,
}

impl fmt::Display for MemoryShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requested, available, limit } = self;
        write!(
            f,
            "requested {} of memory, and {} is available ({limit}): free memory, raise that limit, or use fewer ranks",
            Size(*requested),
            Size(*available)
        )
    }
}

impl std::error::Error for MemoryShortage {}

impl From<MemoryShortage> for io::Error {
    fn from(shortage: MemoryShortage) -> Self {
        io::Error::new(io::ErrorKind::OutOfMemory, shortage)
    }
}

/// A number of bytes, shown in units.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        let mut size = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while size >= 1024.0 && unit + 1 < units.len() {
            (size, unit) = (size / 1024.0, unit + 1);
        }
        if self.0 < 1024 { write!(f, "{} bytes", self.0) } else { write!(f, "{size:.1} {}", units[unit]) }
    }
}

/// The number of bytes that are never requested, so that the last page of the machine is never
/// taken.
const MARGIN: u64 = 32 << 20;

pub(crate) const OF_MACHINE: &str = "of the machine's memory";

/// A function that reads a file of the kernel, by path.
pub(crate) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the kernel's own files.
pub(crate) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns the number of bytes that may be requested now, and the limit that determines it.
pub(crate) fn available(read: Read<'_>) -> (u64, &'static str) {
    let machine = read("/proc/meminfo").and_then(|text| {
        Some(kib(&text, "MemAvailable:")?.saturating_add(kib(&text, "SwapFree:").unwrap_or(0)))
    });
    let machine = machine.map(|bytes| (bytes, OF_MACHINE));
    let group = groups(read).map(|bytes| (bytes, "of the memory limit of this process's control group"));
    let least = machine.into_iter().chain(group).min_by_key(|(bytes, _)| *bytes);
    least.map_or((u64::MAX, ""), |(bytes, limit)| (bytes.saturating_sub(MARGIN), limit))
}

/// Checks whether `bytes` bytes may be requested now. `others` is the number of available bytes
/// that other promises need.
fn suffices(bytes: u64, others: u64, read: Read<'_>) -> Result<(), MemoryShortage> {
    let (available, limit) = available(read);
    let available = available.saturating_sub(others);
    if bytes <= available { Ok(()) } else { Err(MemoryShortage { requested: bytes, available, limit }) }
}

/// The bytes of all promises of this process.
static PROMISED: Mutex<u64> = Mutex::new(0);

/// Memory that this process may touch later. Until it is touched, it takes no memory of the
/// machine. The memory counts as requested until the promise is dropped.
#[derive(Debug)]
pub(crate) struct Promise(u64);

impl Promise {
    /// Promises `bytes` bytes.
    ///
    /// # Errors
    /// Fails if `bytes` exceeds the available memory, less the untouched memory of the other
    /// promises.
    pub(crate) fn new(bytes: u64) -> Result<Self, MemoryShortage> {
        let mut promised = PROMISED.lock().unwrap_or_else(PoisonError::into_inner);
        suffices(bytes, untouched(*promised, &read), &read)?;
        *promised += bytes;
        Ok(Self(bytes))
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        *PROMISED.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
    }
}

/// Returns a lower bound on the promised memory that is not touched. The exact number is not known,
/// because touched memory that was not promised is subtracted as well.
fn untouched(promised: u64, read: Read<'_>) -> u64 {
    let touched = || {
        let status = read("/proc/self/status")?;
        Some(kib(&status, "RssAnon:")? + kib(&status, "VmSwap:").unwrap_or(0))
    };
    if promised == 0 { 0 } else { promised.saturating_sub(touched().unwrap_or(promised)) }
}

/// Returns how much memory the machine has in total.
pub(crate) fn whole(read: Read<'_>) -> u64 {
    read("/proc/meminfo").and_then(|text| kib(&text, "MemTotal:")).unwrap_or(1 << 30)
}

/// Returns a row of `/proc/meminfo` or `/proc/self/status`, in bytes.
fn kib(text: &str, row: &str) -> Option<u64> {
    let row = text.lines().find_map(|line| line.strip_prefix(row))?;
    row.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns how much memory the control groups of this process leave. Considers both versions of
/// control groups.
fn groups(read: Read<'_>) -> Option<u64> {
    let mine = read("/proc/self/cgroup")?;
    let left = mine.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let memory = controllers.split(',').any(|controller| controller == "memory");
        let version = match controllers {
            "" => &VERSION_2,
            _ if memory => &VERSION_1,
            _ => return None,
        };
        version.left(path, read)
    });
    left.min()
}

/// The files in which a version of control groups keeps its numbers.
struct Version {
    root: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The rows of `memory.stat` with memory that the kernel reclaims before it refuses a request.
    /// Each row has a divisor: 1 if all of the row counts, and 2 if half of it counts.
    spare: &'static [(&'static str, u64)],
}

const VERSION_2: Version = Version {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    spare: &[("inactive_file", 1), ("active_file", 2), ("slab_reclaimable", 2)],
};
const VERSION_1: Version = Version {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    spare: &[("total_inactive_file", 1), ("total_active_file", 2)],
};

impl Version {
    /// Returns how much memory the group at `path` and all groups above it leave. If this process
    /// runs in a container, `path` may be valid only outside the container. In that case the root
    /// group that is visible in the container decides.
    fn left(&self, path: &str, read: Read<'_>) -> Option<u64> {
        let mut path = path.trim_end_matches('/');
        let mut least = None;
        loop {
            if let Some(left) = self.left_by(path, read) {
                least = Some(least.map_or(left, |least: u64| least.min(left)));
            }
            match path.rsplit_once('/') {
                Some((above, _)) => path = above,
                None => return least,
            }
        }
    }

    fn left_by(&self, path: &str, read: Read<'_>) -> Option<u64> {
        let file = |name: &str| read(&format!("{}{path}/{name}", self.root));
        let limit = file(self.limit)?.trim().parse::<u64>().ok()?; // "max" means no limit
        let used = file(self.used)?.trim().parse::<u64>().ok()?;
        let stat = file("memory.stat").unwrap_or_default();
        let rows = stat.lines().filter_map(|line| line.split_once(' '));
        let spare = rows.filter_map(|(row, bytes)| {
            let (_, part) = self.spare.iter().find(|(name, _)| *name == row)?;
            Some(bytes.trim().parse::<u64>().ok()? / part)
        });
        Some(limit.saturating_sub(used.saturating_sub(spare.sum())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       1000000 kB\nMemFree: 5 kB\nMemAvailable:     500000 kB\n";

    fn files<'a>(all: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |path| all.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn without_groups_the_machine_decides_what_is_available() {
        let read = files(&[("/proc/meminfo", MEMINFO)]);
        assert_eq!(available(&read), (500_000 * 1024 - MARGIN, "of the machine's memory"));
        assert_eq!(whole(&read), 1_000_000 * 1024);
    }

    #[test]
    fn the_tightest_group_decides_and_cached_files_do_not_count() {
        let read = files(&[
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/jobs/one\n"),
            ("/sys/fs/cgroup/jobs/one/memory.max", "max\n"),
            ("/sys/fs/cgroup/jobs/one/memory.current", "7\n"),
            ("/sys/fs/cgroup/jobs/memory.max", "200000000\n"),
            ("/sys/fs/cgroup/jobs/memory.current", "150000000\n"),
            (
                "/sys/fs/cgroup/jobs/memory.stat",
                "anon 5\ninactive_file 40000000\nactive_file 16000000\nslab_reclaimable 4000000\n",
            ),
        ]);
        let limit = "of the memory limit of this process's control group";
        assert_eq!(available(&read), (100_000_000 - MARGIN, limit));
    }

    #[test]
    fn swap_counts_where_the_machine_decides() {
        let meminfo = format!("{MEMINFO}SwapFree: 200000 kB\n");
        let all = [("/proc/meminfo", meminfo.as_str())];
        let read = files(&all);
        assert_eq!(available(&read), (700_000 * 1024 - MARGIN, OF_MACHINE));
    }

    #[test]
    fn what_is_promised_and_not_touched_is_not_available() {
        let status = "RssAnon:\t  70000 kB\nVmSwap:\t  30000 kB\n";
        let all = [("/proc/meminfo", MEMINFO), ("/proc/self/status", status)];
        let read = files(&all);
        assert_eq!(untouched(300_000 * 1024, &read), 200_000 * 1024);
        assert_eq!((untouched(50_000 * 1024, &read), untouched(0, &read)), (0, 0));
        let left = 300_000 * 1024 - MARGIN;
        assert_eq!(suffices(left, 200_000 * 1024, &read), Ok(()));
        let shortage = suffices(left + 1, 200_000 * 1024, &read).expect_err("a byte too many");
        assert_eq!((shortage.requested, shortage.available), (left + 1, left));
    }

    #[test]
    fn a_promise_counts_until_it_is_dropped() {
        let third = available(&read).0 / 3;
        let first = Promise::new(third).expect("a third is available");
        assert!(Promise::new(third / 4 * 9).is_err(), "the first third is not touched");
        drop(first);
        Promise::new(third / 4 * 9).expect("nothing is promised any more");
    }

    #[test]
    fn groups_of_the_first_version_and_those_of_containers_are_found() {
        let read = files(&[
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "5:cpu,cpuacct:/x\n3:memory:/outside/7\n0::/none\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "90000000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "10000000\n"),
        ]);
        assert_eq!(available(&read).0, 80_000_000 - MARGIN);
    }

    #[test]
    fn a_shortage_names_what_was_requested_and_what_is_available() {
        let shortage =
            MemoryShortage { requested: 3 << 30, available: 900 << 20, limit: "of the machine's memory" };
        let text = "requested 3.0 GiB of memory, and 900.0 MiB is available (of the machine's memory): free memory, raise that limit, or use fewer ranks";
        assert_eq!(shortage.to_string(), text);
        assert_eq!(io::Error::from(shortage).kind(), io::ErrorKind::OutOfMemory);
    }
}
