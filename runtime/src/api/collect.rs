//! Collects calls on a [`Window`]. A call is collected as a record if a record can express the
//! whole call, and otherwise as an operation that datatypes describe.

use crate::check;
use crate::check::state::touched::Touched;
use crate::collect::filling::RecordSources;
use crate::collect::operation::{Collect, One, Operation, Site, SourceData, TargetRegion, WindowKey};
use crate::collect::outbox::{
    DISPLACEMENTS, DatatypeOperation, DatatypeSource, ELEMENT, Head, RUN, Run, code_of,
};
use crate::collect::pending::{Asking, DatatypeGet, Get, Into as Landing};
use crate::collect::ticket::Slot;
use crate::kernel::element::{Element, element_type};
use crate::kernel::pack;
use crate::protocol::bounds::in_slice;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use crate::supersteps::state::Asked;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::{Kind, Local, Mode};
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::Record;
use std::borrow::Cow;

impl WindowCore {
    /// Collects a get of one element if the fast path is open to the get. `into` is an element of
    /// the window itself, which the caller has checked, or a borrowed address. Returns whether the
    /// get was collected; if not, the call has no effect.
    #[inline(always)]
    pub(crate) fn get_one(&self, target: usize, at: usize, into: usize, borrowed: bool) -> bool {
        let fits = self.fast_paths.get(target).is_some_and(|fast_path| fast_path.is_open_to_get(at));
        if fits {
            self.join_streak(target);
            let one = Get::new(target, at, into, borrowed);
            if !self.filling.getting.write(one) {
                self.get_where_no_room(one);
            }
        }
        fits
    }

    /// Collects a get of one element for which the log has no room yet.
    #[cold]
    #[inline(never)]
    fn get_where_no_room(&self, one: Get) {
        self.pending(|pending| pending.gets.push(one));
    }

    /// Adds a get from `target` to the current streak. After gets of another window, a new streak
    /// begins, so that gets are stored in program order.
    #[inline(always)]
    fn join_streak(&self, target: usize) {
        let asking = self.filling.asking.from(target);
        if !self.world.windows.streaks.is_now(asking) {
            self.ask_another(asking, target);
        }
    }

    #[inline(never)]
    fn ask_another(&self, asking: Asking, target: usize) {
        let pending = &mut *self.filling.pending.borrow_mut();
        let first = self.filling.getting.count(&pending.gets);
        pending.ask((target, self.peers.len()), self.world.windows.streaks.take(asking), first);
    }

    /// Matches a call with the plan while a prepared superstep runs. The call must be the one that
    /// the plan expects.
    fn matched(
        &self,
        (kind, target, remote): (Kind, Option<usize>, Datatype),
        own: SourceData<'_, u8>,
        landing: Option<Slot>,
        site: Site,
    ) -> Result<()> {
        self.world.alive()?;
        self.may_collect(site)?;
        self.may_follow(site)?;
        let Some((ready, id)) = self.collecting.plan() else {
            return Err(self.error(
                ErrorClass::RmaSync,
                "this window does not take part in a superstep that is running".into(),
                site,
            ));
        };
        let (local, slice) = match own {
            SourceData::Slice(bytes) | SourceData::Part(bytes, _) => (Local::Buffer, bytes),
            SourceData::Section(key, datatype) => {
                let key = key.unwrap_or(self.key);
                let window = self.world.supersteps.matching_window(key).ok_or_else(|| {
                    self.error(
                        ErrorClass::Win,
                        "a section of a window that is not one of this superstep's".into(),
                        site,
                    )
                })?;
                (Local::Section { window, datatype: datatype.into_owned() }, &[][..])
            }
        };
        ready.call((self, id), Asked { kind, target, remote, local, slice, landing }, site)
    }

    /// Returns an error if the last fence asserted that no operation follows it.
    pub(super) fn may_follow(&self, site: Site) -> Result<()> {
        if !self.collecting.is_closed() {
            return Ok(());
        }
        let message =
            "NOSUCCEED was asserted at the last fence: no operation may follow it before the next one";
        Err(self.error(ErrorClass::Assert, message.into(), site))
    }

