//! What a job's transports need of whoever starts it.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// The memory file that ranks of one machine share.
pub(super) struct Memory(OwnedFd);

impl Memory {
    pub(super) fn create(_ranks: u32) -> std::io::Result<Self> {
        Ok(Self(rustix::fs::memfd_create("fencepost", rustix::fs::MemfdFlags::CLOEXEC)?))
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(super) fn strike(&self, _rank: u32, _how: &str) {}
}

/// How this rank's process reaches the others.
pub(crate) enum Link {
    Bare,
}

impl Link {
    pub(super) fn join(
        job: &super::Description,
        _memory: Option<OwnedFd>,
    ) -> Result<(Self, Option<std::net::SocketAddr>), String> {
        let address = match job.reach {
            super::Reach::Shm => None,
            super::Reach::Tcp => Some(std::net::SocketAddr::new(job.bind, 1)),
        };
        Ok((Link::Bare, address))
    }

    pub(super) fn table(&self, _addresses: Vec<std::net::SocketAddr>) {}

    pub(super) fn strike(&self, _rank: u32, _how: &str) {}
}

impl Link {
    pub(super) fn end(
        &self,
        _: &super::Description,
        _: u32,
    ) -> fencepost_planner::Result<crate::transport::Endpoint> {
        Err(fencepost_planner::Error::new(fencepost_planner::Class::Other, "not connected yet"))
    }
}
