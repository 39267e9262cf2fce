//! [`VARIABLES`]: every environment variable that a program or the command reads. This table is the
//! source of the documentation page, of `fencepost env` and of the report of unknown names.

use std::ffi::OsString;

/// An environment variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// The name, which begins with `FENCEPOST_`.
    pub name: &'static str,
    /// The values that are allowed.
    pub values: &'static str,
    /// The value if the variable is not set.
    pub default: &'static str,
    /// The effect, in sentences; the last one has no full stop.
    pub meaning: &'static str,
    /// The values that have a meaning of their own. The text after each value describes its
    /// meaning, in the same form as `meaning`.
    pub by_value: &'static [(&'static str, &'static str)],
    /// The part of a job that reads the variable.
    pub reader: Reader,
}

/// The part of a job that reads a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// A program, when it enters a world.
    Program,
    /// The launcher of a job of processes, or a rank that joins one.
    Job,
}

const fn program(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Variable {
    Variable { name, values, default, meaning, by_value: &[], reader: Reader::Program }
}

const fn job(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Variable {
    Variable { name, values, default, meaning, by_value: &[], reader: Reader::Job }
}

/// Each value of `FENCEPOST_CHECK`, with the mistakes that it finds.
const CHECKS: [(&str, &str); 4] = [
    ("off", "Nothing"),
    (
        "calls",
        "Calls that differ from the pattern of their superstep, each time, and operations that no fence carries out",
    ),
    (
        "conflicts",
        "What calls finds, and two operations that conflict: the fence, wait, flush, unlock or preparation that finds them applies nothing and names both lines",
    ),
    (
        "mpi",
        "What conflicts finds, and what MPI does not define (`Check::Mpi`): stores of a rank into its part while others access it or into the section of its own operation, epochs of locks that only a collective orders, and ranks that only a buffer keeps from waiting for each other",
    ),
];

/// All variables, in the order in which they are listed.
pub const VARIABLES: [Variable; 31] = [
    program(
        "FENCEPOST_RANKS",
        "a number",
        "one for each core",
        "The number of ranks. A program that is started as a rank of a job has to be given the number of that job, or none",
    ),
    program(
        "FENCEPOST_TRANSPORT",
        "local, sim, shm, tcp or mpi",
        "local",
        "local: threads. sim: threads that only exchange messages, late and out of order. shm and tcp: processes. mpi: processes that a launcher of MPI has started, and what is no shared memory goes by messages of that MPI. Under such a launcher tcp has it go by connections; where neither is set, by what is quicker",
    ),
    program(
        "FENCEPOST_MODE",
        "auto, aggressive, aggregated, pipelined or direct",
        "auto",
        "The mode that operations prefer",
    ),
    program(
        "FENCEPOST_MACHINE",
        "a path, or several lines of text",
        "a two-core server",
        "The machine model by which `auto` and collectives choose: lines `key = value`. `fencepost probe` prints that of this machine, and `fencepost run --machine FILE` gives a file's text to all ranks. Every rank must read the same text",
    ),
    program(
        "FENCEPOST_CENSUS",
        "direct, sparse or reduced",
        "by the machine model",
        "How ranks find at a fence, a barrier or a short collective who is in it. direct: each notifies each. sparse: log2 p rounds of one message for each rank, or for one rank of each group: the ranks of a host that share memory, or up to eight of a machine that do not. reduced: as many rounds, in which counts of fixed length are added up; what ranks have for others is sent to them directly. The same on every rank",
    ),
    program(
        "FENCEPOST_PLAN",
        "on or off",
        "on",
        "off: every operation is a message of its own, for comparison",
    ),
    program(
        "FENCEPOST_EXPLAIN",
        "on or off",
        "off",
        "on: rank 0 prints on standard error what its epochs have sent, by the calls that ended them, when its program ends; and `World::explain_last` reports what the last epoch did and why: messages, bytes, rounds, the reasons of `auto`, and what each line put, got or accumulated",
    ),
    program(
        "FENCEPOST_PROFILE",
        "on, off or a path",
        "off",
        "on: when its program ends, rank 0 prints on standard error how long each superstep, fence and collective took over all ranks, with its line: runs, the least and the greatest time and on which rank, waits and for whom, messages, bytes and the predicted time. A path: it writes that to this file, with a line of JSON for the run and for each call",
    ),
    program(
        "FENCEPOST_TRACE",
        "a folder",
        "no trace",
        "Each rank writes to this folder what it did: its calls, its waits and the frames that it sent and received, at most the last 131072 of them, with the time of each; traces of earlier programs in it are removed. `fencepost trace` turns that into a picture. The same on every rank",
    ),
    Variable {
        by_value: &CHECKS,
        ..program(
            "FENCEPOST_CHECK",
            "off, calls, conflicts or mpi",
            "calls in debug builds, off in others",
            "Which mistakes are looked for while the program runs, each value more than the one before. The same on every rank",
        )
    },
    program(
        "FENCEPOST_CHECK_LOADS",
        "on or off",
        "off",
        "on: with FENCEPOST_CHECK=mpi, a rank may not load elements that others put or accumulate into in the same epoch. An ordinary build takes tens of microseconds for each access to a window then, and system calls that the program hands its elements fail with EFAULT; a build for checking (`Ranks::check_loads`) takes nanoseconds, and sees no loads by code that was compiled otherwise (x86-64)",
    ),
    program(
        "FENCEPOST_CHECK_MEMORY",
        "a number of bytes",
        "1048576",
        "The memory in which operations under locks are kept to find conflicts, for each part of a window",
    ),
    program(
        "FENCEPOST_CHECK_REPORT",
        "a path",
        "no report",
        "The regular file to which a line of JSON is appended for each conflict",
    ),
    program(
        "FENCEPOST_STALL",
        "a time, or off",
        "10s",
        "The time after which a wait is reported on standard error, with who waits for whom and where; of ranks that wait for one another 1 s",
    ),
    program(
        "FENCEPOST_DEADLOCK",
        "report or end",
        "report",
        "end: ranks that wait for one another in a cycle, or for any of several that do so, return an error that names all of them",
    ),
    program(
        "FENCEPOST_EAGER",
        "a number of bytes",
        "16384, and 1048576 over TCP",
        "The longest message that is sent with its elements before a receive has taken it; never more than an equal part of FENCEPOST_UNEXPECTED for each rank, less 64",
    ),
    program(
        "FENCEPOST_UNEXPECTED",
        "a number of bytes",
        "16777216",
        "The memory in which a rank keeps messages for receives to come. The same on every rank",
    ),
    program(
        "FENCEPOST_SNAPSHOT_ON_TERM",
        "on or off",
        "off",
        "on: at SIGTERM, ranks of a program that takes snapshots take one and end with exit code 75, and their launcher gives them the time for that. `fencepost run --snapshot-on-term` sets it",
    ),
    program(
        "FENCEPOST_COMPILE",
        "a folder",
        "set by `fencepost plan`",
        "The program compiles the plans that the recipes in this folder ask for where it would enter its first world, and ends",
    ),
    program(
        "FENCEPOST_BLESS",
        "anything",
        "plans are checked",
        "`fencepost_tool::plans::check`, in a test, writes the plans instead of checking them",
    ),
    job(
        "FENCEPOST_HEARTBEAT",
        "a time",
        "500ms",
        "How often a rank sends a heartbeat to its launcher, and to ranks on connections without other traffic",
    ),
    job(
        "FENCEPOST_SILENCE",
        "a time, or off",
        "10s",
        "A rank that sends no heartbeat for this long is killed; a connection on which nothing arrives for this long and one heartbeat more is given up",
    ),
    job("FENCEPOST_GRACE", "a time", "10s", "How long the other ranks may go on after one has failed"),
    job("FENCEPOST_TIMEOUT", "a time, or off", "off", "The time limit of the job"),
    job("FENCEPOST_SEAL", "on or off", "off", "on: every record between ranks carries an authentication tag"),
    job(
        "FENCEPOST_SSH",
        "a command",
        "ssh",
        "The command by which `fencepost run` starts programs on other hosts; {host} in it is replaced by the host",
    ),
    job(
        "FENCEPOST_MPI",
        "a path",
        "that of the launcher's MPI",
        "The MPI library over which ranks started by srun, mpiexec or another launcher meet, and over which the secret of their job travels. `fencepost mpi` shows which one is found",
    ),
    job(
        "FENCEPOST_SHARE",
        "on or off",
        "on",
        "off: ranks that meet over MPI share no memory, also on one host",
    ),
    job(
        "FENCEPOST_RENDEZVOUS",
        "an address and a port",
        "none",
        "Where rank 0 listens for the others, for ranks of such a launcher that have no MPI",
    ),
    job(
        "FENCEPOST_SECRET_FILE",
        "a path",
        "none",
        "The file of 32 random bytes, readable only by you, that such ranks share",
    ),
    job(
        "FENCEPOST_JOB",
        "a descriptor",
        "set by the launcher",
        "The control channel of a rank; not for users to set",
    ),
];

/// The prefix that all names have.
const PREFIX: &str = "FENCEPOST_";

/// The names that tests of this project read, without the prefix; then the beginnings of such
/// names.
const OF_TESTS: [&str; 2] = ["CASES", "SAMPLE"];
const BEGINNINGS_OF_TESTS: [&str; 3] = ["TEST_", "BENCH_", "FUZZ_"];

/// Returns the names that begin with `FENCEPOST_` and that nothing reads, in ascending order. Each
/// name comes with the nearest name of a variable, if one is near.
pub fn unknown(names: impl IntoIterator<Item = OsString>) -> Vec<(String, Option<&'static str>)> {
    let unknown = |name: OsString| {
        let name = name.into_string().ok()?;
        let rest = name.strip_prefix(PREFIX)?;
        let is_known = VARIABLES.iter().any(|variable| variable.name == name)
            || OF_TESTS.contains(&rest)
            || BEGINNINGS_OF_TESTS.iter().any(|beginning| rest.starts_with(beginning));
        (!is_known).then_some(name)
    };
    let mut found: Vec<String> = names.into_iter().filter_map(unknown).collect();
    found.sort_unstable();
    let with_nearest = |name: String| {
        let near = nearest(&name, VARIABLES.iter().map(|variable| variable.name));
        (name, near)
    };
    found.into_iter().map(with_nearest).collect()
}

/// Returns the known name that is nearest to `name`, if few letters must be added, removed, changed
/// or exchanged: at most three, and at most half of the letters of `name`.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distance = |known: &'k str| (strsim::osa_distance(name, known), known);
    let most = 3.min(name.chars().count() / 2);
    known.into_iter().map(distance).min().filter(|&(distance, _)| distance <= most).map(|(_, name)| name)
}

/// Returns the sentence that reports an unknown variable.
pub fn reported(name: &str, nearest: Option<&str>) -> String {
    let near = nearest.map_or(String::new(), |nearest| format!(": did you mean {nearest}?"));
    format!("nothing reads the environment variable {name}{near} (`fencepost env` lists all that are read)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_have_the_prefix() {
        for (at, variable) in VARIABLES.iter().enumerate() {
            assert!(variable.name.starts_with(PREFIX), "{}", variable.name);
            assert!(!VARIABLES[..at].iter().any(|before| before.name == variable.name), "{}", variable.name);
            assert!(!variable.meaning.ends_with('.') && !variable.meaning.contains('|'), "{}", variable.name);
        }
    }

    #[test]
    fn unknown_names_are_found_with_the_nearest_one() {
        let names = [
            "PATH",
            "FENCEPOST_TRANSPORTS",
            "FENCEPOST_RANKS",
            "FENCEPOST_TEST_X",
            "FENCEPOST_CHEKC",
            "FENCEPOST_COLOUR",
        ];
        let found = unknown(names.map(OsString::from));
        let expected = [
            ("FENCEPOST_CHEKC".to_owned(), Some("FENCEPOST_CHECK")),
            ("FENCEPOST_COLOUR".to_owned(), None),
            ("FENCEPOST_TRANSPORTS".to_owned(), Some("FENCEPOST_TRANSPORT")),
        ];
        assert_eq!(found, expected);
    }
}
