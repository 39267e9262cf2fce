//! Restores the latest snapshot that is intact.

use crate::agreement::{agreed_as, first_reason, print};
use crate::compare::{check_array, check_box, mismatch_of_box};
use crate::folder;
use crate::holders;
use crate::items::{Item, Items, Shape};
use crate::manifest::{Box, Content, Manifest, Refused, Saved, file_of_block, from_hex};
use crate::stores::Stores;
use fencepost_planner::element::Op;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::World;
use std::fs::File;
use std::path::Path;

/// Restores the latest snapshot that is intact, and returns its step, or `None` if there are none.
/// All ranks call this.
pub(crate) fn latest(
    world: &World,
    (path, stores): (&Path, &Stores),
    program: &str,
    items: &mut Items<'_>,
) -> Result<Option<u64>> {
    let (rank, ranks) = (world.rank(), world.size());
    let is_first = rank == 0;
    let mut steps = Ok(Vec::new());
    if stores.leader(rank) == rank {
        steps = folder::steps(path).map_err(|error| error.to_string());
    }
    let mut steps = agreed_as(world, ErrorClass::File, steps)?;
    let mut damaged = false;
    // The latest manifest that this rank leads and that was not tried yet.
    let mut next: Option<Manifest> = None;
    loop {
        // Those that lead propose manifests, and the latest one is tried.
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
        let keys = world.allgather(&[&mine[..], &[u64::from(damaged)]].concat())?;
        damaged = keys.iter().any(|key| key[4] != 0);
        let latest = keys.iter().map(|key| &key[..4]).max().unwrap_or(&[0; 4]);
        if latest[0] == 0 {
            if !damaged {
                return Ok(None);
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
        let folder = folder::snapshot(path, manifest.step);
        let arrays = load_arrays(&folder, &manifest, items, (rank, ranks));
        let files = holders::load(world, stores, &folder, &manifest, items)?;
        let loaded = arrays.and(files);
        if world.allreduce_one(u64::from(loaded.is_err()), Op::Max)? == 0 {
            return Ok(Some(manifest.step));
        }
        let why = first_reason(world, &loaded.err().unwrap_or_default())?;
        damaged = true;
        if is_first {
            print(&format!(
                "the snapshot of step {} is damaged, and an older one is used: {why}",
                manifest.step
            ));
        }
    }
}

/// Returns the manifest of the latest of `steps` that is intact, and removes it and those before it
/// from them. Those that are damaged are reported.
fn next_manifest(
    path: &Path,
    program: &str,
    steps: &mut Vec<u64>,
    damaged: &mut bool,
) -> Result<Option<Manifest>, String> {
    while !steps.is_empty() {
        match folder::manifest(path, steps.remove(0)) {
            Ok(manifest) if manifest.program != program => {
                return Err(format!(
                    "{}: its snapshots are of the program `{}`, and this is `{program}`: use another folder",
                    path.display(),
                    manifest.program
                ));
            }
            Ok(manifest) => return Ok(Some(manifest)),
            Err(Refused::Foreign(why)) => return Err(why),
            Err(Refused::Damaged(why)) => {
                *damaged = true;
                print(&format!("a manifest is damaged, and another one is used: {why}"));
            }
        }
    }
    Ok(None)
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

/// Restores the blocks of this rank from the files of whole arrays, and values from the manifest.
fn load_arrays(
    folder: &Path,
    manifest: &Manifest,
    items: &mut Items<'_>,
    place: (usize, usize),
) -> Result<(), String> {
    for item in items.all_mut() {
        let Some(saved) = manifest.items.iter().find(|saved| saved.name == item.name) else { continue };
        match &saved.content {
            Content::Block { shape, boxes } if manifest.copies.is_none() => {
                let path = folder.join(file_of_block(&saved.name));
                load_block(&path, saved, (shape, boxes), item, place)
                    .map_err(|why| format!("{}: {why}", path.display()))?;
            }
            Content::Value { bytes } => {
                let bytes = from_hex(bytes).filter(|bytes| bytes.len() == item.size);
                let bytes = bytes.ok_or("its manifest has a value of another size")?;
                item.put(0, (&[], &[]), &bytes);
            }
            _ => {}
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
) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    check_array(&file, saved, shape)?;
    item.load(path).map_err(|error| error.message().to_owned())?;
    // If each rank has the box that it had, what it has read is compared. Otherwise each rank reads
    // some of the boxes for this.
    let Shape::Block { origin, extent, .. } = &item.shape else { return Ok(()) };
    let is_mine = |one: &Box| (&one.origin, &one.extent) == (origin, extent);
    if boxes.len() == ranks && is_mine(&boxes[rank]) {
        if item.checksum() != boxes[rank].crc32 {
            return Err(mismatch_of_box(saved, shape, &boxes[rank]));
        }
    } else {
        for one in boxes.iter().skip(rank).step_by(ranks) {
            check_box(&file, saved, shape, one)?;
        }
    }
    Ok(())
}
