//! Plan files: a schedule on disk.
//!
//! A plan is untrusted input. [`from_bytes`] never reads past the end of the file. It allocates
//! memory in proportion to the length of the file, except for the map of classes, which
//! [`RANKS_MAX`] limits. In the result, every reference points to an existing item. Each schedule
//! has exactly one encoding, so that writing the result again produces the same file. This module
//! does not check whether the schedule does what a superstep asks for. Like any other schedule, a
//! schedule from a file must pass the verifier, with each rank's own pattern.
//!
//! A file holds one plan, or the plans of a superstep's epochs one after another ([`save_all`],
//! [`load_all`]).
//!
//! `layout.rs` describes the frame of a plan, and `words.rs` the words of its sections.

mod difference;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod layout;
mod made_for;
mod programs;
mod words;

pub use difference::{Difference, difference};
pub use made_for::MadeFor;

use crate::error::{Error, ErrorClass, Result};
use crate::ir::class_map::{NestedRuns, Run};
use crate::ir::pattern::{Order, Sync};
use crate::ir::schedule::{Placement, Schedule};
use crate::table::Table;
use layout::{SECTIONS, Sections};
use programs::Wire;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use words::{Known, Reader, Writer};

/// The largest number of ranks of a plan that is read from a file. Its map of classes takes 64 MiB.
pub const RANKS_MAX: u32 = 1 << 24;
/// The largest length of a file that is read, in bytes.
pub const LENGTH_MAX: u64 = 1 << 30;
/// The largest number of dimensions of a grid that is read.
const DIMENSIONS_MAX: usize = 16;

/// The identity of a schedule. Equal schedules have equal digests, on every rank and in every
/// release.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Returns the first 64 bits, for frame headers and synchronisation words.
    pub fn short(&self) -> u64 {
        self.0.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The content of a plan file.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The schedule, not verified.
    pub schedule: Schedule,
    /// The digest of the schedule.
    pub digest: Digest,
    /// What the plan was made for, if the program that wrote the file recorded it. This is not part
    /// of the digest.
    pub made_for: Option<MadeFor>,
    /// The program that wrote the file: `fencepost` and a version. This is not part of the digest.
    pub made_by: String,
}

impl Schedule {
    /// Returns the identity of this schedule: the digest of its plan file.
    ///
    /// # Cost
    /// The cost of writing the plan, which is linear in ranks and instructions. Keep the digest
    /// rather than computing it twice.
    pub fn digest(&self) -> Digest {
        layout::digest(&sections(self, None))
    }
}

/// Writes `schedule` to the file `path`.
///
/// A concurrent reader sees either the old file or all of the new one. The plan is first written to
/// a file of another name in the same folder, and that file then replaces the old one.
///
/// # Errors
/// IO if the file system reports an error, or if `path` is not a regular file or may not be
/// written. The old file then stays, and no temporary file is left. FILE if [`to_bytes`] refuses
/// the schedule.
pub fn save(schedule: &Schedule, path: impl AsRef<Path>) -> Result<()> {
    let bytes = to_bytes(schedule)?;
    store(path.as_ref(), &bytes)
}

/// Writes the schedules of a superstep's epochs to the single file `path`, one plan after another.
/// Each plan records `made_for`.
///
/// # Errors
/// The errors of [`save`]. The limit of the file's length applies to all schedules together.
pub fn save_all<'s>(
    schedules: impl IntoIterator<Item = &'s Schedule>,
    made_for: &MadeFor,
    path: impl AsRef<Path>,
) -> Result<()> {
    store(path.as_ref(), &all_to_bytes(schedules, made_for)?)
}

/// Returns the bytes of the file that [`save_all`] writes.
///
/// # Errors
/// The errors of [`save_all`], except those of the file system.
pub fn all_to_bytes<'s>(
    schedules: impl IntoIterator<Item = &'s Schedule>,
    made_for: &MadeFor,
) -> Result<Vec<u8>> {
    let to_bytes = |schedule| file_of(schedule, Some(made_for));
    let plans = schedules.into_iter().map(to_bytes).collect::<Result<Vec<_>>>()?.concat();
    within(plans.len())?;
    Ok(plans)
}

