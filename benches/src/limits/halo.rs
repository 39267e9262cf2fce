//! The exchange of a halo between two threads, each with a block of its own. Each thread sends a
//! row, a column, or a plane.

use super::team::{Words, team};
use std::time::Duration;

/// The elements that are moved: `outer` times `inner` elements, with a stride for each of the two
/// loops.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    outer: usize,
    inner: usize,
    outer_stride: usize,
    inner_stride: usize,
    /// The first element that each thread sends.
    from: [usize; 2],
    /// The first element of each thread's halo. The halo is next to the elements that the thread
    /// sends, so most elements of the halo are in the same cache lines.
    halo: [usize; 2],
    /// The number of elements of a block.
    len: usize,
}

impl Face {
    fn new(shape: [usize; 4], origin: usize, layers: usize, unit: usize, len: usize) -> Self {
        let [outer, inner, outer_stride, inner_stride] = shape;
        let from = [origin + layers * unit, origin + unit];
        let halo = [origin + (layers + 1) * unit, origin];
        Self { outer, inner, outer_stride, inner_stride, from, halo, len }
    }

    /// Returns the face between the upper and the lower half of an `n` by `n` grid: a row. One halo
    /// cell surrounds each half.
    pub fn row(n: usize) -> Self {
        let width = n + 2;
        Self::new([1, n, 0, 1], 1, n / 2, width, (n / 2 + 2) * width)
    }

    /// Returns the face between the left and the right half of an `n` by `n` grid: a column.
    pub fn column(n: usize) -> Self {
        let width = n / 2 + 2;
        Self::new([1, n, 0, width], width, n / 2, 1, (n + 2) * width)
    }

    /// Returns the face between the halves of an `n` by `n` by `n` grid along the last axis: a
    /// plane.
    pub fn plane(n: usize) -> Self {
        let width = n / 2 + 2;
        let plane = (n + 2) * width;
        Self::new([n, n, plane, width], plane + width, n / 2, 1, (n + 2) * plane)
    }

    /// Returns the face of blocks of `2 * n` elements: the first half of each block goes to the
    /// second half of the other block.
    pub fn section(n: usize) -> Self {
        Self { outer: 1, inner: n, outer_stride: 0, inner_stride: 1, from: [0, 0], halo: [n, n], len: 2 * n }
    }

    /// Returns the number of elements that each thread sends.
    pub fn elements(&self) -> usize {
        self.outer * self.inner
    }

    /// Returns the positions of the elements that this thread sends, one for each cache line.
    pub fn sent(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        self.lines(self.from[me])
    }

    /// Returns the positions of the elements that this thread receives, one for each cache line.
    pub fn came(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        self.lines(self.halo[me])
    }

    fn lines(&self, first: usize) -> impl Iterator<Item = usize> + use<> {
        let Self { outer, inner, outer_stride, inner_stride, .. } = *self;
        let step = if inner_stride == 1 { 8 } else { 1 };
        (0..outer).flat_map(move |i| {
            (0..inner).step_by(step).map(move |j| first + i * outer_stride + j * inner_stride)
        })
    }

    /// # Safety
    /// `from` and `to` point to blocks of this face's size. The blocks do not overlap, and no other
    /// thread accesses the face in either of them.
    #[inline(always)]
    unsafe fn copy(&self, from: *const u64, to: *mut u64) {
        for i in 0..self.outer {
            // SAFETY: the face is inside both blocks.
            unsafe {
                let (p, q) = (from.add(i * self.outer_stride), to.add(i * self.outer_stride));
                if self.inner_stride == 1 {
                    p.copy_to_nonoverlapping(q, self.inner);
                } else {
                    for j in 0..self.inner {
                        q.add(j * self.inner_stride).write(p.add(j * self.inner_stride).read());
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Face::copy`]. `buffer` has room for this face's elements.
    #[inline(always)]
    unsafe fn pack(&self, from: *const u64, buffer: *mut u64) {
        for i in 0..self.outer {
            // SAFETY: the face is inside the block, and the same number of elements is inside the
            // buffer.
            unsafe {
                let (p, q) = (from.add(i * self.outer_stride), buffer.add(i * self.inner));
                if self.inner_stride == 1 {
                    p.copy_to_nonoverlapping(q, self.inner);
                } else {
                    for j in 0..self.inner {
                        q.add(j).write(p.add(j * self.inner_stride).read());
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Face::copy`]. `buffer` contains this face's elements.
    #[inline(always)]
    unsafe fn unpack(&self, buffer: *const u64, to: *mut u64) {
        for i in 0..self.outer {
            // SAFETY: the face is inside the block, and the same number of elements is inside the
            // buffer.
            unsafe {
                let (p, q) = (buffer.add(i * self.inner), to.add(i * self.outer_stride));
                if self.inner_stride == 1 {
                    p.copy_to_nonoverlapping(q, self.inner);
                } else {
                    for j in 0..self.inner {
                        q.add(j * self.inner_stride).write(p.add(j).read());
                    }
                }
            }
        }
    }
}

/// Reads these words.
pub fn look(words: impl Iterator<Item = u64>) {
    std::hint::black_box(words.fold(0, u64::wrapping_add));
}

/// Two blocks, and for each thread two buffers that take turns.
pub struct Halo {
    face: Face,
    blocks: [Words; 2],
    buffers: [[Words; 2]; 2],
}

impl Halo {
    /// Creates blocks of zeros.
    pub fn new(face: Face) -> Self {
        let buffer = || Words::new(face.elements());
        Self {
            face,
            blocks: [Words::new(face.len), Words::new(face.len)],
            buffers: [[buffer(), buffer()], [buffer(), buffer()]],
        }
    }

    /// Writes each thread's edge into the halo of the other thread, and then waits at a barrier.
    pub fn direct(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let face = self.face; // its own copy, which no store can change
            let from = self.blocks[beat.me].start().wrapping_add(face.from[beat.me]);
            let to = self.blocks[1 - beat.me].start().wrapping_add(face.halo[1 - beat.me]);
            for _ in 0..iterations {
                // SAFETY: edges are only read, and each halo is written by one thread.
                unsafe { face.copy(from, to) };
                beat.wait();
            }
        })
    }

    /// Does the same as `direct`, but each iteration writes new values, and the receiving thread
    /// reads them.
    ///
    /// One element of each cache line is written and read, so that the lines change their owner.
    /// Because of a second barrier, no thread writes again before the other thread has read the
    /// values.
    pub fn fresh(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let face = self.face; // its own copy, which no store can change
            let block = self.blocks[beat.me].start();
            let from = block.wrapping_add(face.from[beat.me]);
            let to = self.blocks[1 - beat.me].start().wrapping_add(face.halo[1 - beat.me]);
            for k in 0..iterations {
                // SAFETY: until the barrier, only this thread accesses its own edge and the halo of
                // the other thread.
                unsafe {
                    face.sent(beat.me).for_each(|at| block.add(at).write(k));
                    face.copy(from, to);
                }
                beat.wait();
                // SAFETY: the other thread writes here only after the next barrier.
                look(face.came(beat.me).map(|at| unsafe { block.add(at).read() }));
                beat.wait();
            }
        })
    }

