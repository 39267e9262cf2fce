//! Fields in files. Each number of ranks reads files that another number of ranks has written.
//! Damaged files are refused. If one rank fails, all ranks return an error.

use fencepost::grid::Block;
use fencepost::snapshots::Field;
use fencepost::{Element, ErrorClass, Result};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const UNTOUCHED: f64 = -1.0;

/// Returns the number of a cell, or `None` outside of the array.
fn number<const D: usize>(cell: [isize; D], global: [usize; D], wraps: [bool; D]) -> Option<usize> {
    let mut number = 0;
    for d in 0..D {
        let cells = global[d] as isize;
        let inside = (0..cells).contains(&cell[d]);
        let at = (inside || wraps[d]).then(|| cell[d].rem_euclid(cells))?;
        number = number * global[d] + at as usize;
    }
    Some(number)
}

/// Returns the local storage of `block` after loading an array in which each cell holds its own
/// number.
fn expected<const D: usize>(block: &Block<D>, wraps: [bool; D]) -> Vec<f64> {
    let (shape, strides, origin) = (block.shape(), block.strides(), block.origin());
    let mut cells = vec![UNTOUCHED; block.len()];
    for mut rest in 0..shape.iter().product() {
        let (mut index, mut cell) = (0, [0; D]);
        for d in (0..D).rev() {
            let at = rest % shape[d];
            rest /= shape[d];
            index += at * strides[d];
            cell[d] = (origin[d] + at) as isize - block.widths()[d] as isize;
        }
        if let Some(number) = number(cell, block.global(), wraps) {
            cells[index] = number as f64;
        }
    }
    cells
}

/// Returns the block's own cells with their numbers, and NaN in all other elements.
fn own<const D: usize>(block: &Block<D>) -> Vec<f64> {
    let mut cells = vec![f64::NAN; block.len()];
    let global = block.global();
    block.fill(&mut cells, |cell| {
        number(cell.map(|at| at as isize), global, [false; D]).expect("a cell of the array") as f64
    });
    cells
}

fn in_folder(name: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder for temporary files");
    let path = folder.path().join(name);
    (folder, path)
}

/// Saves an array with several numbers of ranks, and loads each file with other numbers of ranks.
fn round_trips<const D: usize>(global: [usize; D], widths: [usize; D], wraps: [bool; D]) -> Result<()> {
    let (folder, path) = in_folder("cells.npy");
    let mut first = None;
    for writers in [1, 3, 4, 6] {
        fencepost::ranks(writers).run(|world| {
            let block = Block::new(world, global)?.halos(widths)?.periodic(wraps);
            Field::save(world, &block, &own(&block), &path)
        })?;
        let bytes = fs::read(&path)?;
        assert_eq!(first.get_or_insert_with(|| bytes.clone()), &bytes, "by {writers} ranks");
        let loaded = |readers: usize, widths: [usize; D]| {
            fencepost::ranks(readers).run(|world| {
                let block = Block::new(world, global)?.halos(widths)?.periodic(wraps);
                let mut cells = vec![UNTOUCHED; block.len()];
                let field = Field::open(&path)?;
                assert_eq!(field.shape(), global);
                field.load(&block, &mut cells)?;
                assert_eq!(cells, expected(&block, wraps), "rank {} of {readers}", world.rank());
                Ok(())
            })
        };
        for readers in [1, 3, 4, 6] {
            loaded(readers, widths)?;
            loaded(readers, [0; D])?;
        }
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), 1, "no temporary file is left");
    Ok(())
}

#[test]
fn any_number_of_ranks_loads_what_any_other_has_saved() -> Result<()> {
    round_trips([29], [2], [false])?;
    round_trips([29], [3], [true])?;
    round_trips([13, 17], [1, 2], [false, false])?;
    round_trips([13, 17], [2, 1], [true, false])?;
    round_trips([13, 17], [2, 2], [true, true])?;
    round_trips([9, 8, 10], [1, 1, 1], [false, true, false])?;
    round_trips([9, 8, 10], [1, 0, 2], [true, true, true])
}

