//! NumPy reads files that ranks have saved, and ranks read files that NumPy has saved. The tests
//! are left out if `python3` has no NumPy.

use fencepost::grid::Block;
use fencepost::snapshots::Field;
use fencepost::{Element, Result};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Runs a script in a folder. Returns its output, or `None` if there is no NumPy.
fn python(script: &str, folder: &Path) -> Option<String> {
    let run = |script: &str| Command::new("python3").args(["-c", script]).current_dir(folder).output();
    if !run("import numpy").is_ok_and(|output| output.status.success()) {
        // The test harness would capture the output of `eprintln!`.
        let printed = writeln!(std::io::stderr(), "  left out: NumPy: `python3 -c 'import numpy'` fails");
        printed.expect("standard error is open");
        return None;
    }
    let output = run(script).expect("it has just run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).expect("it prints text"))
}

#[test]
fn numpy_reads_the_same_bits() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let at = |name: &str| folder.path().join(name);
    fencepost::ranks(4).run(|world| {
        let plane = Block::new(world, [13, 17])?.halo(1)?;
        let mut cells = vec![f64::NAN; plane.len()];
        plane.fill(&mut cells, |[i, j]| 0.1 * (100 * i + j) as f64);
        Field::save(world, &plane, &cells, at("plane.npy"))?;
        let space = Block::new(world, [5, 6, 7])?;
        let mut cells = vec![0_u16; space.len()];
        space.fill(&mut cells, |[i, j, k]| (100 * i + 10 * j + k) as u16);
        Field::save(world, &space, &cells, at("space.npy"))?;
        let line = Block::new(world, [9])?;
        let mut cells = vec![[0_i32; 3]; line.len()];
        line.fill(&mut cells, |[i]| [i as i32, -1, 7]);
        Field::save(world, &line, &cells, at("line.npy"))
    })?;
    let script = "
import numpy as np
plane = np.load('plane.npy', mmap_mode='r')
i, j = np.indices((13, 17))
assert plane.dtype.str == '<f8' and plane.flags.c_contiguous, plane.dtype
assert (plane.view('u8') == (0.1 * (100.0 * i + j)).view('u8')).all()
space = np.load('space.npy', mmap_mode='r')
i, j, k = np.indices((5, 6, 7))
assert space.dtype.str == '<u2' and (space == 100 * i + 10 * j + k).all()
line = np.load('line.npy')
assert line.dtype.str == '|V12', line.dtype
line = line.view([('at', '<i4'), ('one', '<i4'), ('seven', '<i4')])
assert (line['at'] == np.arange(9)).all() and (line['one'] == -1).all() and (line['seven'] == 7).all()
print('equal')
";
    if let Some(printed) = python(script, folder.path()) {
        assert_eq!(printed, "equal\n");
    }
    Ok(())
}

/// Reads an array of 40 x 60 elements with four ranks. Each element must have the value that
/// `value` returns.
fn holds<T: Element + PartialEq>(path: &Path, value: impl Fn(usize) -> T + Sync) -> Result<()> {
    fencepost::ranks(4).run(|world| {
        let block = Block::new(world, [40, 60])?.halo(2)?;
        let mut cells = vec![T::zeroed(); block.len()];
        Field::open(path)?.load(&block, &mut cells)?;
        let mut expected = vec![T::zeroed(); block.len()];
        block.fill(&mut expected, |[i, j]| value(60 * i + j));
        let equal = block.rows().all(|row| row.of(&cells) == row.of(&expected));
        assert!(equal, "{}: rank {}", path.display(), world.rank());
        Ok(())
    })
}

#[test]
fn arrays_of_numpy_are_read_in_both_orders_and_each_type() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let script = "
import numpy as np
for descr in ['<f8', '>f8', '<f4', '>f4', '<i8', '>i8', '<i4', '<i2', '|i1', '<u8', '<u4', '>u2', '|u1']:
    cells = (np.arange(2400) % 100).astype(descr).reshape(40, 60)
    name = descr.translate(str.maketrans('<>|', 'lbn'))
    np.save(name + '-c.npy', cells)
    np.save(name + '-f.npy', np.asfortranarray(cells))
cells = np.arange(2400, dtype='<f8').reshape(40, 60)
for version in [(1, 0), (2, 0), (3, 0)]:
    with open('version-%d.npy' % version[0], 'wb') as file:
        np.lib.format.write_array(file, cells, version)
np.save('structure.npy', np.zeros((40, 60), dtype=[('a', '<f8'), ('b', '|V4', (2, 2))]))
np.save('text.npy', np.full((40, 60), 'text'))
np.save('dates.npy', np.full((40, 60), np.datetime64('2020-01-01')))
np.save('objects.npy', np.full((40, 60), None), allow_pickle=True)
np.save('complex.npy', np.full((40, 60), 1j))
np.save('scalar.npy', np.float64(1))
np.save('empty.npy', np.zeros((0, 60)))
print('saved')
";
    if python(script, folder.path()).is_none() {
        return Ok(());
    }
    let at = |name: &str| folder.path().join(name);
    for order in ["c", "f"] {
        for name in ["lf8", "bf8", "lf4", "bf4", "li4", "li2", "ni1", "lu4", "bu2", "nu1"] {
            holds::<f64>(&at(&format!("{name}-{order}.npy")), |at| (at % 100) as f64)?;
        }
        for name in ["li8", "bi8", "li4", "li2", "ni1", "lu4", "bu2", "nu1"] {
            holds::<i64>(&at(&format!("{name}-{order}.npy")), |at| (at % 100) as i64)?;
        }
        for name in ["lu8", "lu4", "bu2", "nu1"] {
            holds::<u64>(&at(&format!("{name}-{order}.npy")), |at| (at % 100) as u64)?;
        }
        holds::<u16>(&at(&format!("bu2-{order}.npy")), |at| (at % 100) as u16)?;
        holds::<i8>(&at(&format!("ni1-{order}.npy")), |at| (at % 100) as i8)?;
        holds::<f32>(&at(&format!("lf4-{order}.npy")), |at| (at % 100) as f32)?;
    }
    for version in 1..=3 {
        holds::<f64>(&at(&format!("version-{version}.npy")), |at| at as f64)?;
    }
    for (name, elements) in [
        ("structure", "('a', '<f8')"),
        ("text", "'<U4'"),
        ("dates", "'<M8[D]'"),
        ("objects", "'|O'"),
        ("complex", "'<c16'"),
    ] {
        let error = Field::open(at(&format!("{name}.npy"))).unwrap_err();
        assert!(
            error.message().contains(&format!("elements are '{elements}"))
                || error.message().contains(elements),
            "{error}"
        );
    }
    assert_eq!(Field::open(at("scalar.npy"))?.shape(), [0_usize; 0]);
    assert_eq!(Field::open(at("empty.npy"))?.shape(), [0, 60]);
    Ok(())
}
