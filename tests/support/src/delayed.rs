//! [`Delayed`]: TCP between threads over links with a latency, which the kernel's loopback has not.
//!
//! Each rank is reached through a listener of its own, which hands on what it reads after a fixed time, in both directions; bytes do
//! not wait for the ones before them, so a link has a latency and no bound on how many bytes it carries.

use fencepost::TransportKind;
use fencepost::transport::Route;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Links of one latency between up to some number of ranks: for one world at a time.
#[derive(Debug)]
pub struct Delayed {
    lines: Vec<Line>,
}

/// What leads to one rank.
#[derive(Debug)]
struct Line {
    address: SocketAddr,
    /// The rank's own address, in the world that there is.
    target: Arc<Mutex<Option<SocketAddr>>>,
    closing: Arc<AtomicBool>,
    listens: Option<JoinHandle<()>>,
}

impl Delayed {
    /// TCP between at most `size` threads, with this latency.
    ///
    /// # Panics
    /// If there is no loopback.
    pub fn over(size: usize, latency: Duration) -> TransportKind {
        TransportKind::TcpThreadsBy(Arc::new(Self { lines: (0..size).map(|_| Line::new(latency)).collect() }))
    }
}

impl Route for Delayed {
    fn table(&self, rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let each = addresses.iter().zip(&self.lines).enumerate();
        each.map(|(to, (address, line))| {
            *line.target.lock().expect("no panic") = Some(*address);
            if to == rank { *address } else { line.address }
        })
        .collect()
    }
}

impl Line {
    fn new(latency: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let address = listener.local_addr().expect("a listener has an address");
        let (target, closing) = (Arc::<Mutex<Option<SocketAddr>>>::default(), Arc::<AtomicBool>::default());
        let (to, ends) = (target.clone(), closing.clone());
        let listens = thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let target = *to.lock().expect("no panic");
                let Some(Ok(far)) = target.map(TcpStream::connect) else { continue };
                for (source, sink) in [(&near, &far), (&far, &near)] {
                    let (Ok(source), Ok(sink)) = (source.try_clone(), sink.try_clone()) else { continue };
                    thread::spawn(move || hand_on(source, sink, latency)); // ends with its connection
                }
            }
        });
        Self { address, target, closing, listens: Some(listens) }
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

/// Writes to `sink` what comes from `source`, each byte this much later, until either ends.
fn hand_on(mut source: TcpStream, mut sink: TcpStream, latency: Duration) {
    let (travels, arrives) = mpsc::channel::<(Instant, Vec<u8>)>();
    let delivers = thread::spawn(move || {
        let _ = sink.set_nodelay(true);
        for (due, bytes) in arrives {
            while let Some(rest) = due.checked_duration_since(Instant::now()) {
                thread::park_timeout(rest); // the latency itself
            }
            if sink.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = sink.shutdown(Shutdown::Write);
    });
    let mut buffer = vec![0; 1 << 18];
    while let Ok(n @ 1..) = source.read(&mut buffer) {
        if travels.send((Instant::now() + latency, buffer[..n].to_vec())).is_err() {
            let _ = source.shutdown(Shutdown::Read);
            break;
        }
    }
    drop(travels);
    let _ = delivers.join();
}
