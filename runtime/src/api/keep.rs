//! Calls that end a window or return its elements to the program, and the attributes that a program
//! keeps with a window.

use crate::api::locks::{LockWindow, agree};
use crate::api::refused::Refused;
use crate::kernel::element::Element;
use crate::state::call::{Call, codes};
use crate::state::window::Window;
use fencepost_planner::{ErrorClass, Result};
use std::panic::Location;
use std::rc::Rc;

impl<T: Element> Window<T> {
    /// Drops the window, and returns the elements of this rank's part.
    ///
    /// Other ranks need not make this call: like a drop, it does not wait.
    ///
    /// A window that was [made of a vector](crate::World::window_from) without a copy returns that
    /// vector. The elements of all other windows are copied, since the memory of these windows does
    /// not belong to a vector.
    ///
    /// # Errors
    /// `RMA_SYNC` if operations were collected for the window's next fence, or if an access to the
    /// window is open. `NO_MEM` if the elements have to be copied and there is no memory. The error
    /// returns the window.
    #[track_caller]
    pub fn into_vec(self) -> Result<Vec<T>, Refused<Self>> {
        let (core, site) = (self.core().clone(), Location::caller());
        let refuse = |window, class, message| {
            Err(Refused::new(window, core.error(class, message, site)).reported(&core.handler))
        };
        if let Some(open) = core.still_open() {
            return refuse(self, ErrorClass::RmaSync, format!("this rank {open}"));
        }
        // SAFETY: this rank owns the part, and drops the window below. Other ranks access the part
        // only in three cases: this rank is in a call that has the window, has posted the window,
        // or has begun a superstep on the window. In the last two cases this rank does not own the
        // window.
        if let Some(vec) = unsafe { core.region.take_vec() } {
            return Ok(vec);
        }
        let mut copy = Vec::new();
        if copy.try_reserve_exact(self.len()).is_err() {
            let message = format!("there is no memory for a copy of {} elements", self.len());
            return refuse(self, ErrorClass::NoMem, message);
        }
        copy.extend_from_slice(&self);
        Ok(copy)
    }

    /// Drops the window, together with all ranks.
    ///
    /// A drop does not wait and does not report. This call reports, on every rank, whether some
    /// rank still has something open on the window.
    ///
    /// # Errors
    /// `RMA_SYNC` on all ranks if any rank has collected operations for the window's next fence, if
    /// any rank has an open access to the window, or if another rank is in another call.
    /// `PROC_FAILED` if the world has ended. The error returns the window.
    ///
    /// # Source
    /// MPI 4.1, section 12.2.5 (MPI_WIN_FREE).
    #[doc(alias = "MPI_Win_free")]
    #[track_caller]
    pub fn free(self) -> Result<(), Refused<Self>> {
        let core = self.core().clone();
        let call = Call::named(codes::FREE ^ u64::from(core.key.window) << 16, "Window::free");
        core.world.calls.begin();
        let agreed = agree(&core.world, &call, core.still_open().map(str::to_owned));
        core.handler.report(agreed).map_err(|error| Refused::new(self, error))
    }

    /// Keeps a value with the window until the window is dropped, and returns the value of this
    /// type that was kept before.
    ///
    /// The value stays while the window is posted, locked or in a superstep. It belongs to this
    /// rank: others do not see it.
    ///
    /// ```
    /// # fencepost_runtime::ranks(1).run(|world| {
    /// struct Name(&'static str);
    /// let u = world.window::<f64>(10)?;
    /// u.set_attribute(Name("terrain"));
    /// assert_eq!(u.attribute::<Name>().map(|name| name.0), Some("terrain"));
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Source
    /// MPI 4.1, section 7.7.3 (MPI_WIN_SET_ATTR). Unlike in MPI, the type of the value is the key,
    /// and the value is dropped with the window.
    #[doc(alias = "MPI_Win_set_attr")]
    pub fn set_attribute<A: 'static>(&self, value: A) -> Option<Rc<A>> {
        self.core().attributes.set(value)
    }

    /// Returns the value of this type that is [kept](Self::set_attribute) with the window.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn attribute<A: 'static>(&self) -> Option<Rc<A>> {
        self.core().attributes.get()
    }

    /// Takes the value of this type that was [kept](Self::set_attribute) with the window.
    #[doc(alias = "MPI_Win_delete_attr")]
    pub fn take_attribute<A: 'static>(&self) -> Option<Rc<A>> {
        self.core().attributes.take()
    }
}

impl<T: Element> LockWindow<T> {
    /// Drops the window, together with all ranks.
    ///
    /// When the call returns, all epochs of locks on the window are over.
    ///
    /// # Errors
    /// `RMA_SYNC` on all ranks if any rank has a lock that is not unlocked (a leaked lock), or if
    /// another rank is in another call. `PROC_FAILED` if the world has ended. The error returns the
    /// window.
    ///
    /// # Source
    /// MPI 4.1, section 12.2.5 (MPI_WIN_FREE).
    #[track_caller]
    pub fn free(self) -> Result<(), Refused<Self>> {
        let core = self.data();
        let call = Call::named(codes::FREE_LOCKED ^ u64::from(core.key.window) << 16, "LockWindow::free");
        core.world.calls.begin();
        let agreed = agree(&core.world, &call, self.still_open());
        core.handler.report(agreed).map_err(|error| Refused::new(self, error))
    }

    /// Keeps a value with the window, as [`Window::set_attribute`] does. A window keeps its values
    /// when it is changed over to locks or back.
    pub fn set_attribute<A: 'static>(&self, value: A) -> Option<Rc<A>> {
        self.data().attributes.set(value)
    }

    /// Returns the value of this type that is [kept](Window::set_attribute) with the window.
    pub fn attribute<A: 'static>(&self) -> Option<Rc<A>> {
        self.data().attributes.get()
    }

    /// Takes the value of this type that was [kept](Window::set_attribute) with the window.
    pub fn take_attribute<A: 'static>(&self) -> Option<Rc<A>> {
        self.data().attributes.take()
    }
}
