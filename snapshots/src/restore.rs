//! Restores the latest snapshot that is intact.

use crate::agreement::{agreed_as, first_reason, print};
use crate::cells::file_runs;
use crate::field::Field;
use crate::folder;
use crate::header;
use crate::items::{Item, Items, Shape};
use crate::manifest::{Box, Content, Manifest, Refused, Saved, file_of_block, file_of_rank, from_hex};
use fencepost_planner::element::Op;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::World;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The most bytes that are read at a time for a checksum.
const CHUNK: usize = 1 << 20;

/// Restores the latest snapshot of the folder that is intact. Returns its step, or `None` if the
/// folder has none, and on rank 0 the steps that are damaged. All ranks call this.
pub(crate) fn latest(
    world: &World,
    path: &Path,
    program: &str,
    items: &mut Items<'_>,
) -> Result<(Option<u64>, Vec<u64>)> {
    let place = (world.rank(), world.size());
    // Only rank 0 looks at the folder, and all ranks get the texts of manifests.
    let steps = if place.0 == 0 { folder::steps(path) } else { Ok(Vec::new()) };
    let mut steps = agreed_as(world, ErrorClass::Io, steps.map_err(|error| error.to_string()))?.into_iter();
    let mut damaged = Vec::new();
    let note = |damaged: &mut Vec<u64>, step: u64, why: &str| {
        print(&format!("the snapshot of step {step} is damaged and is not used: {why}"));
        damaged.push(step);
    };
    loop {
        let mut found = Vec::new();
        if place.0 == 0 {
            let next = steps.by_ref().find_map(|step| match folder::manifest(path, step) {
                Err(Refused::Damaged(why)) => {
                    note(&mut damaged, step, &why);
                    None
                }
                readable => Some(readable),
            });
            found = match next {
                Some(Ok(manifest)) if manifest.program != program => format!(
                    "!{}: its snapshots are of the program `{}`, and this is `{program}`: use another folder",
                    path.display(),
                    manifest.program
                ),
                Some(Ok(manifest)) => manifest.to_text(),
                Some(Err(Refused::Foreign(why) | Refused::Unreadable(why) | Refused::Damaged(why))) => {
                    format!("!{why}")
                }
                None if damaged.is_empty() => String::new(),
                None => format!(
                    "!{}: no snapshot in it is intact; to start from the beginning, remove the folder or use another one",
                    path.display()
                ),
            }
            .into_bytes();
        }
        world.broadcast_vec(0, &mut found)?;
        let found = String::from_utf8_lossy(&found);
        if found.is_empty() {
            return Ok((None, Vec::new()));
        }
        if let Some(why) = found.strip_prefix('!') {
            return Err(Error::new(ErrorClass::File, why));
        }
        let manifest = Manifest::from_text(&found).map_err(|_| {
            Error::new(ErrorClass::Intern, "a manifest that rank 0 has read is damaged on this rank")
        })?;
        agreed_as(world, ErrorClass::File, check(&manifest, items, place))?;
        let step = manifest.step;
        // What cannot be read may be intact: then no older snapshot is used in its place.
        let (why, is_damaged) = match load(&folder::snapshot(path, step), &manifest, items, place) {
            Ok(()) => (String::new(), false),
            Err(Refused::Damaged(why)) => (why, true),
            Err(Refused::Unreadable(why) | Refused::Foreign(why)) => (why, false),
        };
        let is_unreadable = !why.is_empty() && !is_damaged;
        let code = u64::from(is_damaged) | u64::from(is_unreadable) << 1;
        match world.allreduce_one(code, Op::Bor)? {
            0 => return Ok((Some(step), damaged)),
            code => {
                let why = first_reason(world, &why)?;
                if code > 1 {
                    return Err(Error::new(ErrorClass::Io, why));
                }
                if place.0 == 0 {
                    note(&mut damaged, step, &why);
                }
            }
        }
    }
}

/// Returns why a file cannot be used that cannot be opened.
fn unopened(path: &Path, error: &io::Error) -> Refused {
    let why = format!("{}: {error}", path.display());
    if error.kind() == io::ErrorKind::NotFound { Refused::Damaged(why) } else { Refused::Unreadable(why) }
}