    /// Checks that the window's elements have the operator, if this is an accumulate.
    pub(super) fn has_operator(&self, kind: Kind, site: Site) -> Result<()> {
        match kind {
            Kind::Accumulate(op) if !op.takes(self.element) => {
                Err(self.error(ErrorClass::Op, op.undefined_for(self.element), site))
            }
            _ => Ok(()),
        }
    }

    /// Fills the slot of a get that has no target. The slot has `len` elements, into which no rank
    /// writes.
    pub(super) fn fill_unwritten(&self, slot: &Slot, len: usize, site: Site) -> Result<()> {
        let bytes = len.checked_mul(self.element.size as usize).filter(|&bytes| slot.reserve(bytes));
        let message = || format!("there is no memory for {len} elements");
        let bytes = bytes.ok_or_else(|| self.error(ErrorClass::NoMem, message(), site))?;
        slot.fill_with(bytes, |_| ());
        Ok(())
    }

    /// Collects a get into a ticket. Returns the slot for the elements, and their number.
    pub(super) fn fetched(
        &self,
        target: Option<usize>,
        region: TargetRegion,
        site: Site,
    ) -> Result<(Slot, usize)> {
        let remote = region.clone().datatype(1);
        let (slot, len) = (Slot::default(), remote.size());
        if !self.is_short() {
            let landing = Some(slot.clone());
            self.matched((Kind::Get, target, remote), SourceData::Slice(&[]), landing, site)?;
            return Ok((slot, len));
        }
        let Some(target) = target else {
            self.fill_unwritten(&slot, len, site)?;
            return Ok((slot, len));
        };
        let remote = self.region(target, region, len, site)?;
        self.ask(target, remote, Landing::Ticket(slot.clone()), Mode::Auto, site)?;
        Ok((slot, len))
    }

    /// Collects a get that was checked completely.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if conflicts are checked and an earlier operation conflicts with this one.
    pub(crate) fn ask(
        &self,
        target: usize,
        remote: Datatype,
        landing: Landing,
        mode: Mode,
        site: Site,
    ) -> Result<()> {
        let reads = matches!(landing, Landing::Section(..));
        let section = match &landing {
            Landing::Section(key, section) => Some((Some(*key), Touched::Type(section))),
            _ => None,
        };
        self.may_call((Kind::Get, target, Touched::Type(&remote)), section, site)?;
        self.note(Kind::Get, target, remote.size(), reads, mode, site);
        self.keep_call((Kind::Get, target, Touched::Type(&remote)), section, 0, site);
        self.join_streak(target);
        let get = DatatypeGet { remote, landing, site, mode: self.asked(mode) };
        self.pending(|pending| pending.push(target, get));
        Ok(())
    }