/// Rows of a multiple of 512 cells are padded, and rows of 16 KiB are not buffered.
#[test]
fn padded_and_long_rows_are_as_others() -> Result<()> {
    round_trips([7, 512], [0, 0], [false, false])?;
    round_trips([12, 1022], [1, 1], [false, true])?;
    round_trips([6, 6144], [1, 0], [true, false])?;
    round_trips([12, 3, 512], [1, 1, 0], [false, false, false])
}

/// Writes a file with these elements, as NumPy does.
fn file(path: &Path, descr: &str, fortran: &str, shape: &str, elements: &[u8]) -> Result<()> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{text:<width$}\n", width = length - 1).bytes());
    bytes.extend(elements);
    Ok(fs::write(path, bytes)?)
}

/// Loads all cells of an array into the block of a single rank.
fn load<T: Element, const D: usize>(path: &Path, global: [usize; D]) -> Result<Vec<T>> {
    let block = Block::at(0, 1, global)?.pad(false);
    let mut cells = vec![T::zeroed(); block.len()];
    Field::open(path)?.load(&block, &mut cells)?;
    Ok(cells)
}

#[test]
fn arrays_in_fortran_order_are_read_in_tiles() -> Result<()> {
    let (_folder, path) = in_folder("columns.npy");
    // More rows and planes than a tile has, and a halo.
    let global = [9000, 70];
    let elements = (0..global[1]).flat_map(|j| (0..global[0]).map(move |i| (i * 70 + j) as f64));
    let elements: Vec<u8> = elements.flat_map(f64::to_be_bytes).collect();
    file(&path, ">f8", "True", "(9000, 70)", &elements)?;
    for ranks in [1, 4] {
        fencepost::ranks(ranks).run(|world| {
            let block = Block::new(world, global)?.halos([2, 3])?.periodic([true, false]);
            let mut cells = vec![UNTOUCHED; block.len()];
            Field::open(&path)?.load(&block, &mut cells)?;
            assert_eq!(cells, expected(&block, [true, false]));
            Ok(())
        })?;
    }
    let global = [90, 60, 40];
    let [rows, columns, planes] = global;
    let number = |i: usize, j: usize, k: usize| (i * columns + j) * planes + k;
    let elements = (0..planes).flat_map(|k| {
        (0..columns).flat_map(move |j| (0..rows).flat_map(move |i| (number(i, j, k) as u32).to_le_bytes()))
    });
    file(&path, "<u4", "True", "(90, 60, 40)", &elements.collect::<Vec<u8>>())?;
    fencepost::ranks(6).run(|world| {
        let block = Block::new(world, global)?.halo(1)?;
        let mut cells = vec![UNTOUCHED; block.len()];
        Field::open(&path)?.load(&block, &mut cells)?;
        assert_eq!(cells, expected(&block, [false; 3]));
        Ok(())
    })
}

