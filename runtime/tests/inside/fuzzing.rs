//! The functions that fuzzers call with arbitrary bytes.
//!
//! Each function must return without a panic, must not touch memory outside its windows, and must
//! not allocate much memory. `fuzz/` calls the functions from libFuzzer, and this package's tests
//! call them with bytes that were changed in every small way.

use crate::collect::lent::Lent;
use crate::collect::limits::most_answered;
use crate::fence::remote;
use crate::locks::state::hints::Hints;
use crate::locks::state::request::{Outcome, read_answer};
use crate::locks::state::service::{Served, Service};
use crate::locks::state::visit::Part;
use crate::locks::state::words::{Layout, Words};
use crate::posts::state::lendings::{Asked, Lending, Lendings};
use crate::state::registry::{Registry, new_world};
use crate::state::transport_kind::TransportKind;
use crate::state::window::Window;
use crate::state::world::World;
use fencepost_planner::element::{ElementKind, ElementType, Scalar};
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_transport::SimConfig;
use fencepost_transport::bytes::Reader;
use std::cell::RefCell;
use std::sync::Arc;

/// The number of elements of each window.
const LEN: usize = 24;

/// The number of guard bytes on each side of a window's memory.
const GUARD: usize = 4096;

/// The value of the bytes around a window.
const FILL: u8 = 0xa5;

/// The receiver of the frames: a world of one rank and its windows.
struct Target {
    words: Window<u64>,
    bytes: Window<u8>,
    wide: Window<[u32; 3]>,
    _world: World,
}

impl Target {
    fn new() -> Option<Self> {
        let kind = TransportKind::Sim(SimConfig { max_delay: 0, ..SimConfig::default() });
        let end = kind.ends(1).ok()?.pop()?;
        let world = World::new(
            (new_world(), 1),
            end,
            Arc::new(Registry::default()),
            kind,
            Machine::default(),
            (Mode::Auto, None),
        );
        let (words, bytes, wide) =
            (world.window(LEN).ok()?, world.window(LEN).ok()?, world.window(LEN).ok()?);
        Some(Self { words, bytes, wide, _world: world })
    }
}

thread_local! {
    static TARGET: RefCell<Option<Target>> = RefCell::new(Target::new());
}

/// Reads frames with operations of dynamic epochs, as another rank sends them, and returns the
/// number of accepted frames.
///
/// The first byte selects the window. A byte of flags and two bytes of length precede the bytes of
/// each frame. The lowest flag is set for a frame that was sent early, and clear for a frame that
/// ends an epoch.
pub fn operations(data: &[u8]) -> usize {
    TARGET.with_borrow_mut(|target| {
        let Some(target) = target else { return 0 };
        let Some((&which, frames)) = data.split_first() else { return 0 };
        let window = match which % 3 {
            0 => &**target.words.core(),
            1 => &**target.bytes.core(),
            _ => &**target.wide.core(),
        };
        let size = window.element.size as usize;
        let mut room = vec![u128::from_ne_bytes([FILL; 16]); (2 * GUARD + LEN * size).div_ceil(16)];
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut room);
        remote::forget_all(window);
        let mut believed = 0;
        for_each_frame(frames, |early, frame| {
            let taken = remote::trial(window, early, frame, &mut room[GUARD..GUARD + LEN * size]);
            let guard = room[..GUARD].iter().chain(&room[GUARD + LEN * size..]);
            assert!(guard.copied().all(|byte| byte == FILL), "a byte outside the window was written");
            believed += usize::from(taken.is_some());
            assert!(taken.is_none_or(|kept| kept <= LEN * size * 256 + (16 << 20) + 64 * data.len()));
        });
        believed
    })
}