/// Checks that the snapshot has the items of this rank, and that this number of ranks can restore
/// them.
fn check(manifest: &Manifest, items: &Items<'_>, (rank, ranks): (usize, usize)) -> Result<(), String> {
    let step = manifest.step;
    for saved in &manifest.items {
        if !items.all().iter().any(|item| item.name == saved.name) {
            return Err(format!(
                "the snapshot of step {step} has the item `{}`, which the program does not list: list it, or use another folder",
                saved.name
            ));
        }
    }
    for item in items.all() {
        let name = item.name;
        let Some(saved) = manifest.items.iter().find(|saved| saved.name == name) else {
            return Err(format!(
                "the program lists the item `{name}`, which the snapshot of step {step} does not have: remove it from the list, or use another folder"
            ));
        };
        let given = format!("{} of {}", item.shape, item.element);
        let was = describe(saved);
        let differs = || {
            Err(format!(
                "the item `{name}` is {given} here, and {was} in the snapshot of step {step}: restore it with the same kind, type and shape, or use another folder"
            ))
        };
        if saved.element != item.element || saved.size != item.size {
            return differs();
        }
        match (&saved.content, &item.shape) {
            (Content::Block { shape, .. }, Shape::Block { global, .. }) if shape == global => {}
            (Content::Value { .. }, Shape::Value) => {}
            (Content::Part { .. }, Shape::Part { .. }) | (Content::List { .. }, Shape::List { .. })
                if manifest.ranks != ranks =>
            {
                return Err(format!(
                    "the item `{name}` is {given}, which each rank has of its own: the snapshot of step {step} is of {} ranks, and there are {ranks}; start {} ranks, or make it a block",
                    manifest.ranks, manifest.ranks
                ));
            }
            (Content::Part { pieces }, Shape::Part { len }) if pieces[rank].elements != *len => {
                return Err(format!(
                    "the item `{name}` is {given} here, and a part of {} elements in the snapshot of step {step}: give a slice of that length, or a vector",
                    pieces[rank].elements
                ));
            }
            (Content::Part { .. }, Shape::Part { .. }) | (Content::List { .. }, Shape::List { .. }) => {}
            _ => return differs(),
        }
    }
    Ok(())
}

/// Describes an item of a snapshot as that of a program is.
pub(crate) fn describe(saved: &Saved) -> String {
    let element = &saved.element;
    match &saved.content {
        Content::Block { shape, .. } => format!("a block of an array of {shape:?} cells of {element}"),
        Content::Part { .. } => format!("a part of {element}"),
        Content::List { .. } => format!("a vector of {element}"),
        Content::Value { .. } => format!("a value of {element}"),
    }
}

/// Restores the items of this rank from the folder of a snapshot, and checks what it reads.
fn load(
    folder: &Path,
    manifest: &Manifest,
    items: &mut Items<'_>,
    (rank, ranks): (usize, usize),
) -> Result<(), Refused> {
    for item in items.all_mut() {
        let Some(saved) = manifest.items.iter().find(|saved| saved.name == item.name) else { continue };
        match &saved.content {
            Content::Block { shape, boxes } => {
                let path = folder.join(file_of_block(&saved.name));
                load_block(&path, saved, (shape, boxes), item, (rank, ranks))?;
            }
            Content::Part { pieces } | Content::List { pieces } => {
                let path = folder.join(file_of_rank(rank));
                let damaged = |why: String| Refused::Damaged(format!("{}: {why}", path.display()));
                let piece = &pieces[rank];
                let file = File::open(&path).map_err(|error| unopened(&path, &error))?;
                check_length(&file, manifest.length_of(rank)).map_err(damaged)?;
                let no_memory = |why| Refused::Unreadable(format!("{}: {why}", path.display()));
                let bytes = item.room_for(piece.elements).map_err(no_memory)?;
                file.read_exact_at(bytes, piece.at).map_err(|error| damaged(error.to_string()))?;
                if crc32fast::hash(bytes) != piece.crc32 {
                    return Err(damaged(mismatch(piece.at, bytes.len() as u64)));
                }
            }
            Content::Value { bytes } => {
                let value = item.room_for(1).map_err(Refused::Unreadable)?;
                // The manifest was checked: these are as many bytes.
                from_hex(bytes).iter().for_each(|bytes| value.copy_from_slice(bytes));
            }
        }
    }
    Ok(())
}

