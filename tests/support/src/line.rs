//! [`Line`]: a listener in front of a rank, through which other ranks reach this rank. The test
//! controls both directions of each connection.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The listener that leads to one rank.
pub struct Line {
    /// The address that others connect to.
    pub address: SocketAddr,
    /// The rank's own address in the current world.
    target: Arc<Mutex<Option<SocketAddr>>>,
    closing: Arc<AtomicBool>,
    listens: Option<JoinHandle<()>>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({})", self.address)
    }
}

impl Line {
    /// Returns a line. For each direction of a connection, `hands_on` runs in a thread, and copies
    /// the bytes from its first socket to its second socket until one of the sockets ends. The last
    /// argument of `hands_on` is true if the bytes go to the rank of this line.
    ///
    /// Panics if there is no loopback.
    pub fn new(hands_on: impl Fn(TcpStream, TcpStream, bool) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let address = listener.local_addr().expect("a listener has an address");
        let (target, closing) = (Arc::<Mutex<Option<SocketAddr>>>::default(), Arc::<AtomicBool>::default());
        let (to, ends, hands_on) = (target.clone(), closing.clone(), Arc::new(hands_on));
        let listens = thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let target = *to.lock().expect("no panic");
                let Some(Ok(far)) = target.map(TcpStream::connect) else { continue };
                for (source, sink, there) in [(&near, &far, true), (&far, &near, false)] {
                    let (Ok(source), Ok(sink)) = (source.try_clone(), sink.try_clone()) else { continue };
                    let hands_on = hands_on.clone();
                    thread::spawn(move || hands_on(source, sink, there)); // ends with its connection
                }
            }
        });
        Self { address, target, closing, listens: Some(listens) }
    }

    /// Returns the addresses by which `rank` reaches the other ranks if each rank is behind one of
    /// these lines. From now on, the lines lead to `addresses`.
    ///
    /// Panics if a thread of a line has panicked.
    pub fn table(lines: &[Self], rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let each = addresses.iter().zip(lines).enumerate();
        each.map(|(to, (address, line))| {
            line.leads_to(*address);
            if to == rank { *address } else { line.address }
        })
        .collect()
    }

    /// Makes this line lead to its rank at this address from now on.
    ///
    /// Panics if a thread of the line has panicked.
    pub fn leads_to(&self, address: SocketAddr) {
        *self.target.lock().expect("no panic") = Some(address);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(self.address);
        if let Some(listens) = self.listens.take()
            && woken.is_ok()
        {
            let _ = listens.join();
        }
    }
}
