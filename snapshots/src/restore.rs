//! Restores the latest snapshot that is intact.

use crate::agreement::{agreed_as, first_reason, print};
use crate::compare::{check_array, check_box, mismatch_of_box};
use crate::field::Field;
use crate::folder;
use crate::holders;
use crate::items::{Item, Items, Shape};
use crate::manifest::{Box, Content, Manifest, Refused, Saved, file_of_block, from_hex};
use crate::stores::Stores;
use fencepost_planner::element::Op;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::World;
use std::fs::File;
use std::io;
use std::path::Path;

/// Restores the latest snapshot that is intact. Returns the step of that snapshot (`None` if there
/// are no snapshots), and the steps of damaged snapshots. All ranks call this.
pub(crate) fn latest(
    world: &World,
    (path, stores): (&Path, &Stores),
    program: &str,
    items: &mut Items<'_>,
) -> Result<(Option<u64>, Vec<u64>)> {
    let (rank, ranks) = (world.rank(), world.size());
    let mut steps = Ok(Vec::new());
    if stores.leader(rank) == rank {
        steps = folder::steps(path).map_err(|error| error.to_string());
    }
    let mut steps = agreed_as(world, ErrorClass::Io, steps)?.into_iter();
    let mut damaged = Vec::new();
    // On a rank that leads a store: the latest manifest in its folder that was not tried yet.
    let mut next: Option<Manifest> = None;
    loop {
        // Each rank that leads a store proposes a manifest, and the latest of these manifests is
        // tried.
        let mut found = Ok(());
        if next.is_none() {
            found = next_manifest(path, program, &mut steps, &mut damaged).map(|found| next = found);
        }
        agreed_as(world, ErrorClass::File, found)?;
        let key = |manifest: &Manifest| {
            let sum = crc32fast::hash(manifest.to_text().as_bytes());
            [1, manifest.step, manifest.taken, u64::from(sum)]
        };
        let mine = next.as_ref().map_or([0; 4], key);
        let is_damaged = u64::from(!damaged.is_empty());
        let keys = world.allgather(&[&mine[..], &[is_damaged]].concat())?;
        let latest = keys.iter().map(|key| &key[..4]).max().unwrap_or(&[0; 4]);
        if latest[0] == 0 {
            if keys.iter().all(|key| key[4] == 0) {
                return Ok((None, Vec::new()));
            }
            let others = if stores.len() > 1 { ", and none in the folders of other hosts" } else { "" };
            let why = format!(
                "{}: no snapshot in it is intact{others}; to start from the beginning, remove the folder or use another one",
                path.display()
            );
            return Err(Error::new(ErrorClass::File, why));
        }
        let owner = keys.iter().position(|key| key[..4] == *latest).unwrap_or(0);
        let mut text = Vec::new();
        if mine == *latest {
            text = next.take().map_or(text, |manifest| manifest.to_text().into_bytes());
        }
        world.broadcast_vec(owner, &mut text)?;
        let manifest = Manifest::from_text(&String::from_utf8_lossy(&text)).map_err(|_| {
            let why = format!("a manifest that rank {owner} has read is damaged on this rank");
            Error::new(ErrorClass::Intern, why)
        })?;
        agreed_as(world, ErrorClass::File, check(&manifest, items, (rank, ranks), stores))?;
        let step = manifest.step;
        let folder = folder::snapshot(path, step);
        let arrays = load_arrays(&folder, &manifest, items, (rank, ranks));
        let files = holders::load(world, stores, &folder, &manifest, items)?;
        // A snapshot that cannot be read may be intact, so no older snapshot is used in its place.
        let (why, is_damaged) = match arrays.and(files.map_err(Refused::Damaged)) {
            Ok(()) => (String::new(), false),
            Err(Refused::Damaged(why)) => (why, true),
            Err(Refused::Unreadable(why) | Refused::Foreign(why)) => (why, false),
        };
        let is_unreadable = !why.is_empty() && !is_damaged;
        let code = world.allreduce_one(u64::from(is_damaged) | u64::from(is_unreadable) << 1, Op::Bor)?;
        if code == 0 {
            return Ok((Some(step), damaged));
        }
        let why = first_reason(world, &why)?;
        if code > 1 {
            return Err(Error::new(ErrorClass::Io, why));
        }
        damaged.push(step);
        if rank == 0 {
            print(&format!("the snapshot of step {step} is damaged and is not used: {why}"));
        }
    }
}