    /// Checks an operation that is about to be collected. `section` is its source or destination,
    /// if that is a section of a window.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if conflicts are checked and an earlier operation conflicts with this one.
    #[inline]
    fn may_call(
        &self,
        operation: (Kind, usize, Touched<'_>),
        section: Option<(Option<WindowKey>, Touched<'_>)>,
        site: Site,
    ) -> Result<()> {
        self.keep_first(site);
        if self.checked.is_on() { check::call(self, operation, section, site) } else { Ok(()) }
    }

    /// Checks, if conflicts are checked, that an operation writes each of these elements only once.
    /// The elements are in a rank's part of the window `named`, or of this window if `named` is
    /// `None`.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if the operation writes an element twice.
    #[inline]
    fn may_write(
        &self,
        written: (Kind, usize, &Datatype),
        named: Option<WindowKey>,
        site: Site,
    ) -> Result<()> {
        if !self.checked.is_on() {
            return Ok(());
        }
        check::writes_once(self, written, named, check::Under::Fence, site)
    }

    /// Collects a put or an accumulate that was checked completely: one small element as a record,
    /// or adjacent elements as a run.
    ///
    /// `elements` are the bytes of the elements, or a window (`None` for this window) and the
    /// displacement of the first element. Elements of a window are read when the fence is entered.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    fn send_records(
        &self,
        elements: Result<&[u8], (Option<WindowKey>, usize)>,
        count: usize,
        One { kind, target, at, site }: One,
    ) -> Result<()> {
        let section = elements.err().map(|(of, from)| (of, Touched::Run(from, count)));
        self.may_call((kind, target, Touched::Run(at, count)), section, site)?;
        let (code, size) = (code_of(kind), self.element.size as usize);
        let read_later = if elements.is_err() { ELEMENT } else { 0 };
        match elements {
            Ok(_) => {}
            Err((None, _)) => self.filling.sources.set(RecordSources::Own),
            Err((Some(key), _)) => self.filling.names_source(key, site),
        }
        let in_run = count > 1 || size > 8;
        let plain = !in_run && elements.is_ok();
        if !plain || !self.keep_line(target, Head::new(at as u64, code, site), site) {
            let records = if in_run { 1 + Run(count as u64).records(size) } else { 1 };
            self.keep_call((kind, target, Touched::Run(at, count)), section, records, site);
        }
        let elements = elements.map_err(|(_, from)| from);
        self.outbox(target, |outbox| {
            if in_run {
                let head = Head::new(at as u64, RUN | read_later, site);
                return outbox.push_run(head, code, (count, size), elements);
            }
            let value = elements.map_or_else(
                |from| from as u64,
                |bytes| {
                    let mut bits = [0u8; 8];
                    bits[..size].copy_from_slice(bytes);
                    u64::from_ne_bytes(bits)
                },
            );
            outbox.push(Head::new(at as u64, code | read_later, site), value);
        });
        Ok(())
    }

    /// Collects a put or an accumulate that records cannot express.
    fn send_datatype(
        &self,
        source: SourceData<'_, u8>,
        count: usize,
        target: usize,
        Operation { kind, region, mode, site, .. }: Operation,
    ) -> Result<()> {
        self.has_operator(kind, site)?;
        let remote = self.region(target, region, count, site)?;
        let own = match &source {
            SourceData::Section(window, section) => {
                self.check_own(*window, section, site)?;
                Some((*window, Touched::Type(section)))
            }
            SourceData::Slice(_) | SourceData::Part(..) => None,
        };
        if count == 0 {
            return Ok(());
        }
        self.may_write((kind, target, &remote), None, site)?;
        self.may_call((kind, target, Touched::Type(&remote)), own, site)?;
        self.keep_call((kind, target, Touched::Type(&remote)), own, 1, site);
        self.filling.plain.set(false);
        self.outbox(target, |outbox| {
            let source = match source {
                SourceData::Slice(bytes) | SourceData::Part(bytes, _) => {
                    DatatypeSource::Bytes(outbox.keep(bytes))
                }
                SourceData::Section(window, section) => {
                    DatatypeSource::Section(window.unwrap_or(self.key), section.into_owned(), site)
                }
            };
            outbox.push_datatype(
                DatatypeOperation { code: code_of(kind), remote, source, mode: self.asked(mode) },
                site,
            );
        });
        Ok(())
    }

    /// Returns the displacement of the first of `count` elements at the target, if the elements are
    /// adjacent there and cause no error.
    fn in_a_row(&self, target: usize, count: usize, operation: &Operation) -> Option<usize> {
        let at = match &operation.region {
            TargetRegion::At(at) => *at,
            TargetRegion::Run(run) if run.len() == count => run.start,
            _ => return None,
        };
        let end = at.checked_add(count)?;
        let fits = end <= self.peers.get(target)?.len.min(DISPLACEMENTS as usize);
        let takes = !matches!(operation.kind, Kind::Accumulate(op) if !op.takes(self.element));
        (fits && takes).then_some(at)
    }

    /// Returns the window and the displacement of the first of these elements, if records may have
    /// the elements as sources. The elements must be adjacent and in this rank's part. In one
    /// epoch, all elements that are sources of records must be of one window: this window or
    /// another one.
    fn read_later(
        &self,
        window: Option<WindowKey>,
        section: &Datatype,
        site: Site,
    ) -> Result<Option<(Option<WindowKey>, usize)>> {
        let other = window.filter(|key| *key != self.key);
        let mixed = match self.filling.sources.get() {
            RecordSources::None => false,
            RecordSources::Own => other.is_some(),
            RecordSources::Of(key, _) => other != Some(key),
        };
        let Some(run) = section.as_run().filter(|_| !mixed) else { return Ok(None) };
        if other.is_some() {
            self.check_own(other, section, site)?;
        } else if run.start < 0 || run.end > self.peers[self.world.rank].len as i64 {
            return Ok(None);
        }
        Ok(Some((other, run.start as usize)))
    }

    /// Returns whether this element of another window may be the source of a record, as defined in
    /// [`read_later`](Self::read_later), and causes no error.
    fn takes_element_of(&self, window: WindowKey, from: usize) -> bool {
        let mixed = match self.filling.sources.get() {
            RecordSources::None => false,
            RecordSources::Own => true,
            RecordSources::Of(key, _) => key != window,
        };
        // As in `is_few`, a call that will be compared with a plan must be collected as one
        // operation.
        if mixed || window.world != self.key.world || self.world.supersteps.comparing() {
            return false;
        }
        let Some(other) = self.world.windows.collecting(window) else { return false };
        self.world.windows.names_sections();
        other.element == self.element && from < other.peers[self.world.rank].len && !other.is_open()
    }

    /// Returns whether an operation on `count` elements may be collected as records. The target
    /// must read the records in place, and the mode must leave this choice open.
    fn is_few(&self, count: usize, target: usize, mode: Mode) -> bool {
        let reached = self.peers.get(target).is_some_and(|peer| !peer.base.is_null());
        // A call that will be compared with a plan must be collected as one operation.
        (1..=self.filling.few).contains(&count)
            && reached
            && matches!(self.asked(mode), Mode::Auto | Mode::Aggregated)
            && !self.world.supersteps.comparing()
    }

    /// Returns the elements of a slice that a datatype names, one after another. The slice is given
    /// as its bytes. The list reuses the memory that an earlier call has given back.
    pub(super) fn packed(&self, slice: &[u8], elements: &Datatype, site: Site) -> Result<Vec<u8>> {
        let size = self.element.size as usize;
        in_slice(elements, slice.len() / size)
            .map_err(|(class, message)| self.error(class, message, site))?;
        let mut packed = self.filling.packed.take();
        packed.clear();
        let len = elements.size().checked_mul(size);
        let Some(len) = len.filter(|&len| packed.try_reserve_exact(len).is_ok()) else {
            let message = format!("there is no memory to pack {} elements of a slice", elements.size());
            return Err(self.error(ErrorClass::NoMem, message, site));
        };
        packed.resize(len, 0);
        // SAFETY: all elements are in the slice, and there is room for all of them.
        unsafe { pack(slice.as_ptr(), elements, size, packed.as_mut_ptr()) };
        Ok(packed)
    }

    /// Collects a put or an accumulate.
    #[inline]
    fn sent(&self, source: SourceData<'_, u8>, operation: Operation) -> Result<()> {
        let Operation { kind, target, mode, site, .. } = operation;
        let (count, reads) = match &source {
            SourceData::Slice(bytes) => (bytes.len() / self.element.size as usize, false),
            SourceData::Part(bytes, elements) => {
                let packed = self.packed(bytes, elements, site)?;
                let sent = self.sent(SourceData::Slice(&packed), operation);
                self.filling.packed.set(packed);
                return sent;
            }
            SourceData::Section(_, section) => (section.size(), true),
        };
        if !self.is_short() {
            let remote = operation.region.datatype(count);
            self.sizes(count, remote.size(), site)?;
            return self.matched((kind, target, remote), source, None, site);
        }
        let Some(target) = target else { return Ok(()) };
        let few = self.is_few(count, target, mode);
        let single = count == 1 && !reads && self.element.size <= 8;
        let at = (few || single).then(|| self.in_a_row(target, count, &operation)).flatten();
        let elements = match &source {
            SourceData::Slice(bytes) => Some(Ok(*bytes)),
            // If the section cannot be read by records, nothing is checked or remembered here.
            SourceData::Section(window, section) if at.is_some() => {
                self.read_later(*window, section, site)?.map(Err)
            }
            _ => None,
        };
        if let (Some(at), Some(elements)) = (at, elements) {
            self.send_records(elements, count, One { kind, target, at, site })?;
        } else {
            self.send_datatype(source, count, target, operation)?;
        }
        self.note(kind, target, count, reads, mode, site);
        self.send_eagerly(target, mode);
        Ok(())
    }

    /// Collects a get into a section.
    #[inline]
    fn got(
        &self,
        (window, section): (Option<WindowKey>, Datatype),
        Operation { kind, target, region, mode, site }: Operation,
    ) -> Result<()> {
        if !self.is_short() {
            let remote = region.datatype(section.size());
            self.sizes(section.size(), remote.size(), site)?;
            let own = SourceData::Section(window, Cow::Owned(section));
            return self.matched((kind, target, remote), own, None, site);
        }
        let Some(target) = target else { return Ok(()) };
        let remote = self.region(target, region, section.size(), site)?;
        self.check_own(window, &section, site)?;
        if !remote.is_empty() {
            self.may_write((Kind::Put, self.world.rank, &section), window, site)?;
            let landing = Landing::Section(window.unwrap_or(self.key), section);
            self.ask(target, remote, landing, mode, site)?;
        }
        Ok(())
    }
}

/// Returns whether a put or an accumulate of one element is collected as a record.
#[inline(always)]
fn is_small<T: Element>(kind: Kind) -> bool {
    let takes = match kind {
        Kind::Put => true,
        Kind::Accumulate(op) => op.takes(element_type::<T>()),
        Kind::Get => false,
    };
    size_of::<T>() <= 8 && takes
}

impl<T: Element> Collect<T> for Window<T> {
    #[inline(always)]
    fn send_one(&self, value: T, One { kind, target, at, site }: One) -> bool {
        if !is_small::<T>(kind) {
            return false;
        }
        let Some(fast_path) = self.fast_paths.get(target) else { return false };
        let mut bits = [0u8; 8];
        bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        let head = Head::new(at as u64, code_of(kind), site);
        let record = Record { head: head.0, value: u64::from_ne_bytes(bits) };
        fast_path.push(at, record) || self.core.push_checked(fast_path, kind, (target, at), record)
    }