    /// Does the same as `fresh`, with packed elements. Because two buffers take turns, one barrier
    /// is enough.
    pub fn fresh_packed(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let face = self.face; // its own copy, which no store can change
            let block = self.blocks[beat.me].start();
            let (from, to) = (block.wrapping_add(face.from[beat.me]), block.wrapping_add(face.halo[beat.me]));
            for k in 0..iterations {
                let turn = (beat.beats() & 1) as usize;
                let (mine, others) = (&self.buffers[beat.me][turn], &self.buffers[1 - beat.me][turn]);
                // SAFETY: as in `packed`.
                unsafe {
                    face.sent(beat.me).for_each(|at| block.add(at).write(k));
                    face.pack(from, mine.start());
                }
                beat.wait();
                // SAFETY: as in `packed`. The block belongs to this thread.
                unsafe {
                    face.unpack(others.start(), to);
                    look(face.came(beat.me).map(|at| block.add(at).read()));
                }
            }
        })
    }

    /// Packs each thread's edge, waits at a barrier, and unpacks the edge of the other thread.
    /// Because two buffers take turns, one barrier is enough.
    pub fn packed(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let face = self.face; // its own copy, which no store can change
            let block = self.blocks[beat.me].start();
            let from = block.wrapping_add(face.from[beat.me]);
            let to = block.wrapping_add(face.halo[beat.me]);
            for _ in 0..iterations {
                let turn = (beat.beats() & 1) as usize;
                let (mine, others) = (&self.buffers[beat.me][turn], &self.buffers[1 - beat.me][turn]);
                // SAFETY: the block belongs to this thread. The other thread read the buffer before
                // the last barrier, which this thread has passed.
                unsafe { face.pack(from, mine.start()) };
                beat.wait();
                // SAFETY: the other thread wrote the buffer before this barrier, and writes it
                // again only after the next barrier.
                unsafe { face.unpack(others.start(), to) };
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_leave_the_edge_of_one_in_the_halo_of_the_other() {
        for face in [Face::row(8), Face::column(8), Face::plane(4), Face::section(8)] {
            let run = |way: fn(&Halo, u64) -> Duration| {
                let mut halo = Halo::new(face);
                for (thread, block) in halo.blocks.iter().enumerate() {
                    for at in 0..face.len {
                        // SAFETY: the element is inside the block, and no team runs yet.
                        unsafe { block.start().add(at).write((1000 * thread + at) as u64) };
                    }
                }
                way(&halo, 3);
                halo.blocks.each_mut().map(|block| block.to_vec())
            };
            let blocks = run(Halo::direct);
            assert!(blocks == run(Halo::packed), "{face:?}");
            let fresh = run(Halo::fresh);
            assert!(fresh == run(Halo::fresh_packed), "{face:?}");
            for me in [0, 1] {
                let (sent, came) = (face.sent(me), face.came(1 - me));
                assert!(sent.zip(came).all(|(sent, came)| fresh[me][sent] == 2 && fresh[1 - me][came] == 2));
            }
            assert_eq!(blocks[1][face.halo[1]], face.from[0] as u64);
            assert_eq!(blocks[0][face.halo[0]], 1000 + face.from[1] as u64);
            let moved: usize = blocks.iter().flatten().filter(|&&word| word != 0).count();
            assert!(moved >= 2 * face.elements());
        }
    }
}
