//! Messages of a [`World`]: sends, receives and probes.

use crate::api::scoped::Destination;
use crate::collect::operation::{SliceSource, SourceData};
use crate::kernel;
use crate::kernel::element::{Element, element_type};
use crate::messages::state::receive::Room;
use crate::messages::state::status::{Sources, Status, Tags};
use crate::messages::{self, Outgoing};
use crate::protocol::bounds::in_slice;
use crate::state::call::Call;
use crate::state::world::World;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::calls::SendMode;
use fencepost_planner::{ErrorClass, Result};

/// A message to a rank, before its elements are sent: see [`World::message`].
///
/// The methods [`synchronous`](Self::synchronous), [`buffered`](Self::buffered) and
/// [`ready`](Self::ready) set the mode of the send. If several of them are called, the last call
/// counts.
///
/// ```
/// # fencepost_runtime::ranks(2).run(|world| {
/// if world.rank() == 0 {
///     world.message(1, 0).synchronous().send([1u8, 2])?; // rank 1 has received it
///     world.attach_buffer(1 << 10)?;
///     world.message(1, 1).buffered().send([3u8])?; // this never waits
///     world.detach_buffer()?;
/// } else {
///     assert_eq!(world.recv::<u8>(0, 0)?.0, [1, 2]);
///     assert_eq!(world.recv::<u8>(0, 1)?.0, [3]);
/// }
/// # Ok(()) }).unwrap();
/// ```
///
/// # Source
/// MPI 4.1, section 3.4.
#[must_use = "a message is sent by `.send(elements)` or `.isend(elements)`"]
pub struct Message<'w, S = World> {
    pub(super) sender: &'w S,
    pub(super) to: Option<usize>,
    pub(super) tag: u32,
    pub(super) mode: SendMode,
}

impl<S> std::fmt::Debug for Message<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { to, tag, mode, .. } = self;
        f.debug_struct("Message")
            .field("to", to)
            .field("tag", tag)
            .field("mode", mode)
            .finish_non_exhaustive()
    }
}

impl<'w, S> Message<'w, S> {
    pub(super) fn new(sender: &'w S, to: Option<usize>, tag: u32) -> Self {
        Self { sender, to, tag, mode: SendMode::Standard }
    }

    /// Makes the send complete only when a receive has taken the message.
    #[doc(alias = "MPI_Ssend")]
    #[doc(alias = "MPI_Issend")]
    pub fn synchronous(mut self) -> Self {
        self.mode = SendMode::Synchronous;
        self
    }

    /// Promises that a receive is already waiting when the message arrives.
    ///
    /// If no receive waits when the message arrives, a later receive that takes the message returns
    /// `ASSERT`, and the message is lost. The send does not report this error.
    #[doc(alias = "MPI_Rsend")]
    #[doc(alias = "MPI_Irsend")]
    pub fn ready(mut self) -> Self {
        self.mode = SendMode::Ready;
        self
    }
}

