//! Cases that resemble programs with conflicts. Some of them have one.

use super::Case;
use fencepost::prelude::*;

/// Returns the element of a cell in a window of 36 elements, which holds a block of four by four
/// cells with a halo of one cell.
fn cell(row: usize, column: usize) -> usize {
    6 * row + column
}

/// Returns the rank that is `rows` rows and `columns` columns from rank `me` on a torus of two by
/// two ranks.
fn rank_at(me: usize, rows: usize, columns: usize) -> usize {
    (me / 2 + rows) % 2 * 2 + (me + columns) % 2
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("401-halo-whose-faces-share-corners-no", |world| {
        // Each corner cell is read three times, for two faces and for a corner. Each copy is
        // written to a different cell of a different halo.
        let mut u = world.window::<u64>(36)?;
        let me = world.rank();
        let column = |at| Datatype::nest(cell(1, at) as i64, &[(4, 6)], 1).unwrap();
        u.put(cell(1, 1)..cell(1, 5)).to(rank_at(me, 1, 0), cell(5, 1))?;
        u.put(cell(4, 1)..cell(4, 5)).to(rank_at(me, 1, 0), cell(0, 1))?;
        u.put(column(1)).to(rank_at(me, 0, 1), column(5))?;
        u.put(column(4)).to(rank_at(me, 0, 1), column(0))?;
        for (from, to) in [((1, 1), (5, 5)), ((1, 4), (5, 0)), ((4, 1), (0, 5)), ((4, 4), (0, 0))] {
            let element = cell(from.0, from.1);
            u.put(element..element + 1).to(rank_at(me, 1, 1), cell(to.0, to.1))?;
        }
        u.fence()
    }),
    ("402-halo-whose-faces-meet-in-a-corner-yes", |world| {
        // Rows and columns include their corners, so two operations write the corner of the halo.
        let mut u = world.window::<u64>(36)?;
        let me = world.rank();
        let column = |at| Datatype::nest(at as i64, &[(6, 6)], 1).unwrap();
        let values = [me as u64; 6];
        if me == 1 {
            u.put(values).to(rank_at(me, 0, 1), column(5))?; // CONFLICT
        }
        if me == 2 {
            u.put(values).to(rank_at(me, 1, 0), cell(5, 0))?; // CONFLICT
        }
        u.fence()
    }),
    ("403-halo-in-two-steps-no", |world| {
        let mut u = world.window::<u64>(36)?;
        let me = world.rank();
        u.put(cell(1, 1)..cell(1, 5)).to(rank_at(me, 1, 0), cell(5, 1))?;
        u.put(cell(4, 1)..cell(4, 5)).to(rank_at(me, 1, 0), cell(0, 1))?;
        u.fence()?;
        let column = |at| Datatype::nest(at as i64, &[(6, 6)], 1).unwrap();
        u.put(column(1)).to(rank_at(me, 0, 1), column(5))?;
        u.put(column(4)).to(rank_at(me, 0, 1), column(0))?;
        u.fence()
    }),
    ("404-ring-no", |world| {
        let mut u = world.window::<u64>(2)?;
        for _ in 0..5 {
            u.put(0..1).to((world.rank() + 1) % 4, 1)?;
            u.fence()?;
            u.swap(0, 1);
        }
        Ok(())
    }),
    ("405-transpose-no", |world| {
        let mut u = world.window::<u64>(32)?;
        let me = world.rank();
        for to in 0..4 {
            u.put(Datatype::nest(to as i64, &[(4, 4)], 1).unwrap()).to(to, 16 + 4 * me)?;
        }
        u.fence()
    }),
    ("406-transpose-in-place-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let me = world.rank();
        for to in 0..4 {
            u.put(4 * to..4 * to + 4).to(to, 4 * me)?; // CONFLICT
        }
        u.fence()
    }),
    ("407-histogram-no", |world| {
        let mut u = world.window::<u32>(64)?;
        for key in 0..500_usize {
            let bin = key * 37 % 256;
            u.accumulate([1], Op::Sum).to(bin / 64, bin % 64)?;
        }
        u.fence()
    }),
    ("408-histogram-that-is-read-yes", |world| {
        let mut u = world.window::<u32>(64)?;
        for key in 0..500_usize {
            let bin = key * 37 % 256;
            u.accumulate([1], Op::Sum).to(bin / 64, bin % 64)?; // CONFLICT
        }
        let mut ended = Ok(());
        if world.rank() == 3 {
            ended = u.fetch(1, 17).map(drop); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("409-odd-and-even-no", |world| {
        let mut u = world.window::<u64>(64)?;
        let me = world.rank();
        let every_fourth = Datatype::nest(me as i64, &[(16, 4)], 1).unwrap();
        for to in 0..4 {
            u.put([1; 16]).to(to, &every_fourth)?;
        }
        u.fence()
    }),
    ("410-buckets-no", |world| {
        let mut u = world.window::<u64>(64)?;
        let me = world.rank();
        for to in 0..4 {
            for at in 0..=to {
                u.put([at as u64]).to(to, 16 * me + at)?;
            }
        }
        u.fence()
    }),
    ("411-a-put-of-a-section-over-itself-no", |world| {
        // The operation reads elements that it also writes. It reads the values that they had when
        // its rank entered the fence (4).
        let mut u = world.window::<u64>(16)?;
        u.put(0..8).to(world.rank(), 4)?;
        u.fence()
    }),
    ("412-reads-of-everything-by-everyone-no", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut v = world.window::<u64>(64)?;
        let all: Vec<_> = (0..4).map(|from| u.fetch(from, 0..16)).collect::<Result<_>>()?;
        v.put(u.section(0..16)).to(0, 16 * world.rank())?;
        world.fence((&mut u, &mut v))?;
        drop(all);
        Ok(())
    }),
    ("413-all-windows-full-no", |world| {
        let mut u = world.window::<u8>(4096)?;
        let me = world.rank();
        u.put([me as u8; 1024]).to((me + 1) % 4, 1024 * me)?;
        drop(u.fetch((me + 1) % 4, 1024 * ((me + 1) % 4)..1024 * ((me + 1) % 4) + 1024)?);
        u.fence()
    }),
];
