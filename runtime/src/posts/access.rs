//! The calls of an origin: start, complete and drop. [`Opened`] contains the operations that were
//! collected since the start.

use crate::check::exposures;
use crate::collect::lent::Lent;
use crate::collect::operation::Site;
use crate::posts::frames::{of_batch, of_failed, short};
use crate::posts::state::batch::{Batch, Collected};
use crate::posts::state::exchange::{Exchange, Opened, Ports, Sent, Target, misfit};
use crate::posts::{gets, look, look_early, send, take_frames, take_lines, waits_for_itself};
use crate::protocol::exchange::wait;
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use fencepost_planner::{Error, ErrorClass, Result, State};
use fencepost_transport::{
    Bytes, COPIED, Channels, Endpoint, Header, Liveness, Loss, Lost, Memory, Topology,
};
use smallvec::SmallVec;

impl Opened {
    /// Returns the operations that are collected for `target`, if `target` is one of the targets.
    #[inline]
    pub(crate) fn batch(&mut self, target: usize) -> Option<&mut Collected> {
        let at = match &self.batches[..] {
            [batch] => (batch.target == target).then_some(0),
            batches => batches.binary_search_by_key(&target, |batch| batch.target).ok(),
        };
        at.map(|at| &mut *self.batches[at])
    }
}

/// Opens an access to these ranks, which are in ascending order. Never waits.
pub(crate) fn start(window: &WindowCore, targets: &[usize], site: Site) -> Result<Box<Opened>> {
    window.is_free("accessed", site)?;
    let ports = window.ports(site)?;
    let exchange = &mut *window.posts.exchange.borrow_mut();
    for &target in targets {
        if let Some(open) = exchange.to.get(target).and_then(|to| to.open) {
            let message = format!(
                "the access to rank {target} that was started at {}:{} is open: complete it before another one is started",
                open.file(),
                open.line()
            );
            return Err(window.error(ErrorClass::RmaSync, message, site));
        }
    }
    let endpoint = &mut *window.world.endpoint.borrow_mut();
    let mut opened = exchange.over.pop().unwrap_or_else(|| Box::new(Opened::new(site)));
    for &target in targets {
        let to = exchange.to.of(target);
        to.reclaim(target, ports.accesses, endpoint, &mut exchange.spare);
        let mut batch = exchange.spare.pop().unwrap_or_else(|| Collected::new(&endpoint.memory()));
        batch.renew(target, to.starts);
        to.starts += 1;
        to.open = Some(site);
        opened.batches.push(batch);
    }
    (opened.number, opened.site) = (exchange.started, site);
    exchange.started += 1;
    exchange.open.push((opened.number, site));
    window.posts.accesses.set(exchange.open.len());
    window.filling.plain.set(false); // so that a fence finds the access
    window.shut_for_access();
    Ok(opened)
}

/// Ends an access: waits for the posts that it needs, carries out its gets, and sends the other
/// operations.
///
/// # Errors
/// As `Access::complete`. The access is not open any more.
pub(crate) fn complete(window: &WindowCore, mut access: Box<Opened>, call: &Call) -> Result<()> {
    let world = &window.world;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.posts.exchange.borrow_mut();
    let result = match short_cut(window, endpoint, exchange, &mut access, call) {
        Some(result) => result,
        None => world.alive().and_then(|()| carry_out(window, endpoint, exchange, &mut access, call)),
    };
    close(window, exchange, access.number);
    if exchange.over.len() < 4 && access.batches.is_empty() {
        exchange.over.push(access);
    }
    result
}

/// Returns a rank for whose post [`complete`] would wait, if there is one.
pub(crate) fn awaited_target(window: &WindowCore, endpoint: &mut Endpoint, access: &Opened) -> Option<usize> {
    let world = &window.world;
    let (true, Ok(ports)) = (world.life.goes_on(), window.ports(access.site)) else { return None };
    let exchange = &mut *window.posts.exchange.borrow_mut();
    let mut is_there = |batch: &&Batch| {
        let needed = needed(batch);
        let to = exchange.to.of(batch.target);
        if to.posts < needed
            && batch.target != world.rank
            && look(window, endpoint, batch.target, to, ports).is_err()
        {
            return true;
        }
        to.posts >= needed || endpoint.lost(batch.target).is_some()
    };
    access.batches.iter().find(|batch| !is_there(batch)).map(|batch| batch.target)
}