/// Reads the plan in the file `path`.
///
/// # Errors
/// IO if the file system reports an error. FILE if the file is not a regular file, if
/// [`from_bytes`] refuses it, or if it holds several plans.
pub fn load(path: impl AsRef<Path>) -> Result<Plan> {
    let path = path.as_ref();
    from_bytes(&read(path)?).map_err(|error| located(&path.display().to_string(), 0, error))
}

/// Reads the plans in the file `path`, which [`save_all`] or [`save`] wrote. There is at least one
/// plan.
///
/// # Errors
/// The errors of [`load`], except that several plans are allowed. The message shows which plan of
/// the file caused the error.
pub fn load_all(path: impl AsRef<Path>) -> Result<Vec<Plan>> {
    let path = path.as_ref();
    all_from_bytes(&read(path)?, &path.display().to_string())
}

/// Reads the plans in these bytes of a file. Errors refer to the file by `name`. There is at least
/// one plan.
///
/// # Errors
/// The errors of [`load_all`], except those of the file system.
pub fn all_from_bytes(bytes: &[u8], name: &str) -> Result<Vec<Plan>> {
    let (mut rest, mut plans) = (bytes, Vec::new());
    while plans.is_empty() || !rest.is_empty() {
        let (first, behind) = layout::split(rest);
        let plan = from_bytes(first).map_err(|error| located(name, plans.len(), error))?;
        plans.push(plan);
        rest = behind;
    }
    Ok(plans)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let refused = || {
        let message = format!(
            "the plan file {} cannot be read: it is not a regular file; give a file that `save` or `fencepost plan` wrote",
            path.display()
        );
        Error::new(ErrorClass::File, message)
    };
    let file = open_regular(OpenOptions::new().read(true), path).map_err(|error| {
        if error.kind() == ErrorKind::InvalidInput { refused() } else { io(path, "opened", error) }
    })?;
    let mut bytes = Vec::new();
    file.take(LENGTH_MAX + 1).read_to_end(&mut bytes).map_err(|error| io(path, "read", error))?;
    Ok(bytes)
}

/// Opens a regular file. Refuses a file of another kind, such as a FIFO, without waiting for its
/// other end.
///
/// # Errors
/// Those of the system, and `InvalidInput` if `path` is not a regular file.
#[doc(hidden)]
pub fn open_regular(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    let refused = || std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
    // A FIFO that replaces the file after the first check is opened without waiting, and then
    // refused.
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    ))]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, O_NONBLOCK);
    // Opening a device may have side effects.
    if std::fs::metadata(path).is_ok_and(|before| !before.is_file()) {
        return Err(refused());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Linux's flag of the same name.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
const O_NONBLOCK: i32 = 0o4000;

/// Replaces the file `path` by one with these bytes, in a single step.
fn store(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes).map_err(|error| io(path, "written", error))
}

/// Replaces the file `path` by one with these bytes, in a single step. Creates the file if there is
/// none.
///
/// # Errors
/// Those of the file system. The old file stays, and no temporary file is left.
#[doc(hidden)]
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A symbolic link stays, and the file that it points to is replaced.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let before = match std::fs::metadata(path) {
        Ok(before) if !before.is_file() => {
            return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(before) if before.permissions().readonly() => return Err(ErrorKind::PermissionDenied.into()),
        Ok(before) => Some(before.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let (mut file, other) = (0..u32::MAX)
        .find_map(|number| {
            let mut other = std::ffi::OsString::from(".");
            other.push(name);
            other.push(format!(".{}-{number}", std::process::id()));
            let other = path.with_file_name(other);
            match OpenOptions::new().write(true).create_new(true).open(&other) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
                opened => Some(opened.map(|file| (file, other))),
            }
        })
        .unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()))?;
    let stored = file
        .write_all(bytes)
        .and_then(|()| before.map_or(Ok(()), |before| file.set_permissions(before)))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&other, path));
    if stored.is_err() {
        // The first error is returned, since an error of this removal would explain less.
        drop(std::fs::remove_file(&other));
    }
    stored
}