#[test]
fn numbers_are_converted_if_each_has_its_exact_value() -> Result<()> {
    let (_folder, path) = in_folder("numbers.npy");
    file(&path, "<i2", "False", "(1, 2)", &[0, 0x80, 7, 0])?;
    assert_eq!(load::<f64, 2>(&path, [1, 2])?, [-32768.0, 7.0]);
    assert_eq!(load::<f32, 2>(&path, [1, 2])?, [-32768.0, 7.0]);
    assert_eq!(load::<isize, 2>(&path, [1, 2])?, [-32768, 7]);
    assert_eq!(load::<i16, 2>(&path, [1, 2])?, [-32768, 7]);
    file(&path, ">i2", "False", "(1, 2)", &[0x80, 0, 0, 7])?;
    assert_eq!(load::<i32, 2>(&path, [1, 2])?, [-32768, 7]);
    assert_eq!(load::<i16, 2>(&path, [1, 2])?, [-32768, 7]);
    file(&path, "|u1", "False", "(3,)", &[0, 200, 255])?;
    assert_eq!(load::<i16, 1>(&path, [3])?, [0, 200, 255]);
    assert_eq!(load::<usize, 1>(&path, [3])?, [0, 200, 255]);
    file(&path, "<f4", "False", "(2,)", &[0.1_f32, -0.0].map(f32::to_le_bytes).concat())?;
    let bits = load::<f64, 1>(&path, [2])?.iter().map(|cell| cell.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits, [f64::from(0.1_f32).to_bits(), (-0.0_f64).to_bits()]);

    let refused = |descr: &str, size: usize| -> Result<Vec<String>> {
        file(&path, descr, "False", "(2,)", &vec![0; 2 * size])?;
        let all = [
            load::<f64, 1>(&path, [2]).err(),
            load::<f32, 1>(&path, [2]).err(),
            load::<i64, 1>(&path, [2]).err(),
            load::<u32, 1>(&path, [2]).err(),
            load::<i8, 1>(&path, [2]).err(),
        ];
        let errors = all.into_iter().flatten().inspect(|error| assert_eq!(error.class(), ErrorClass::Type));
        Ok(errors.map(|error| error.message().to_owned()).collect())
    };
    assert_eq!(refused("<f8", 8)?.len(), 4);
    assert_eq!(refused("<u8", 8)?.len(), 5);
    assert_eq!(refused("|V8", 8)?.len(), 5);
    assert_eq!(refused("|u1", 1)?.len(), 1);
    let of_i64 = refused(">i8", 8)?;
    assert_eq!(of_i64.len(), 4);
    let expected = "i64 with the high byte first ('>i8'), and cells of f64 ('<f8')";
    assert!(of_i64[0].contains(expected) && of_i64[0].contains("numbers.npy"), "{}", of_i64[0]);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Debug, Element)]
#[repr(C)]
struct Particle {
    place: [f64; 2],
    charge: f32,
    kind: u32,
}

#[test]
fn other_elements_are_voids_of_their_size() -> Result<()> {
    let (_folder, path) = in_folder("particles.npy");
    let particle =
        |[i, j]: [usize; 2]| Particle { place: [i as f64, j as f64], charge: 0.5, kind: (i * j) as u32 };
    fencepost::ranks(4).run(|world| {
        let block = Block::new(world, [6, 7])?.halo(1)?;
        let mut cells = world.window::<Particle>(block.len())?;
        block.fill(&mut cells, particle);
        Field::save(world, &block, &cells, &path)
    })?;
    let all = load::<Particle, 2>(&path, [6, 7])?;
    assert!(all.iter().enumerate().all(|(at, cell)| *cell == particle([at / 7, at % 7])));
    let error = load::<[u8; 23], 2>(&path, [6, 7]).unwrap_err();
    assert!(
        error.message().contains("voids of 24 bytes ('|V24'), and cells of [u8; 23] ('|V23')"),
        "{error}"
    );
    assert_eq!(load::<[u8; 24], 2>(&path, [6, 7])?.len(), 42);
    Ok(())
}

/// A file with one changed bit in its header is refused, is read as the same array, or is read as
/// an array in the other byte order. A file that is cut is refused.
#[test]
fn damaged_files_are_refused() -> Result<()> {
    let (_folder, path) = in_folder("damaged.npy");
    fencepost::ranks(1).run(|world| {
        let block = Block::new(world, [5, 9])?;
        Field::save(world, &block, &own(&block), &path)
    })?;
    let good = fs::read(&path)?;
    let cells = load::<f64, 2>(&path, [5, 9])?;
    let swapped: Vec<f64> = cells.iter().map(|cell| f64::from_bits(cell.to_bits().swap_bytes())).collect();
    let header = good.len() - size_of_val(&cells[..]);
    let mut same = 0;
    for bit in 0..header * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes)?;
        if let Ok(loaded) = load::<f64, 2>(&path, [5, 9]) {
            assert!(loaded == cells || loaded == swapped, "bit {bit}");
            same += 1;
        }
    }
    assert!((1..header * 8 / 2).contains(&same), "{same} of {} files", header * 8);
    for len in 0..good.len() {
        fs::write(&path, &good[..len])?;
        let error = Field::open(&path).unwrap_err();
        assert_eq!(error.class(), ErrorClass::File);
        assert!(error.message().contains("damaged.npy: truncated"), "cut to {len} bytes: {error}");
    }
    fs::write(&path, [&good[..], &[0]].concat())?;
    assert!(Field::open(&path).unwrap_err().message().contains("1 bytes follow the 45 elements"));
    // The file is cut after it was opened.
    fs::write(&path, &good)?;
    let field = Field::open(&path)?;
    fs::write(&path, &good[..good.len() - 1])?;
    let error = field.load(&Block::at(0, 1, [5, 9])?, &mut vec![0.0; 45]).unwrap_err();
    assert_eq!(error.class(), ErrorClass::File, "{error}");
    Ok(())
}