/// Returns the number of posts that must have come from the target before this access is sent (16).
#[inline]
fn needed(batch: &Collected) -> u64 {
    batch.number + u64::from(!batch.gets.is_empty())
}

fn close(window: &WindowCore, exchange: &mut Exchange, ended: u64) {
    exchange.open.retain(|(number, _)| *number != ended);
    window.posts.accesses.set(exchange.open.len());
}

/// Does the same as [`carry_out`], for an access whose only target is another rank. The access must
/// have no gets, fit into the lines of the pair, and wait for nothing.
///
/// For any other access, returns `None` without any effect.
#[inline(always)]
fn short_cut(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    access: &mut Opened,
    call: &Call,
) -> Option<Result<()>> {
    let world = &window.world;
    let [batch] = &access.batches[..] else { return None };
    let target = batch.target;
    if target == world.rank || !batch.gets.is_empty() || !world.life.goes_on() || world.checks.is_on() {
        return None;
    }
    let ports = window.ports(call.site).ok()?;
    let to = exchange.to.of(target);
    let word = short(batch, &to.told)?;
    to.lines.written(endpoint, target, ports.accesses)?;
    // Takes only posts that precede the post of this access. The target may be writing the latter
    // now.
    take_lines(endpoint, target, to, ports, batch.number);
    if to.posts < batch.number || to.come.front().is_some_and(|post| !matches!(post.lent, Lent::Whole)) {
        return None;
    }
    let (batch, judged) = (access.batches.pop()?, to.come.pop_front().is_some());
    to.open = None;
    write(window, endpoint, to, &batch, word, ports);
    retire(to, &mut exchange.spare, batch, None, judged);
    // Looking for posts transfers a cache line from the target. This rank looks for posts only
    // after its write, so that the transfer does not delay the rank that waits for the access.
    if to.posts < to.starts
        && let Err(lost) = take_frames(window, endpoint, target, to, ports)
        && !matches!(lost.how, Loss::Left(_))
    {
        return Some(Err(world.lost(&lost, call).leaving(State::Mixed)));
    }
    let failed = to.owed.pop_front();
    Some(failed.map_or(Ok(()), |(class, message)| Err(window.error(class, message, call.site))))
}

/// Writes an access into the lines that this rank has made for its target.
#[inline(always)]
fn write(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    to: &mut Target,
    batch: &Collected,
    word: u64,
    ports: Ports,
) {
    let records = &batch.outbox.records[..];
    if let Some(lines) = to.lines.written(endpoint, batch.target, ports.accesses) {
        // SAFETY: this rank writes the lines that it has made for the target. The target had read
        // access `number - 2` before it made post `number - 1`, which this rank has taken (16).
        unsafe { lines.end(batch.number, word, records) };
        endpoint.wake(batch.target);
        window.world.reports.count_sent(size_of_val(records), 0);
    }
}

fn carry_out(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    access: &mut Opened,
    call: &Call,
) -> Result<()> {
    let world = &window.world;
    let (ports, windows) = (window.ports(call.site)?, &[window][..]);
    let lost = |lost: &Lost| world.lost(lost, call);
    let is_own = |batch: &&Batch| batch.target == world.rank;
    if let Some(batch) = access.batches.iter().find(is_own)
        && exchange.to.of(world.rank).posts < needed(batch)
    {
        let (file, line) = (access.site.file(), access.site.line());
        let gets =
            if batch.gets.is_empty() { "before it posts for the access before" } else { "before it posts" };
        let what = format_args!("started at {file}:{line}, {gets}");
        return Err(lost(&waits_for_itself(window, endpoint, call, what)));
    }
    for batch in &access.batches {
        let (target, needed) = (batch.target, needed(batch));
        let to = exchange.to.of(target);
        if batch.gets.is_empty() && to.posts >= needed {
            continue; // there is nothing to wait for; the post is looked for below
        }
        let watch = || Watch::new(world, call, windows, target, Awaited::One("posts"));
        wait(endpoint, watch, |endpoint| {
            if target != world.rank
                && let Err(lost) = look(window, endpoint, target, to, ports)
                && (to.posts < needed || !matches!(lost.how, Loss::Left(_)))
            {
                return Err(lost);
            }
            if to.posts < needed
                && let Some(lost) = endpoint.lost(target)
            {
                return Err(lost);
            }
            Ok((to.posts >= needed).then_some(()))
        })
        .map_err(|error| lost(&error))?;
    }
    let mut failed = gets::fetch(window, endpoint, exchange, &access.batches, call)?;
    let (mut sent, mut targets) = (Ok(()), SmallVec::<[usize; 4]>::new());
    for batch in access.batches.drain(..) {
        targets.push(batch.target);
        if sent.is_ok() {
            sent = end(window, endpoint, exchange, batch, ports);
        }
    }
    for target in targets {
        // Looking for posts transfers a cache line from the target. This rank looks for posts only
        // after its sends, so that the transfer does not delay the rank that waits for the access.
        if sent.is_ok() {
            sent = look_early(window, endpoint, exchange, target, ports);
        }
        if failed.is_none() {
            failed = exchange.to.get_mut(target).and_then(|to| to.owed.pop_front());
        }
    }
    endpoint.flush();
    sent.map_err(|error| lost(&error).leaving(State::Mixed))?;
    match failed {
        Some((class, message)) => Err(window.error(class, message, call.site)),
        None => Ok(()),
    }
}