impl Message<'_> {
    /// Makes the send complete at once.
    ///
    /// The elements are copied. Until this rank has been notified that the message was received,
    /// they may count against the [attached](World::attach_buffer) buffer. The message can still be
    /// received after this rank has left.
    ///
    /// The send returns `BUFFER` if no buffer is attached or the buffer has no room. In that case
    /// nothing was sent. A buffer has room for at most 65,536 messages.
    #[doc(alias = "MPI_Bsend")]
    #[doc(alias = "MPI_Ibsend")]
    pub fn buffered(mut self) -> Self {
        self.mode = SendMode::Buffered;
        self
    }

    /// Sends elements: a slice, or a pair of a slice and a range or [`Datatype`] that names
    /// elements of it.
    ///
    /// The elements are read at the call and can be reused when it returns.
    ///
    /// The call may return at once, or only when a receive takes the message. Each rank has memory
    /// for [some messages](crate::Ranks::unexpected) that it has not received yet. If this memory
    /// is full, or if the message is too long to be sent [at once](crate::Ranks::eager), the send
    /// waits until a receive takes the message. A correct program does not depend on this memory:
    /// it also completes if each send is [synchronous](Self::synchronous). With
    /// [`Check::Mpi`](crate::Check::Mpi) (`FENCEPOST_CHECK=mpi`) each send waits until a receive
    /// takes the message, like a synchronous send. Ranks that depend on this memory then wait for
    /// each other, which is reported.
    ///
    /// # Errors
    /// `RANK` for a rank that the world does not have, and `DISP` for elements that the slice does
    /// not have. In both cases nothing was sent. `NO_MEM` if there is no memory for a copy.
    /// `PROC_FAILED` if the receiver has left or died, or the world has ended. `BUFFER` as for
    /// [`buffered`](Self::buffered).
    ///
    /// # Cost
    /// One message, and two copies of the elements. For a long message, only an envelope is sent
    /// first. The elements then take one copy between ranks that reach each other's memory, and
    /// otherwise two more messages for each 256 KiB.
    ///
    /// # Source
    /// MPI 4.1, section 3.2.1 (MPI_SEND).
    #[doc(alias = "MPI_Send")]
    #[track_caller]
    pub fn send<T: Element>(self, elements: impl SliceSource<T>) -> Result<()> {
        let Self { sender: world, to, tag, mode } = self;
        let call = Call::named(0, "Message::send");
        let mut packed = Vec::new();
        let bytes = world.bytes(elements.data().bytes(), size_of::<T>(), &mut packed, &call);
        let sent = bytes.and_then(|bytes| match to {
            Some(to) => {
                let element = element_type::<T>();
                messages::send(world.core(), &Outgoing { to, tag, element, bytes, mode }, &call)
            }
            None => world.core().alive(),
        });
        world.core().handler.report(sent)
    }
}