/// Returns the next manifest of `steps` that is intact. Reports damaged manifests that it skips.
fn next_manifest(
    path: &Path,
    program: &str,
    steps: &mut impl Iterator<Item = u64>,
    damaged: &mut Vec<u64>,
) -> Result<Option<Manifest>, String> {
    for step in steps {
        match folder::manifest(path, step) {
            Ok(manifest) if manifest.program != program => {
                return Err(format!(
                    "{}: its snapshots are of the program `{}`, and this is `{program}`: use another folder",
                    path.display(),
                    manifest.program
                ));
            }
            Ok(manifest) => return Ok(Some(manifest)),
            Err(Refused::Foreign(why) | Refused::Unreadable(why)) => return Err(why),
            Err(Refused::Damaged(why)) => {
                damaged.push(step);
                print(&format!("the snapshot of step {step} is damaged and is not used: {why}"));
            }
        }
    }
    Ok(None)
}

/// Returns the reason why the file at `path` cannot be used, from the error of opening it.
fn unopened(path: &Path, error: &io::Error) -> Refused {
    let why = format!("{}: {error}", path.display());
    if error.kind() == io::ErrorKind::NotFound { Refused::Damaged(why) } else { Refused::Unreadable(why) }
}

/// Checks that the snapshot has the items of this rank, and that this number of ranks can restore
/// them.
fn check(
    manifest: &Manifest,
    items: &Items<'_>,
    (rank, ranks): (usize, usize),
    stores: &Stores,
) -> Result<(), String> {
    let step = manifest.step;
    if manifest.copies.is_none() && stores.len() > 1 {
        return Err(format!(
            "the snapshot of step {step} is in a folder that all ranks shared, and there are {} folders: open it by `Snapshots::new`",
            stores.len()
        ));
    }
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

/// Describes an item of a snapshot in the same words as an item of a program.
pub(crate) fn describe(saved: &Saved) -> String {
    let element = &saved.element;
    match &saved.content {
        Content::Block { shape, .. } => format!("a block of an array of {shape:?} cells of {element}"),
        Content::Part { .. } => format!("a part of {element}"),
        Content::List { .. } => format!("a vector of {element}"),
        Content::Value { .. } => format!("a value of {element}"),
    }
}

/// Restores the blocks of this rank from the files of whole arrays, and values from the manifest.
fn load_arrays(
    folder: &Path,
    manifest: &Manifest,
    items: &mut Items<'_>,
    place: (usize, usize),
) -> Result<(), Refused> {
    for item in items.all_mut() {
        let Some(saved) = manifest.items.iter().find(|saved| saved.name == item.name) else { continue };
        match &saved.content {
            Content::Block { shape, boxes } if manifest.copies.is_none() => {
                let path = folder.join(file_of_block(&saved.name));
                load_block(&path, saved, (shape, boxes), item, place)?;
            }
            Content::Value { bytes } => {
                // The manifest was checked: the value has the size of the item.
                let bytes = from_hex(bytes).unwrap_or_default();
                item.put(0, (&[], &[]), &bytes).map_err(Refused::Unreadable)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the cells of a block, and compares the checksums of some boxes of the file.
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
    // If this rank has the same box as when the snapshot was taken, it compares the checksum of the
    // cells that it has read. Otherwise it reads some of the boxes of the file and compares their
    // checksums.
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
