//! The limits that control groups impose on a job. Containers and batch systems limit memory and
//! processes by control groups, and the machine's own figures do not show these limits.

use std::path::{Path, PathBuf};

/// The folder in which the system mounts the hierarchies of control groups.
const MOUNTED: &str = "/sys/fs/cgroup";

/// The limits of the groups of this process; `None` if there is no limit or the limit is unknown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GroupLimits {
    /// The number of processes and threads that may exist, and the number that exist.
    pub(crate) threads: Option<(u64, u64)>,
    /// The memory that is left, in KiB.
    pub(crate) memory_kib: Option<u64>,
}

impl GroupLimits {
    pub(crate) fn now() -> Self {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&groups, Path::new(MOUNTED))
    }

    /// Reads the limits of these `groups`, written as in `/proc/self/cgroup`.
    fn of(groups: &str, mounted: &Path) -> Self {
        let (mut threads, mut memory) = (None, None);
        for line in groups.lines() {
            let mut words = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (words.next(), words.next()) else { continue };
            let has = |controller: &str| controllers.split(',').any(|word| word == controller);
            // Version 2 has one hierarchy, without a list of controllers; version 1 has one for
            // each controller.
            if controllers.is_empty() {
                threads = threads.or(least(&each(mounted, path), "pids.max", "pids.current"));
                memory = memory.or(least_memory(&each(mounted, path), "memory.max", "memory.current"));
            } else if has("pids") {
                threads = least(&each(&mounted.join("pids"), path), "pids.max", "pids.current");
            } else if has("memory") {
                let groups = each(&mounted.join("memory"), path);
                memory = least_memory(&groups, "memory.limit_in_bytes", "memory.usage_in_bytes");
            }
        }
        Self { threads, memory_kib: memory }
    }
}

/// Returns the folders of a group and of the groups above it. A container may mount its own group
/// as the top one.
fn each(mounted: &Path, path: &str) -> Vec<PathBuf> {
    let own = mounted.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|folder| folder.starts_with(mounted)).map(Path::to_path_buf).collect()
}

/// Returns the limit in the file `most` and the use in the file `now`, for the group that has the
/// least left.
fn least(groups: &[PathBuf], most: &str, now: &str) -> Option<(u64, u64)> {
    let number = |file: PathBuf| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let limits =
        groups.iter().filter_map(|group| Some((number(group.join(most))?, number(group.join(now))?)));
    limits.min_by_key(|(most, now)| most.saturating_sub(*now))
}

/// Returns the least memory left, in KiB. Pages of files that can be dropped do not count as used.
fn least_memory(groups: &[PathBuf], most: &str, now: &str) -> Option<u64> {
    let left = |group: &PathBuf| {
        let (most, now) = least(std::slice::from_ref(group), most, now)?;
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let dropped = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
        Some(most.saturating_sub(now.saturating_sub(dropped.unwrap_or(0))) >> 10)
    };
    groups.iter().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_with_the_least_left_counts_in_both_versions() {
        let folder = std::env::temp_dir().join(format!("fencepost-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let file = folder.join(path);
            std::fs::create_dir_all(file.parent().expect("it has one")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        };
        write("job/step/pids.max", "max\n");
        write("job/step/pids.current", "3\n");
        write("job/pids.max", "100\n");
        write("job/pids.current", "40\n");
        write("job/step/memory.max", "8388608\n");
        write("job/step/memory.current", "6291456\n");
        write("job/step/memory.stat", "anon 5\ninactive_file 1048576\n");
        let second = GroupLimits::of("0::/job/step\n", &folder);
        assert_eq!(second, GroupLimits { threads: Some((100, 40)), memory_kib: Some(3 << 10) });
        write("pids/a/pids.max", "7\n");
        write("pids/a/pids.current", "5\n");
        write("memory/memory.limit_in_bytes", "2097152\n");
        write("memory/memory.usage_in_bytes", "1024\n");
        let groups = "9:name=systemd:/\n8:pids:/a\n4:memory:/elsewhere\n3:cpu,cpuacct:/\n0::/\n";
        let first = GroupLimits::of(groups, &folder);
        assert_eq!(first, GroupLimits { threads: Some((7, 5)), memory_kib: Some((2 << 10) - 1) });
        for nothing in ["", "0::/other\n", "what\n::\n", "4:memory:/..\n"] {
            let limits = GroupLimits::of(nothing, &folder.join("none"));
            assert_eq!(limits, GroupLimits { threads: None, memory_kib: None }, "{nothing}");
        }
        std::fs::remove_dir_all(folder).expect("it was made");
    }
}