/// Adds the file's name to an error that occurred after the plans of `epochs` epochs were read.
fn located(name: &str, epochs: usize, error: Error) -> Error {
    let behind = if epochs > 0 { format!("after the plans of {epochs} epochs: ") } else { String::new() };
    Error::new(error.class(), format!("{name}: {behind}{}", error.message())).because(error)
}

/// Checks that a file of `length` bytes can be read again.
fn within(length: usize) -> Result<()> {
    if length as u64 <= LENGTH_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorClass::File,
        format!(
            "a plan file of {length} bytes: at most {LENGTH_MAX} are read; prepare the superstep instead"
        ),
    ))
}

fn io(path: &Path, what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorClass::Io, format!("the plan file {} cannot be {what}: {error}", path.display()))
        .because(error)
}

/// Returns the bytes of `schedule`'s plan file. Equal schedules have equal bytes.
///
/// # Errors
/// FILE if the schedule has more than [`RANKS_MAX`] ranks or the file would be longer than
/// [`LENGTH_MAX`], since such a file could not be read.
pub fn to_bytes(schedule: &Schedule) -> Result<Vec<u8>> {
    file_of(schedule, None)
}

/// Returns the bytes of the plan file of `schedule`. The file records `made_for` if it is given.
fn file_of(schedule: &Schedule, made_for: Option<&MadeFor>) -> Result<Vec<u8>> {
    let ranks = schedule.class_of.len();
    if ranks > RANKS_MAX as usize {
        return Err(Error::new(
            ErrorClass::File,
            format!("a plan file for {ranks} ranks: at most {RANKS_MAX} fit"),
        ));
    }
    let file = layout::assemble(&sections(schedule, made_for));
    within(file.len())?;
    Ok(file)
}

fn sections(schedule: &Schedule, made_for: Option<&MadeFor>) -> Sections<Vec<u8>> {
    let mut to = Writer::default();
    programs::write(&schedule.classes, &mut to);
    let programs = to.take();

    to.string(&schedule.name);
    to.number(schedule.class_of.len());
    to.number(schedule.shape.len());
    schedule.shape.iter().for_each(|&extent| to.number(extent));
    to.number(schedule.windows.len());
    schedule.windows.values().for_each(|element| element.write(&mut to));
    to.byte(match schedule.order {
        Order::Canonical => 0,
        Order::Relaxed => 1,
    });
    to.byte(match schedule.sync {
        Sync::Fence => 0,
        Sync::Pscw => 1,
    });
    match schedule.placement {
        Placement::Together => to.byte(0),
        Placement::Apart => to.byte(1),
        Placement::Hosts { ranks_each } => {
            to.byte(2);
            to.number(ranks_each);
        }
    }
    let head = to.take();

    let runs = NestedRuns::compress(&schedule.class_of, &schedule.shape);
    to.number(schedule.classes.len());
    to.number(runs.levels.len());
    for level in &runs.levels {
        to.number(level.len());
        for line in level {
            to.number(line.len());
            for run in line {
                to.number(run.count);
                to.number(run.of);
            }
        }
    }
    let classes = to.take();

    let files = std::mem::take(&mut to.files);
    to.number(files.len());
    files.iter().for_each(|file| to.string(file));
    let files = to.take();

    let datatypes = std::mem::take(&mut to.datatypes).into_table();
    to.number(datatypes.len());
    datatypes.values().for_each(|datatype| datatype.encode(&mut to.bytes));
    let datatypes = to.take();

    if let Some(made_for) = made_for {
        made_for.write(&mut to);
    }
    let made_for = to.take();

    to.string(concat!("fencepost ", env!("CARGO_PKG_VERSION")));
    [head, classes, files, datatypes, programs, made_for, to.take()]
}