/// Sends the operations that were collected for one target, or reports to the target that one of
/// these operations does not fit.
fn end(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    mut batch: Batch,
    ports: Ports,
) -> Result<(), Lost> {
    let target = batch.target;
    let to = exchange.to.of(target);
    to.open = None;
    // Earlier accesses have taken the posts that belong to them.
    let post = to.come.pop_front();
    let wrong = post.as_ref().and_then(|post| batch.misfit(&post.lent));
    if let (Some((class, site)), Some(post)) = (wrong, &post) {
        to.owed.push_back((class, misfit(class, target, &post.line.words(&to.names), site)));
    }
    let frame = if let Some((class, site)) = wrong {
        send_failure(window, endpoint, exchange, &batch, (class, site), ports)?;
        None
    } else if send_short(window, endpoint, exchange, &batch, ports) {
        None
    } else {
        send_batch(window, endpoint, exchange, &mut batch, ports)?
    };
    retire(exchange.to.of(target), &mut exchange.spare, batch, frame, post.is_some());
    Ok(())
}

/// Keeps a batch until no rank reads its `frame` any more and the post of its access has come.
/// `judged` is whether that post has come.
#[inline(always)]
fn retire(to: &mut Target, spare: &mut Vec<Batch>, batch: Batch, frame: Option<u64>, judged: bool) {
    if judged && frame.is_none() && to.sent.is_empty() {
        spare.push(batch);
    } else {
        to.sent.push_back(Sent { batch: Some(batch), frame, judged });
    }
}

/// Writes an access into the lines of the pair, if the pair has lines and the access fits. Returns
/// whether it was written.
fn send_short(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    batch: &Collected,
    ports: Ports,
) -> bool {
    if batch.target == window.world.rank || window.world.checks.is_on() {
        return false;
    }
    let to = exchange.to.of(batch.target);
    let Some(word) = short(batch, &to.told) else { return false };
    let has_lines = to.lines.written(endpoint, batch.target, ports.accesses).is_some();
    if has_lines {
        write(window, endpoint, to, batch, word, ports);
    }
    has_lines
}

/// Reports to the target of an access that one of its operations does not fit.
fn send_failure(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    batch: &Collected,
    (class, site): (ErrorClass, Site),
    ports: Ports,
) -> Result<(), Lost> {
    let (world, target) = (&window.world, batch.target);
    let (to, scratch) = (exchange.to.of(target), &mut exchange.scratch);
    let head = of_failed(batch.number, class, site, &mut to.told, scratch);
    if target == world.rank {
        let kept = kept_own(target, scratch)?;
        exchange.from.of(target).own.push_back((head, kept));
        return Ok(());
    }
    send(world, endpoint, (target, ports.accesses), head, scratch, &mut to.frames)
}