#[test]
fn refusals_of_a_load_name_what_was_given() -> Result<()> {
    let (folder, path) = in_folder("field.npy");
    file(&path, "|u1", "False", "(2, 3)", &[1; 6])?;
    let field = Field::open(&path)?;
    let block = Block::at(0, 1, [3, 2])?;
    let error = field.load(&block, &mut [0_u8; 6]).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Size);
    assert!(error.message().contains("[2, 3]") && error.message().contains("[3, 2]"), "{error}");
    assert!(field.load(&Block::at(0, 1, [6])?, &mut [0_u8; 6]).is_err());
    let error = field.load(&Block::at(0, 1, [2, 3])?, &mut [0_u8; 5]).unwrap_err();
    assert!(error.message().contains("5 cells were given, and the block stores 6"), "{error}");
    assert!(error.site().is_some_and(|site| site.file().ends_with("fields.rs")));
    let error = Field::open(folder.path().join("no/such.npy")).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Io);
    assert!(error.message().contains("no/such.npy") && error.message().contains("No such file"), "{error}");
    let error = Field::open(folder.path()).unwrap_err();
    assert!(error.message().contains("not a file"), "{error}");
    Ok(())
}

/// Makes all ranks save their field, each to the path of its rank. Returns the error of each rank.
fn errors_of(
    ranks: usize,
    global: impl Fn(usize) -> [usize; 2] + Sync,
    path: impl Fn(usize) -> PathBuf + Sync,
) -> Result<Vec<(ErrorClass, String)>> {
    fencepost::ranks(ranks).collect(|world| {
        let block = Block::new(world, global(world.rank()))?;
        let error = Field::save(world, &block, &own(&block), path(world.rank())).expect_err("it must fail");
        assert!(error.site().is_some_and(|site| site.file().ends_with("fields.rs")), "{error}");
        assert_eq!(error.rank(), Some(world.rank()));
        world.barrier()?; // the world goes on
        Ok((error.class(), error.message().to_owned()))
    })
}

/// Checks that `rank` has an error with these words, and that the other ranks report this error as
/// one of `rank`.
fn is_of(rank: usize, errors: &[(ErrorClass, String)], class: ErrorClass, words: &[&str]) {
    let own = &errors[rank].1;
    assert!(words.iter().all(|word| own.contains(word)), "{own}");
    for (other, error) in errors.iter().enumerate() {
        let message = if other == rank {
            own.clone()
        } else {
            format!("the field could not be saved: rank {rank}: {own}")
        };
        assert_eq!(*error, (class, message), "rank {other}");
    }
}