/// Reads a plan from the bytes of a file.
///
/// # Errors
/// FILE if the bytes are not those of exactly one plan, because they are foreign, truncated,
/// edited, of another version, or followed by another plan.
///
/// # Cost
/// Time and memory are linear in the file's length and its number of ranks.
pub fn from_bytes(file: &[u8]) -> Result<Plan> {
    if file.len() as u64 > LENGTH_MAX {
        return Err(Error::new(
            ErrorClass::File,
            format!(
                "this is not a plan file: it has more than {LENGTH_MAX} bytes; give a file that `save` or `fencepost plan` wrote"
            ),
        ));
    }
    let (sections, digest) = layout::open(file)?;
    let [head, classes, files, datatypes, programs, made_for, made_by] = sections;
    let mut known = Known::default();

    let made_for = Some(made_for).filter(|bytes| !bytes.is_empty());
    let made_for =
        made_for.map(|bytes| MadeFor::read(Reader::new(SECTIONS[5], bytes, &known))).transpose()?;

    let mut from = Reader::new(SECTIONS[6], made_by, &known);
    let made_by = from.string()?.to_owned();
    from.end()?;

    let mut from = Reader::new(SECTIONS[0], head, &known);
    let name = from.string()?.to_owned();
    let ranks = from.u32()?;
    let shape: Vec<u32> = from.all(Reader::u32)?;
    let places = shape.iter().try_fold(1u32, |product, &extent| product.checked_mul(extent));
    if ranks == 0 || ranks > RANKS_MAX || places != Some(ranks) || shape.len() > DIMENSIONS_MAX {
        return Err(from.bad(format_args!(
            "a grid of {shape:?} for {ranks} ranks, where 1 to {RANKS_MAX} are expected, in at most \
             {DIMENSIONS_MAX} dimensions"
        )));
    }
    let windows: Table<_, _> = from.all(Wire::read)?;
    let order = from.one_of("an order", &[Order::Canonical, Order::Relaxed])?;
    let sync = from.one_of("a synchronisation", &[Sync::Fence, Sync::Pscw])?;
    let placement = match from.byte()? {
        0 => Placement::Together,
        1 => Placement::Apart,
        2 => Placement::Hosts { ranks_each: from.u32()? as usize },
        code => return Err(from.unknown("a placement", code, 3)),
    };
    if placement == (Placement::Hosts { ranks_each: 0 }) {
        return Err(from.bad("hosts of no ranks"));
    }
    from.end()?;
    (known.ranks, known.windows) = (ranks, windows.len());

    let mut from = Reader::new(SECTIONS[2], files, &known);
    let files = from.all(|from| Ok(from.string()?.into()))?;
    from.end()?;
    let mut from = Reader::new(SECTIONS[3], datatypes, &known);
    let datatypes = from.all(Reader::datatype_itself)?;
    from.end()?;
    (known.files, known.datatypes) = (files, datatypes);

    let mut from = Reader::new(SECTIONS[4], programs, &known);
    let programs = programs::read(&mut from)?;
    from.end()?;

    let mut from = Reader::new(SECTIONS[1], classes, &known);
    let count = from.number()?;
    if count != programs.len() as u64 || programs.is_empty() {
        return Err(from.bad(format_args!(
            "{count} classes of {} programs, where one or more are expected",
            programs.len()
        )));
    }
    let run = |from: &mut Reader<'_>| Ok(Run { count: from.u32()?, of: from.u32()? });
    let runs = NestedRuns { levels: from.all(|from| from.all(|from| from.all(run)))? };
    let class_of = runs.expand(&shape, programs.len()).map_err(|what| from.bad(what))?;
    from.end()?;

    let schedule = Schedule { name, windows, shape, classes: programs, class_of, order, sync, placement };
    // A schedule has only one encoding. So this check refuses files with duplicate entries, unused
    // entries or entries in another order.
    if schedule.digest() != digest {
        return Err(Error::new(
            ErrorClass::File,
            "the plan file is damaged: its schedule is not in canonical encoding; compile the plan again",
        ));
    }
    Ok(Plan { schedule, digest, made_for, made_by })
}