/// Messages between two ranks, outside all windows. `planner/README.md` defines them in paragraphs
/// 24 to 27.
///
/// A receive takes the first message that matches its sender and its tag. Matching messages of one
/// sender are taken in the order in which they were sent. Messages are neither ordered nor mixed
/// with the operations on any window or with the messages of another world.
impl World {
    /// Begins a message with a tag to rank `to`. [`send`](Message::send) or
    /// [`isend`](Message::isend) adds elements and sends the message.
    ///
    /// A message to `None` is not sent, and its send does not wait.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// use fencepost::Any;
    /// # fencepost_runtime::ranks(3).run(|world| {
    /// if world.rank() == 0 {
    ///     let mut sum = 0;
    ///     for _ in 1..world.size() {
    ///         let (values, status) = world.recv::<u64>(Any, 7)?;
    ///         assert_eq!(values, [status.source.unwrap() as u64; 2]);
    ///         sum += values[0];
    ///     }
    ///     assert_eq!(sum, 3);
    /// } else {
    ///     world.message(0, 7).send([world.rank() as u64; 2])?;
    /// }
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn message(&self, to: impl Into<Option<usize>>, tag: u32) -> Message<'_> {
        Message::new(self, to.into(), tag)
    }

    /// Waits for a message from rank `from`, or from [`Any`](crate::Any) rank, with this tag or any
    /// tag. Returns all elements of the message, and its status.
    ///
    /// A receive from `None` returns at once, without elements.
    ///
    /// # Errors
    /// `RANK` for a rank that the world does not have. The message is lost in three cases: `TYPE`
    /// if it has elements of another type, `ASSERT` if it was a [ready](Message::ready) message and
    /// arrived before a receive waited for it, and `NO_MEM` if there is no memory for it.
    /// `PROC_FAILED` if the sender has left or died, or the world has ended. A receive from any
    /// rank also returns `PROC_FAILED` if no other rank is left or a rank has failed.
    ///
    /// # Source
    /// MPI 4.1, section 3.2.4 (MPI_RECV).
    #[doc(alias = "MPI_Recv")]
    #[track_caller]
    pub fn recv<T: Element>(
        &self,
        from: impl Into<Sources>,
        tag: impl Into<Tags>,
    ) -> Result<(Vec<T>, Status)> {
        let call = Call::named(0, "World::recv");
        let mut elements: Vec<T> = Vec::new();
        let room = Room::List(&raw mut elements);
        // SAFETY: the list is a list of `T`, and no other code accesses it before this returns.
        let received = unsafe { messages::receive::<T>(self.core(), from.into(), tag.into(), room, &call) };
        Ok((elements, self.core().handler.report(received)?))
    }

    /// Receives like [`recv`](Self::recv), into a slice, or into a pair of a slice and a range or
    /// [`Datatype`] that names elements of it.
    ///
    /// If the message has fewer elements, the remaining elements are unchanged.
    ///
    /// # Errors
    /// As [`recv`](Self::recv). Also `DISP` for elements that the slice does not have, and
    /// `TRUNCATE` if the message has more elements than there is room for. After `TRUNCATE`, the
    /// message is lost, and the slice is unchanged. If the world ends while the elements arrive,
    /// the slice may have some of them.
    ///
    /// # Source
    /// MPI 4.1, section 3.2.4 (MPI_RECV).
    #[doc(alias = "MPI_Recv")]
    #[track_caller]
    pub fn recv_into<'a, T: Element>(
        &self,
        from: impl Into<Sources>,
        tag: impl Into<Tags>,
        into: impl Destination<'a, T>,
    ) -> Result<Status> {
        let call = Call::named(0, "World::recv_into");
        let received = self.room(into, &call).and_then(|room| {
            // SAFETY: the elements are in a slice of `T`, which is borrowed until this returns.
            unsafe { messages::receive::<T>(self.core(), from.into(), tag.into(), room, &call) }
        });
        self.core().handler.report(received)
    }

    /// Sends like [`Message::send`] and receives like [`recv_into`](Self::recv_into). The two
    /// messages may come in either order.
    ///
    /// Ranks that all call `sendrecv` do not wait for each other in a cycle.
    ///
    /// # Errors
    /// As [`Message::send`] and [`recv_into`](Self::recv_into).
    ///
    /// # Source
    /// MPI 4.1, section 3.10 (MPI_SENDRECV).
    #[doc(alias = "MPI_Sendrecv")]
    #[track_caller]
    pub fn sendrecv<'a, S: Element, T: Element>(
        &self,
        to: impl Into<Option<usize>>,
        tag: u32,
        elements: impl SliceSource<S>,
        from: impl Into<Sources>,
        with: impl Into<Tags>,
        into: impl Destination<'a, T>,
    ) -> Result<Status> {
        let call = Call::named(0, "World::sendrecv");
        let received = self.room(into, &call).and_then(|room| {
            let mut packed = Vec::new();
            let bytes = self.bytes(elements.data().bytes(), size_of::<S>(), &mut packed, &call)?;
            let (element, mode) = (element_type::<S>(), SendMode::Standard);
            let outgoing = to.into().map(|to| Outgoing { to, tag, element, bytes, mode });
            let wanted = (from.into(), with.into(), room);
            // SAFETY: as in `recv_into`.
            unsafe { messages::send_and_receive::<T>(self.core(), outgoing.as_ref(), wanted, &call) }
        });
        self.core().handler.report(received)
    }

    /// Waits until there is a message that a receive would take, and returns its sender, its tag
    /// and its length.
    ///
    /// A receive from that sender and with that tag takes this message.
    ///
    /// # Errors
    /// `RANK` and `PROC_FAILED` as [`recv`](Self::recv).
    ///
    /// # Source
    /// MPI 4.1, section 3.8.1 (MPI_PROBE).
    #[doc(alias = "MPI_Probe")]
    #[track_caller]
    pub fn probe(&self, from: impl Into<Sources>, tag: impl Into<Tags>) -> Result<Status> {
        let call = Call::named(0, "World::probe");
        let found = messages::probe(self.core(), from.into(), tag.into(), true, &call);
        Ok(self.core().handler.report(found)?.unwrap_or_default())
    }

    /// Does the same as [`probe`](Self::probe) if `probe` would return at once. Otherwise returns
    /// `None`.
    ///
    /// # Errors
    /// As [`probe`](Self::probe).
    ///
    /// # Source
    /// MPI 4.1, section 3.8.1 (MPI_IPROBE).
    #[doc(alias = "MPI_Iprobe")]
    #[track_caller]
    pub fn try_probe(&self, from: impl Into<Sources>, tag: impl Into<Tags>) -> Result<Option<Status>> {
        let call = Call::named(0, "World::try_probe");
        let found = messages::probe(self.core(), from.into(), tag.into(), false, &call);
        self.core().handler.report(found)
    }

    /// Attaches a buffer of `bytes` bytes for [buffered sends](Message::buffered) in this world.
    ///
    /// The memory of the buffer is allocated only when messages need it.
    ///
    /// # Errors
    /// `BUFFER` if a buffer is attached already.
    ///
    /// # Source
    /// MPI 4.1, section 3.6 (MPI_BUFFER_ATTACH).
    #[doc(alias = "MPI_Buffer_attach")]
    #[track_caller]
    pub fn attach_buffer(&self, bytes: usize) -> Result<()> {
        let call = Call::named(0, "World::attach_buffer");
        self.core().handler.report(messages::attach(self.core(), bytes, &call))
    }

    /// Waits until no message counts against the attached buffer any more, detaches the buffer, and
    /// returns its size.
    ///
    /// # Errors
    /// `BUFFER` if no buffer is attached. `PROC_FAILED` if a receiver has left or died, or the
    /// world has ended.
    ///
    /// # Source
    /// MPI 4.1, section 3.6 (MPI_BUFFER_DETACH).
    #[doc(alias = "MPI_Buffer_detach")]
    #[track_caller]
    pub fn detach_buffer(&self) -> Result<usize> {
        let call = Call::named(0, "World::detach_buffer");
        self.core().handler.report(messages::detach(self.core(), &call))
    }

    /// Returns the bytes of the elements to send, one after another.
    pub(super) fn bytes<'a>(
        &self,
        source: SourceData<'a, u8>,
        size: usize,
        packed: &'a mut Vec<u8>,
        call: &Call,
    ) -> Result<&'a [u8]> {
        let core = self.core();
        match source {
            SourceData::Slice(bytes) => Ok(bytes),
            SourceData::Part(bytes, elements) => {
                in_slice(&elements, bytes.len() / size)
                    .map_err(|(class, message)| call.error(core, class, message))?;
                if let Some(run) = elements.as_run() {
                    return Ok(&bytes[run.start as usize * size..run.end as usize * size]);
                }
                let len = elements.size().checked_mul(size);
                let Some(len) = len.filter(|&len| packed.try_reserve_exact(len).is_ok()) else {
                    let message =
                        format!("there is no memory to pack {} elements of a slice", elements.size());
                    return Err(call.error(core, ErrorClass::NoMem, message));
                };
                packed.resize(len, 0);
                // SAFETY: all elements are in the slice, and there is room for all of them.
                unsafe { kernel::pack(bytes.as_ptr(), &elements, size, packed.as_mut_ptr()) };
                Ok(packed)
            }
            SourceData::Section(..) => {
                let message =
                    "a message reads no sections: give it a slice, or `packed` elements of a window";
                Err(call.error(core, ErrorClass::Arg, message))
            }
        }
    }

    /// Returns the room for the elements to receive.
    pub(super) fn room<'a, T: Element>(&self, into: impl Destination<'a, T>, call: &Call) -> Result<Room> {
        let (buffer, elements) = into.buffer();
        let elements = elements.unwrap_or_else(|| Datatype::run(0..buffer.len()));
        in_slice(&elements, buffer.len())
            .map_err(|(class, message)| call.error(self.core(), class, message))?;
        Ok(Room::Elements(buffer.as_mut_ptr().cast(), elements))
    }
}