/// Lets the attendant of one of four ranks serve requests of these ranks, and returns the number of
/// requests that were carried out.
///
/// The lowest bits of the first byte choose the elements and the hints of the window. A byte of
/// flags and two bytes of length precede each request. The lowest bit of the flags is set for a
/// request for the gets of an access, and clear for a request of a lock. The next two bits are the
/// requesting rank, and the fourth bit changes the number that the request should have.
pub fn requests(data: &[u8]) -> usize {
    const RANKS: usize = 4;
    const WINDOW: u32 = 5;
    let Some((&which, mut frames)) = data.split_first() else { return 0 };
    let element = match which % 4 {
        0 => ElementType::scalar(Scalar::I64),
        1 => ElementType::scalar(Scalar::U8),
        2 => ElementType::opaque(12),
        _ => ElementType { size: 16, kind: ElementKind::ValueAt(Scalar::F64, Scalar::U64) },
    };
    let hints = match which >> 2 & 3 {
        0 => Hints::new(),
        1 => Hints::new().disjoint(),
        2 => Hints::new().sole_origin(),
        _ => Hints::new().regions(3),
    };
    let size = element.size as usize;
    let mut room = vec![u128::from_ne_bytes([FILL; 16]); (2 * GUARD + LEN * size).div_ceil(16)];
    let layout = Layout::new(RANKS, LEN, element, hints);
    let mut words = vec![0_u64; layout.words()];
    let base = room.as_mut_ptr().cast::<u8>().wrapping_add(GUARD);
    let (service, lendings) = (Service::default(), Lendings::default());
    let part = Part { base, len: LEN, element };
    // SAFETY: `words` has the layout's number of words. The words and the part stay until this
    // function returns, and no other code touches them until then.
    unsafe {
        service.serve(WINDOW, Served::new(0, part, Words::new(words.as_mut_ptr(), layout)));
        let sources = (0..RANKS).map(|rank| (rank, 0)).collect();
        lendings.expose(WINDOW, Lending::new(base, (size, LEN), Lent::Whole, sources));
    }
    let (mut asked, mut done) = ([0_u64; RANKS], 0);
    while let Some((&[kind, low, high], rest)) = frames.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (request, from) = (&rest[..len], usize::from(kind >> 1 & 3));
        frames = &rest[len..];
        let most = most_answered(LEN, size) + 1024;
        if kind & 1 == 1 {
            let mut request = Reader(request);
            let Some(asked) = request.take::<Asked>() else { continue };
            let asked = Asked { window: WINDOW, ..asked };
            let elements = lendings.elements(from, u32::from(kind >> 3 & 1), asked, request.0);
            assert!(elements.as_ref().is_ok_and(|bytes| bytes.len() <= most) || elements.is_err());
            done += usize::from(elements.is_ok());
        } else {
            asked[from] += 1;
            let effects = service.ask(from, WINDOW, asked[from] + u64::from(kind >> 3 & 1), request);
            assert!(effects.answers.len() <= RANKS + 1, "one answer for each that has asked");
            for (_, _, _, answer) in effects.answers {
                let (outcome, _, found) = read_answer(&answer).expect("what origins read");
                assert!(found.len() <= most);
                done += usize::from(outcome == Outcome::Done);
            }
        }
    }
    drop((service.forget(WINDOW, false), lendings.take_back(WINDOW)));
    let room: &[u8] = bytemuck::cast_slice(&room);
    let guard = room[..GUARD].iter().chain(&room[GUARD + LEN * size..]);
    assert!(guard.copied().all(|byte| byte == FILL), "a byte outside the window was written");
    done
}

fn for_each_frame(mut bytes: &[u8], mut take: impl FnMut(bool, &[u8])) {
    while let Some((&[kind, low, high], rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        take(kind & 1 == 1, &rest[..len]);
        bytes = &rest[len..];
    }
}

/// Encodes frames as [`operations`] reads them.
#[cfg(test)]
pub(crate) fn input<'a>(which: u8, frames: impl IntoIterator<Item = (bool, &'a [u8])>) -> Vec<u8> {
    let mut bytes = vec![which];
    for (early, frame) in frames {
        bytes.push(u8::from(early));
        bytes.extend((frame.len() as u16).to_le_bytes());
        bytes.extend(frame);
    }
    bytes
}