/// Sends the operations of an access to their target. If conflicts are checked, first sends the
/// frame that the check needs. Returns the number of the frame if its payload stays in the batch.
fn send_batch(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    batch: &mut Collected,
    ports: Ports,
) -> Result<Option<u64>, Lost> {
    let (world, target) = (&window.world, batch.target);
    if let Some((head, bytes)) = exposures::frame_of(window, Some(&*batch)) {
        if target == world.rank {
            keep_own(exchange, target, head, &bytes)?;
        } else {
            let to = exchange.to.of(target);
            send(world, endpoint, (target, ports.accesses), head, &bytes, &mut to.frames)?;
        }
    }
    let (to, scratch) = (exchange.to.of(target), &mut exchange.scratch);
    let named = (target != world.rank && !endpoint.reaches(target)).then_some(&mut to.described);
    let described = of_batch(batch, &mut to.told, named, scratch);
    let frame = described.map_err(|error| no_room(world.rank, &error))?;
    if target == world.rank {
        // SAFETY: the payload is in the batch or in `scratch`, and no code writes it during this
        // call.
        keep_own(exchange, target, frame.header, unsafe { frame.bytes() })?;
        return Ok(None);
    }
    let len = frame.len;
    // SAFETY: `retire` or `WindowCore::drop` keeps the batch unchanged until the target has
    // released the frame.
    let posted = unsafe { endpoint.post_copy(target, ports.accesses, frame) };
    world.reports.count_sent(len, 0);
    match posted {
        Ok(()) => {
            to.frames += 1;
            Ok((len > COPIED && endpoint.reaches(target)).then_some(to.frames - 1))
        }
        Err(Lost { how: Loss::Left(_), .. }) => Ok(None),
        Err(lost) => Err(lost),
    }
}

/// Keeps a frame from this rank to itself.
fn keep_own(exchange: &mut Exchange, me: usize, head: Header, bytes: &[u8]) -> Result<(), Lost> {
    let kept = kept_own(me, bytes)?;
    exchange.from.of(me).own.push_back((head, kept));
    Ok(())
}

fn kept_own(me: usize, bytes: &[u8]) -> Result<Bytes, Lost> {
    let kept = Memory::heap().any(bytes.len());
    let kept = kept.map_err(|error| Lost { rank: me, how: Loss::Ended(format!("rank {me}: {error}")) })?;
    // SAFETY: `kept` has room for all of `bytes`.
    unsafe { kept.base().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(kept)
}

#[cold]
fn no_room(rank: usize, error: &Error) -> Lost {
    Lost { rank, how: Loss::Ended(format!("rank {rank}: {}", error.message())) }
}

/// Ends an access that is not completed, and notifies its targets. Never waits.
pub(crate) fn drop_access(window: &WindowCore, access: &mut Opened) {
    let why = || {
        format!(
            "the access that was started at {}:{} was dropped before it was completed: nothing of it was carried out",
            access.site.file(),
            access.site.line()
        )
    };
    for get in access.batches.iter().flat_map(|batch| &batch.gets) {
        get.slot.fail(ErrorClass::RmaSync, why());
    }
    let world = &window.world;
    // If another call of the world is running, nothing can be sent. The access is then treated as
    // if it had been leaked.
    let (Ok(mut endpoint), Ok(mut exchange)) =
        (world.endpoint.try_borrow_mut(), window.posts.exchange.try_borrow_mut())
    else {
        return;
    };
    let (endpoint, exchange) = (&mut *endpoint, &mut *exchange);
    close(window, exchange, access.number);
    let Ok(ports) = Ports::of(window.key.window) else { return };
    for batch in access.batches.drain(..) {
        let target = batch.target;
        let to = exchange.to.of(target);
        to.open = None;
        if target != world.rank {
            // If all accesses of a pair are dropped, no other code looks for posts. The error is
            // ignored: if the target is lost, a later call that needs the target finds that.
            drop(look(window, endpoint, target, to, ports));
        }
        let judged = to.come.pop_front().is_some();
        let scratch = &mut exchange.scratch;
        let head: Header = of_failed(batch.number, ErrorClass::RmaSync, access.site, &mut to.told, scratch);
        if target == world.rank {
            if let Ok(bytes) = Memory::heap().any(scratch.len()) {
                // SAFETY: `bytes` has room for all of `scratch`.
                unsafe { bytes.base().copy_from_nonoverlapping(scratch.as_ptr(), scratch.len()) };
                exchange.from.of(target).own.push_back((head, bytes));
            }
        } else if world.alive().is_ok() {
            // A world that has ended notifies its ranks itself.
            drop(send(world, endpoint, (target, ports.accesses), head, scratch, &mut to.frames));
        }
        to.sent.push_back(Sent { batch: None, frame: None, judged });
        exchange.spare.push(batch);
    }
    endpoint.flush();
}