#[test]
fn all_ranks_fail_if_one_does_and_the_old_file_stays() -> Result<()> {
    let (folder, path) = in_folder("field.npy");
    fs::write(&path, "old")?;
    let array = |_| [8, 8];
    let at = |_| path.clone();

    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    let errors = errors_of(4, array, |rank| if rank == 2 { elsewhere.join("field.npy") } else { at(0) })?;
    is_of(2, &errors, ErrorClass::Io, &["rank 2 does not see it", "absolute path"]);

    let errors = errors_of(4, array, |_| folder.path().join("no/such/field.npy"))?;
    is_of(0, &errors, ErrorClass::Io, &["no/such/field.npy", "No such file or directory"]);

    let errors = errors_of(3, array, |rank| if rank == 1 { folder.path().into() } else { at(0) })?;
    is_of(1, &errors, ErrorClass::Arg, &["it names a folder"]);

    let errors = errors_of(4, |rank| if rank == 3 { [8, 9] } else { [8, 8] }, at)?;
    is_of(
        3,
        &errors,
        ErrorClass::Arg,
        &["rank 0 saves an array of [8, 8] cells", "rank 3 saves an array of [8, 9]"],
    );

    let errors = errors_of(2, array, |rank| path.with_extension(["npy", "dat"][rank]))?;
    is_of(1, &errors, ErrorClass::Arg, &["\"field.dat\""]);

    let errors = fencepost::ranks(3).collect(|world| {
        let block = Block::at([0, 2, 2][world.rank()], 3, [8, 8])?;
        let error = Field::save(world, &block, &own(&block), &path).unwrap_err();
        Ok((error.class(), error.message().to_owned()))
    })?;
    is_of(1, &errors, ErrorClass::Arg, &["that of rank 2 of 3, and this is rank 1 of 3"]);

    let errors = fencepost::ranks(3).collect(|world| {
        let block = Block::new(world, [8, 8])?.halo(1)?;
        let cells = vec![0_u8; block.len() - world.rank() / 2];
        let error = Field::save(world, &block, &cells, &path).unwrap_err();
        Ok((error.class(), error.message().to_owned()))
    })?;
    is_of(2, &errors, ErrorClass::Size, &["give a slice of `block.len()` elements"]);

    assert_eq!(fs::read(&path)?, b"old");
    assert_eq!(fs::read_dir(folder.path())?.count(), 2, "no temporary file is left");
    Ok(())
}

/// The test runs itself again, in a process whose files may have at most 4 KiB.
#[test]
fn a_file_that_has_no_room_leaves_the_old_one() -> Result<()> {
    if let Some(path) = std::env::var_os("FENCEPOST_TEST_BOUNDED").map(PathBuf::from) {
        let errors = errors_of(4, |_| [64, 64], |_| path.clone())?;
        is_of(0, &errors, ErrorClass::Io, &["a file of 32896 bytes cannot be written", "File too large"]);
        return Ok(());
    }
    let (folder, path) = in_folder("field.npy");
    fs::write(&path, "old")?;
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\"";
    let mut child = std::process::Command::new("sh");
    child
        .args(["-c", script])
        .arg(std::env::current_exe()?)
        .arg("fields::a_file_that_has_no_room_leaves_the_old_one");
    let output = child.env("FENCEPOST_TEST_BOUNDED", &path).output()?;
    let printed = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success() && printed.contains("1 passed"), "{}: {printed}", output.status);
    assert_eq!(fs::read(&path)?, b"old");
    assert_eq!(fs::read_dir(folder.path())?.count(), 1, "no temporary file is left");
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_written_is_named() -> Result<()> {
    // Root can write to every folder, except those of the system itself.
    let path = Path::new("/proc/field.npy");
    let errors = errors_of(3, |_| [8, 8], |_| path.into())?;
    is_of(0, &errors, ErrorClass::Io, &["/proc/field.npy", "cannot be created in its folder"]);
    Ok(())
}

#[test]
fn an_old_file_is_replaced_and_a_relative_path_is_one_of_the_current_folder() -> Result<()> {
    let (folder, path) = in_folder("field.npy");
    for rows in [9, 4] {
        fencepost::ranks(4).run(|world| {
            let block = Block::new(world, [rows, 5])?;
            Field::save(world, &block, &own(&block), &path)
        })?;
        assert_eq!(Field::open(&path)?.shape(), [rows, 5]);
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), 1);
    // The path has no folder.
    let name = format!("field-{}.npy", std::process::id());
    fencepost::ranks(2).run(|world| {
        let block = Block::new(world, [4, 5])?;
        Field::save(world, &block, &own(&block), &name)
    })?;
    assert_eq!(load::<f64, 2>(Path::new(&name), [4, 5])?.len(), 20);
    Ok(fs::remove_file(&name)?)
}