/// Reads the cells of a block, and compares the checksums of a share of the file.
fn load_block(
    path: &Path,
    saved: &Saved,
    (shape, boxes): (&[usize], &[Box]),
    item: &mut Item<'_>,
    (rank, ranks): (usize, usize),
) -> Result<(), Refused> {
    let damaged = |why: String| Refused::Damaged(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| unopened(path, &error))?;
    check_array(&file, saved, shape).map_err(damaged)?;
    let field = Field::of(file, path).and_then(|field| {
        item.load(&field)?;
        Ok(field)
    });
    let field = field.map_err(|error| match error.class() {
        ErrorClass::Io => Refused::Unreadable(error.message().into()),
        _ => Refused::Damaged(error.message().into()),
    })?;
    // If each rank has the box that it had, it compares the cells that it has read. Otherwise each
    // reads some of the boxes for this.
    let Shape::Block { origin, extent, .. } = &item.shape else { return Ok(()) };
    let is_mine = |one: &Box| (&one.origin, &one.extent) == (origin, extent);
    if boxes.len() == ranks && is_mine(&boxes[rank]) {
        if item.checksum() != boxes[rank].crc32 {
            return Err(damaged(mismatch_of_box(saved, shape, &boxes[rank])));
        }
    } else {
        for one in boxes.iter().skip(rank).step_by(ranks) {
            check_box(field.file(), saved, shape, one).map_err(damaged)?;
        }
    }
    Ok(())
}

/// Checks that a file begins with the header of this array, and has its length.
pub(crate) fn check_array(file: &File, saved: &Saved, shape: &[usize]) -> Result<(), String> {
    let header = header::bytes(&saved.element, shape);
    let mut found = vec![0; header.len()];
    let cells: usize = shape.iter().product();
    check_length(file, header.len() as u64 + (cells * saved.size) as u64)?;
    file.read_exact_at(&mut found, 0).map_err(|error| error.to_string())?;
    match found.iter().zip(&header).position(|(found, written)| found != written) {
        None => Ok(()),
        Some(at) => Err(format!("its header is not as it was written, from byte {at} on")),
    }
}

/// Compares the checksum of a box of cells with that in the manifest.
pub(crate) fn check_box(file: &File, saved: &Saved, shape: &[usize], one: &Box) -> Result<(), String> {
    let data = header::bytes(&saved.element, shape).len() as u64;
    let mut hasher = crc32fast::Hasher::new();
    for (first, cells) in file_runs(shape, &one.origin, &one.extent) {
        let at = data + first * saved.size as u64;
        add(file, at, (cells * saved.size) as u64, &mut hasher).map_err(|error| error.to_string())?;
    }
    if hasher.finalize() == one.crc32 { Ok(()) } else { Err(mismatch_of_box(saved, shape, one)) }
}

/// Compares the checksum of bytes with that in the manifest.
pub(crate) fn check_bytes(file: &File, at: u64, len: u64, crc32: u32) -> Result<(), String> {
    let mut hasher = crc32fast::Hasher::new();
    add(file, at, len, &mut hasher).map_err(|error| error.to_string())?;
    if hasher.finalize() == crc32 { Ok(()) } else { Err(mismatch(at, len)) }
}

fn add(file: &File, at: u64, len: u64, hasher: &mut crc32fast::Hasher) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK.min(len as usize)];
    let mut done = 0;
    while done < len {
        let now = (len - done).min(CHUNK as u64) as usize;
        file.read_exact_at(&mut bytes[..now], at + done)?;
        hasher.update(&bytes[..now]);
        done += now as u64;
    }
    Ok(())
}

/// Checks the length of a file.
pub(crate) fn check_length(file: &File, written: u64) -> Result<(), String> {
    let found = file.metadata().map_err(|error| error.to_string())?.len();
    if found == written {
        return Ok(());
    }
    Err(format!("it has {found} bytes, where {written} were written"))
}

fn mismatch(at: u64, len: u64) -> String {
    format!("the {len} bytes from byte {at} on are not those that were written: their checksum differs")
}

fn mismatch_of_box(saved: &Saved, shape: &[usize], one: &Box) -> String {
    let cell = file_runs(shape, &one.origin, &one.extent).next().map_or(0, |(first, _)| first);
    format!(
        "the box of {:?} cells that begins at cell {:?}, which is byte {}, is not as it was written: its checksum differs",
        one.extent,
        one.origin,
        header::bytes(&saved.element, shape).len() as u64 + cell * saved.size as u64
    )
}
