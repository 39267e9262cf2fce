//! The calls of a [`World`] and of a [`Message`] that begin sends and receives.

use crate::api::messages::Message;
use crate::api::refused::Refused;
use crate::api::requests::{Held, Request};
use crate::kernel::element::{Element, element_type};
use crate::messages::state::receive::Room;
use crate::messages::state::status::{Sources, Tags};
use crate::messages::{self, Outgoing};
use crate::state::call::Call;
use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::datatype::Datatype;
use std::ptr::NonNull;

impl Message<'_> {
    /// Begins to [send](Self::send) all elements of a list, and never waits.
    ///
    /// The request owns the list until the send is complete. With
    /// [`Check::Mpi`](crate::Check::Mpi), even the request of a short message is complete only when
    /// a receive has taken the message.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let other = 1 - world.rank();
    /// // No send waits for the other rank's receive.
    /// let sends = [0, 1].map(|tag| world.message(other, tag).isend(vec![tag; 100_000]));
    /// for tag in [1, 0] {
    ///     assert_eq!(world.recv::<u32>(other, tag)?.0, vec![tag; 100_000]);
    /// }
    /// for send in sends {
    ///     send?.wait()?;
    /// }
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `RANK` for a rank that the world does not have. `NO_MEM` if there is no memory for a copy,
    /// or if 65,536 messages of this rank wait for their receives; messages that wait only because
    /// of [`Check::Mpi`](crate::Check::Mpi) do not count. `PROC_FAILED` if the receiver has left or
    /// died, or the world has ended. `BUFFER` as for [`buffered`](Self::buffered). The error
    /// returns the list, and nothing was sent.
    ///
    /// # Cost
    /// As [`send`](Self::send), and two small allocations if the request is not complete at once.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.2 (MPI_ISEND).
    #[doc(alias = "MPI_Isend")]
    #[track_caller]
    pub fn isend<T: Element>(self, elements: Vec<T>) -> Result<Request<Vec<T>>, Refused<Vec<T>>> {
        let Self { sender: world, to, tag, mode } = self;
        let call = Call::named(0, "Message::isend");
        let core = world.core();
        let begun = match to {
            None => core.alive().map(|()| None),
            Some(to) => {
                let (element, bytes) = (element_type::<T>(), bytemuck::cast_slice(&elements));
                let outgoing = Outgoing { to, tag, element, bytes, mode };
                // SAFETY: the request gives the list away only when the send is complete or was
                // taken back, and otherwise leaks the list. The request moves the list but not its
                // elements, and no other code sees the list.
                unsafe { messages::begin_send(core, &outgoing, &call) }
            }
        };
        match begun {
            Ok(begun) => Ok(Request::new(core, begun, Held::Here(elements))),
            Err(error) => Err(Refused::new(elements, core.handler.reported(error))),
        }
    }
}

impl World {
    /// Begins to [receive](Self::recv) a message of any length, and never waits.
    ///
    /// # Errors
    /// `RANK` for a rank that the world does not have; `PROC_FAILED` if the world has ended. Errors
    /// of the message and of its sender are returned by the request.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.2 (MPI_IRECV).
    #[doc(alias = "MPI_Irecv")]
    #[track_caller]
    pub fn irecv<T: Element>(
        &self,
        from: impl Into<Sources>,
        tag: impl Into<Tags>,
    ) -> Result<Request<Vec<T>>> {
        let call = Call::named(0, "World::irecv");
        let list = NonNull::from(Box::leak(Box::new(Vec::<T>::new())));
        let wanted = (from.into(), tag.into(), Room::List(list.as_ptr()));
        // SAFETY: the list is a `Vec<T>` and stays in its box. The request takes the box back when
        // the receive is complete or forgotten; otherwise the box leaks.
        match unsafe { messages::begin_receive::<T>(self.core(), wanted, &call) } {
            Ok(begun) => Ok(Request::new(self.core(), begun, Held::Boxed(list))),
            Err(error) => {
                // SAFETY: no receive was begun.
                drop(unsafe { Box::from_raw(list.as_ptr()) });
                Err(self.core().handler.reported(error))
            }
        }
    }

    /// Begins to [receive](Self::recv_into) into a list, and never waits.
    ///
    /// The message may fill only a part of the list. The list keeps its length.
    ///
    /// # Errors
    /// As [`irecv`](Self::irecv); the error returns the list. If the message is longer than the
    /// list, the request returns `TRUNCATE`.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.2 (MPI_IRECV).
    #[doc(alias = "MPI_Irecv")]
    #[track_caller]
    pub fn irecv_into<T: Element>(
        &self,
        from: impl Into<Sources>,
        tag: impl Into<Tags>,
        mut room: Vec<T>,
    ) -> Result<Request<Vec<T>>, Refused<Vec<T>>> {
        let call = Call::named(0, "World::irecv_into");
        let elements = Room::Elements(room.as_mut_ptr().cast(), Datatype::run(0..room.len()));
        let wanted = (from.into(), tag.into(), elements);
        // SAFETY: the request gives the list away only when the receive is complete or forgotten,
        // and otherwise leaks the list. The request moves the list but not its elements.
        match unsafe { messages::begin_receive::<T>(self.core(), wanted, &call) } {
            Ok(begun) => Ok(Request::new(self.core(), begun, Held::Here(room))),
            Err(error) => Err(Refused::new(room, self.core().handler.reported(error))),
        }
    }
}
