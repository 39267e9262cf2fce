//! What a rank does by itself before its letter: it sees what is wrong, and reads the sections that are sources.

use super::Call;
use crate::call::WindowKey;
use crate::kernel;
use crate::outbox::{Outbox, WideSource};
use crate::pending::{Into as Landing, Pending};
use crate::transport::Transport;
use crate::window::WindowCore;
use crate::wire;
use crate::world::WorldCore;
use fencepost_planner::{Class, Result};

/// What one rank can see is wrong; and sections that are sources are read.
pub(super) fn prepare(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
    for (i, window) in windows.iter().enumerate() {
        if window.key.world != world.id {
            return Err(call.error(world, Class::Win, "a window of another world cannot be fenced here"));
        }
        if windows[..i].iter().any(|other| other.key == window.key) {
            return Err(call.error(world, Class::Win, "a window is named twice in one fence"));
        }
    }
    for window in windows {
        let set = window.set.get();
        for target in 0..world.size {
            // SAFETY: the set being filled is touched by its owner only.
            let outbox = unsafe { &mut *window.region.outbox(set, target) };
            if outbox.sections > 0 {
                read_sections(outbox, windows, call, world)?;
            }
        }
        for get in &window.pending.borrow().wide {
            if let Landing::Section(key, _) = &get.landing {
                find(windows, *key).ok_or_else(|| call.not_in_fence(world, *key, get.site))?;
            }
        }
        let pending = &mut *window.pending.borrow_mut();
        let size = window.element.size as usize;
        let bytes = pending.elements().and_then(|elements| elements.checked_mul(size));
        pending.staged.clear();
        if bytes.is_none_or(|bytes| pending.staged.try_reserve(bytes).is_err()) {
            return Err(call.error(world, Class::Size, "there is no memory for all that this epoch gets"));
        }
        if window.apart && bytes > Some(wire::most_answered(0, 0)) {
            answerable(window, pending, call)?;
        }
    }
    Ok(())
}

/// Whether ranks whose memory is not reached will answer all that is asked of them.
fn answerable(window: &WindowCore, pending: &Pending, call: &Call) -> Result<()> {
    let (world, size) = (&window.world, window.element.size as usize);
    let endpoint = world.endpoint.borrow();
    let mut asked = vec![0usize; world.size];
    pending.gets.iter().for_each(|get| asked[get.target as usize] += pending.count(get) * size);
    for (target, (peer, &bytes)) in window.peers.iter().zip(&asked).enumerate() {
        let most = wire::most_answered(peer.len, size);
        if bytes > most && target != world.rank && !endpoint.reaches(target) {
            let message = format!(
                "this epoch gets {bytes} bytes from rank {target}, whose memory is not reached: at most {most} are sent, 256 times all of its window"
            );
            return Err(call.error(world, Class::Size, message));
        }
    }
    Ok(())
}

fn read_sections(outbox: &mut Outbox, windows: &[&WindowCore], call: &Call, world: &WorldCore) -> Result<()> {
    for index in 0..outbox.wide.len() {
        let WideSource::Section(key, section) = outbox.wide[index].source.clone() else { continue };
        let Some(source) = find(windows, key) else { return Err(call.not_in_fence(world, key, call.site)) };
        let size = source.element.size as usize;
        let at = section
            .size()
            .checked_mul(size)
            .filter(|&bytes| outbox.bytes.try_reserve(bytes.saturating_add(8)).is_ok())
            .map(|bytes| outbox.room(bytes))
            .ok_or_else(|| {
                call.error(world, Class::Size, "there is no memory for all that this epoch puts")
            })?;
        // SAFETY: the section was checked against this rank's part of the window, which this rank is fencing; nobody
        // else writes it before this rank's letter is out.
        unsafe { kernel::pack(source.region.base(), &section, size, outbox.bytes[at..].as_mut_ptr()) };
        outbox.wide[index].source = WideSource::Bytes(at);
    }
    outbox.sections = 0;
    Ok(())
}

pub(super) fn find<'w>(windows: &[&'w WindowCore], key: WindowKey) -> Option<&'w WindowCore> {
    windows.iter().find(|window| window.key == key).copied()
}