    #[inline(always)]
    fn send_element(&self, from: usize, One { kind, target, at, site }: One) -> bool {
        let sources = &self.core.filling.sources;
        if !is_small::<T>(kind) || from >= self.len || matches!(sources.get(), RecordSources::Of(..)) {
            return false;
        }
        let Some(fast_path) = self.fast_paths.get(target) else { return false };
        let head = Head::new(at as u64, code_of(kind) | ELEMENT, site);
        let sent = fast_path.push(at, Record { head: head.0, value: from as u64 });
        if sent {
            sources.set(RecordSources::Own);
        }
        sent
    }

    fn send_element_of(&self, (of, from): (WindowKey, usize), one: One) -> bool {
        if of == self.core.key {
            return self.send_element(from, one);
        }
        let One { kind, target, at, site } = one;
        if !is_small::<T>(kind) || !self.core.takes_element_of(of, from) {
            return false;
        }
        // If the target's memory is not reached, the section is sent as a description.
        let Some(fast_path) = self.fast_paths.get(target).filter(|path| !path.memory().is_null()) else {
            return false;
        };
        let head = Head::new(at as u64, code_of(kind) | ELEMENT, site);
        let sent = fast_path.push(at, Record { head: head.0, value: from as u64 });
        if sent {
            self.core.filling.names_source(of, site);
        }
        sent
    }

    fn send(&self, source: SourceData<'_, T>, operation: Operation) -> Result<()> {
        self.core.handler.report(self.core.sent(source.bytes(), operation))
    }

    #[inline(always)]
    fn get_one(&self, into: usize, target: usize, at: usize) -> bool {
        into < self.len && self.core.get_one(target, at, into, false)
    }

    fn get(&self, into: (Option<WindowKey>, Datatype), operation: Operation) -> Result<()> {
        self.core.handler.report(self.core.got(into, operation))
    }
}

#[cfg(test)]
mod tests;
