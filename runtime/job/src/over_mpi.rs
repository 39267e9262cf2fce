//! [`meet`]: how the ranks that a launcher of MPI has started find each other, over the launcher's
//! MPI. Nothing has to be configured.
//!
//! MPI is initialised, and each rank gathers data from all others. From then on the ranks of one
//! host use memory that they share. Between hosts they exchange messages of MPI if the transport is
//! `mpi`, or if no transport is set and MPI is faster than the ranks' own connections. Otherwise
//! MPI is finalised at once.

use crate::description::{Description, HostRanks, Limits, Reach};
use crate::environment::{ExternalRank, MPI, RENDEZVOUS, SHARE, variable};
use crate::link::{LIMIT_MIN, Link, NEVER};
use crate::rendezvous::job_of;
use crate::settings::Settings;
use crate::sharing::{Neighbours, Shared, neighbours, share};
use crate::wire::{Wire, quicker};
use fencepost_transport::auth::Secret;
use fencepost_transport::mpi::{Group, Search, Serialized, Session, search};
use fencepost_transport::{MpiFabric, MpiReports, Segment};
use rustix::system::uname;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Meets the other ranks over the MPI of their launcher. Returns the description of the job, this
/// rank's transports, and the address at which each rank listens.
///
/// # Errors
/// No MPI is found, or the MPI found belongs to another launcher; a rank runs another program, has
/// settings that are not valid, or can't listen. Errors of one rank after MPI has begun are passed
/// on to all ranks.
pub(crate) fn meet(external: &ExternalRank) -> Result<(Description, Link, Vec<SocketAddr>), String> {
    let session = begin(external)?;
    let (secret, Choices { settings, shares, wire }) = agree(&session, Choices::from_environment())?;
    let hosts = Hosts::of(&session)?;
    let here = hosts.here.clone();
    let machines = hosts.first_of.iter().map(|first| *first as usize).collect();
    let (cores, address) = (hosts.cores, address(&session, &hosts)?);
    fencepost_transport::set_cores(cores as usize);
    let (hosts, shared) = hosts.share(&session, shares)?;
    let first_of = hosts.first_of.clone();
    let job = Description {
        job: job_of(&secret),
        secret,
        rank: external.rank,
        size: external.size,
        reach: hosts.reach(),
        hosts: hosts.runs(),
        cores,
        bind: address.clone().unwrap_or(Ipv4Addr::LOCALHOST.into()),
        sealed: settings.sealed,
        limits: settings.limits,
    };
    let is_choice = wire.is_none() && !job.sealed && job.reach != Reach::Shm && is_serialized(&session)?;
    let wire = match wire {
        Some(wire) => wire,
        None if is_choice => quicker(&session, &first_of, address.clone().ok(), &job.secret)?,
        None => Wire::Tcp,
    };
    let session = if wire == Wire::Mpi && job.reach != Reach::Shm {
        let others = neighbours(&session, &here)?;
        match carrying(session)? {
            Ok(carrying) => {
                let link = over(carrying, &job, machines, shared, others, settings.grace)?;
                return Ok((job, link, Vec::new()));
            }
            Err(session) => session,
        }
    } else {
        session
    };
    let (link, table) = listen(&session, &job, address.and(Ok(shared)))?;
    session.end();
    Ok((job, link, table))
}

/// The wire that the program has asked for.
static ASKED: Mutex<Option<Wire>> = Mutex::new(None);

/// Makes this process use this wire with ranks that share no memory with it, if a launcher of MPI
/// has started this process. Must be called before this process joins its job.
pub fn ask_for(wire: Wire) {
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(wire);
}

/// The choices that must be the same on all ranks.
#[derive(Clone, Copy, Debug)]
struct Choices {
    settings: Settings,
    /// Whether ranks of one host share memory.
    shares: bool,
    /// The wire that the program or the user has chosen.
    wire: Option<Wire>,
}

impl Choices {
    fn from_environment() -> Result<Self, String> {
        let settings = Settings::from_environment()?;
        let shares = match variable(SHARE).as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => return Err(format!("{SHARE} is `{other}`: give `on` or `off`")),
        };
        let asked = *ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        let wire = asked.or_else(|| match variable("FENCEPOST_TRANSPORT")?.as_str() {
            "mpi" => Some(Wire::Mpi),
            "tcp" => Some(Wire::Tcp),
            _ => None,
        });
        if wire == Some(Wire::Mpi) && settings.sealed {
            return Err(
                "FENCEPOST_SEAL is `on` and the transport is `mpi`: what MPI carries can't be sealed; use `tcp`, or no seal"
                    .into(),
            );
        }
        Ok(Self { settings, shares, wire })
    }
}

/// Returns whether the MPI of each rank can carry messages.
fn is_serialized(session: &Session) -> Result<bool, String> {
    let all = session.gather(Group::All, &[u8::from(session.is_serialized())])?;
    Ok(all.iter().all(|is_serialized| is_serialized[0] == 1))
}

/// Prepares the session to carry messages, if the MPI of each rank allows that.
fn carrying(session: Session) -> Result<Result<Serialized, Session>, String> {
    let is_first = session.rank() == 0;
    if is_serialized(&session)? {
        return Ok(session.serialized());
    }
    if is_first {
        report(
            "the ranks use TCP in place of MPI: the library does not grant MPI_THREAD_SERIALIZED, or the program has initialised MPI itself",
        );
    }
    Ok(Err(session))
}

/// Starts to exchange messages of MPI, and to watch the ranks of this host.
fn over(
    session: Serialized,
    job: &Description,
    machines: Vec<usize>,
    shared: Option<Shared>,
    others: Option<Neighbours>,
    grace: Duration,
) -> Result<Link, String> {
    let Limits { heartbeat, silence } = job.limits;
    let limit = if silence.is_zero() { NEVER } else { (silence + heartbeat).max(LIMIT_MIN) };
    let (obituary, grace) = (Duration::ZERO, Some(grace));
    let limits = fencepost_transport::Limits { beat: heartbeat, limit, obituary, grace };
    let fabric = MpiFabric::over_mpi(session, machines, limits)
        .map_err(|error| format!("this rank can't exchange messages of MPI: {error}"))?;
    let shared = shared.filter(|_| job.reach != Reach::Tcp);
    let memory = shared.as_ref().map(|shared| Arc::clone(&shared.segment));
    if let Some(memory) = &memory {
        memory.keep_pages();
    }
    if let Some(others) = others {
        // Ranks are marked only in memory that this rank shares with other ranks.
        let marked = shared.filter(|shared| !shared.neighbours.is_empty()).map(|shared| shared.segment);
        watch(others, job.limits, marked, Some(fabric.reports()))?;
    }
    Ok(Link::over_mpi(memory, fabric))
}

/// Starts to watch the other ranks of this host. A rank that has ended is marked in the shared
/// memory by the nearest running rank before it. Each rank also reports the end to its own fabric,
/// which cannot detect the end of a process itself.
fn watch(
    others: Neighbours,
    limits: Limits,
    memory: Option<Arc<Segment>>,
    reports: Option<MpiReports>,
) -> Result<(), String> {
    let watcher = std::thread::Builder::new().name("fencepost watch".into());
    let watching = watcher.spawn(move || {
        others.watch(limits, |other, how, is_next| match (&memory, &reports) {
            (Some(memory), _) if is_next => {
                memory.mark_failed(other.local, how);
            }
            (_, Some(reports)) if !is_next => reports.mark_ended(other.rank as usize, how),
            _ => {}
        });
    });
    watching.map(drop).map_err(|error| format!("no thread can be started: {error}"))
}

/// Initialises the MPI of the launcher.
fn begin(external: &ExternalRank) -> Result<Session, String> {
    let &ExternalRank { launcher, rank, size, families } = external;
    let started = format!("{launcher} has started this process as rank {rank} of {size}");
    let instead = format!(
        "set {MPI} to the library of the MPI that has started it, or {RENDEZVOUS} to an address and port of the host of rank 0, such as 10.0.0.1:7777 (`fencepost mpi` shows what is found)"
    );
    // Without this check MPI would end this process inside MPI_Init.
    if launcher == "Slurm" && variable("SLURM_MPI_TYPE").is_none_or(|kind| kind == "none") {
        return Err(format!(
            "{started} without an interface for MPI: give srun --mpi=pmix, or --mpi=pmi2 for MPICH; or {instead}"
        ));
    }
    let named = std::env::var_os(MPI);
    let Search { found, passed_over } = search(named.as_deref().map(Path::new), families);
    let Some((source, mpi)) = found else {
        let why = match &passed_over[..] {
            [look] if named.is_some() => format!("{MPI} can't be used: {}", look.why),
            _ => "no MPI is found by which the ranks can meet".into(),
        };
        return Err(format!("{started}, and {why}: {instead}"));
    };
    let library = format!("{} ({source}, {})", mpi.path().display(), mpi.family());
    let session = mpi.begin().map_err(|why| format!("{started}, and {library} fails: {why}"))?;
    if (session.rank(), session.size()) != (rank as usize, size as usize) {
        return Err(format!(
            "{started}, but {library} makes it rank {} of {}, so it belongs to another launcher: {instead}",
            session.rank(),
            session.size()
        ));
    }
    Ok(session)
}

/// Takes the secret of rank 0, and compares the choices that must be the same on all ranks. Returns
/// the secret and these choices.
fn agree(session: &Session, own: Result<Choices, String>) -> Result<(Secret, Choices), String> {
    let program = digest_of_program(session)?;
    let drawn = || Secret::new().map_err(|error| format!("no secret can be drawn: {error}"));
    let secret = (session.rank() == 0).then(drawn).transpose();
    let given = own.and_then(|choices| Ok((choices, secret?)));
    let mut mine = vec![u8::from(given.is_err())];
    match &given {
        Ok((choices, secret)) => {
            let mut same = blake3::Hasher::new();
            same.update(&program);
            same.update(format!("{} {choices:?}", crate::RELEASE).as_bytes());
            mine.extend(same.finalize().as_bytes());
            mine.extend(secret.iter().flat_map(Secret::as_bytes));
        }
        Err(why) => mine.extend(why.as_bytes()),
    }
    let all = session.gather(Group::All, &mine)?;
    if let Some((rank, why)) = all.iter().enumerate().find(|(_, given)| given[0] == 1) {
        return Err(format!("rank {rank} can't join the job: {}", String::from_utf8_lossy(&why[1..])));
    }
    let (same, secret) = all[0].split_first_chunk::<33>().ok_or("rank 0 has sent no digest")?;
    if let Some(rank) = all.iter().position(|other| !other.starts_with(same)) {
        return Err(format!(
            "rank {rank} runs another program than rank 0, or another release of Fencepost, or has other variables (`fencepost env`): start one program with the same variables on all ranks"
        ));
    }
    let secret = secret.try_into().map_err(|_| "rank 0 has sent no secret")?;
    Ok((Secret::from_bytes(secret), given?.0))
}

/// Returns the digest of this rank's program. If the first rank of the host runs the same file,
/// that rank reads the file for this rank. A program that can't be read counts as different from
/// the programs of the other ranks.
fn digest_of_program(session: &Session) -> Result<Vec<u8>, String> {
    let path = Path::new("/proc/self/exe");
    let file = std::fs::metadata(path).map(|file| {
        let changed = [file.ctime(), file.ctime_nsec()].map(i64::cast_unsigned);
        [file.dev(), file.ino(), file.len(), changed[0], changed[1]].map(u64::to_le_bytes).concat()
    });
    let (rank, file) = ((session.rank() as u64).to_le_bytes(), file.unwrap_or_default());
    let given = session.gather(Group::Host, &[&rank[..], &file].concat())?;
    // The group is in the order of the ranks.
    let (first, of_first) = given[0].split_at(rank.len());
    let reads = first == rank || file.is_empty() || of_first != file;
    let digest = if reads { crate::digest(path).unwrap_or_default().to_vec() } else { Vec::new() };
    let mut digests = session.gather(Group::Host, &digest)?;
    Ok(if reads { digest } else { digests.swap_remove(0) })
}

/// The hosts of a job.
struct Hosts {
    /// The lowest rank of each rank's host.
    first_of: Vec<u32>,
    /// The name of each host, at the index of the host's lowest rank; all other names are empty.
    names: Vec<String>,
    /// The ranks of this host.
    here: Vec<u32>,
    /// The number of cores that the ranks of this host may use together.
    cores: u32,
}

impl Hosts {
    fn of(session: &Session) -> Result<Self, String> {
        let mut mine = (session.rank() as u32).to_le_bytes().to_vec();
        mine.extend(crate::pin::allowed_cores().into_iter().flat_map(|core| (core as u32).to_le_bytes()));
        let given = session.gather(Group::Host, &mine)?;
        let here: Vec<u32> = given.iter().map(|bytes| numbers(bytes)[0]).collect();
        let cores: BTreeSet<u32> = given.iter().flat_map(|bytes| numbers(bytes).split_off(1)).collect();
        let mut mine = here[0].to_le_bytes().to_vec();
        if here[0] as usize == session.rank() {
            mine.extend(uname().nodename().to_bytes());
        }
        let all = session.gather(Group::All, &mine)?;
        Ok(Self {
            first_of: all.iter().map(|bytes| numbers(&bytes[..4])[0]).collect(),
            names: all.iter().map(|bytes| String::from_utf8_lossy(&bytes[4..]).into_owned()).collect(),
            here,
            cores: cores.len() as u32,
        })
    }

    /// Returns the number of hosts.
    fn count(&self) -> usize {
        (0_u32..).zip(&self.first_of).filter(|(rank, first)| rank == *first).count()
    }

    /// Shares memory among the ranks of each host. If the ranks of a host can't share memory, each
    /// of them counts as a host of its own from here on, with memory of its own. If one of these
    /// ranks cannot create memory of its own either, all ranks of the job use TCP.
    fn share(mut self, session: &Session, shares: bool) -> Result<(Self, Option<Shared>), String> {
        let is_needed = shares && self.count() < self.first_of.len();
        let mut shared = if is_needed { Some(share(session, &self.here)?) } else { None };
        let is_shared = matches!(&shared, Some(Ok(_)));
        if let Some(Err(why)) = &shared {
            if self.here[0] as usize == session.rank() {
                report(&format!(
                    "the ranks of host {} can't share memory, and use TCP instead: {why}; FENCEPOST_SHARE=off does so without this report",
                    self.names[session.rank()]
                ));
            }
            shared = Some(Shared::alone());
        }
        let shared = shared.and_then(Result::ok);
        let all = session.gather(Group::All, &[u8::from(shared.is_some()), u8::from(is_shared)])?;
        let is_mixed = all.iter().all(|has| has[0] == 1);
        for (rank, has) in (0_u32..).zip(&all) {
            if !is_mixed || has[1] == 0 {
                let name = self.names[self.first_of[rank as usize] as usize].clone();
                self.names[rank as usize] = name;
                self.first_of[rank as usize] = rank;
            }
        }
        Ok((self, shared))
    }

    /// Returns how the ranks reach each other.
    fn reach(&self) -> Reach {
        match self.count() {
            1 => Reach::Shm,
            hosts if hosts == self.first_of.len() => Reach::Tcp,
            _ => Reach::Mixed,
        }
    }

    /// Returns the hosts in the order of the ranks. The hosts are numbered in the order of their
    /// lowest ranks.
    fn runs(&self) -> Vec<HostRanks> {
        let firsts: Vec<u32> = (0_u32..)
            .zip(&self.first_of)
            .filter(|(rank, first)| rank == *first)
            .map(|(rank, _)| rank)
            .collect();
        let run = |run: &[u32]| HostRanks {
            host: firsts.partition_point(|&first| first < run[0]) as u32,
            name: self.names[run[0] as usize].clone(),
            ranks: run.len() as u32,
        };
        self.first_of.chunk_by(|one, next| one == next).map(run).collect()
    }
}

/// Decodes 32-bit numbers.
fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// Reports a fact on standard error, in one line.
fn report(what: &str) {
    // An error means that standard error has no reader.
    let _: std::io::Result<()> = std::io::stderr().write_all(format!("fencepost: {what}\n").as_bytes());
}

/// A network in which a host has an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    address: IpAddr,
    /// The number of leading bits that all addresses of the network have in common.
    prefix: u8,
}

impl Network {
    fn has(&self, other: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let differ = bits(self.address) ^ bits(other);
        self.address.is_ipv4() == other.is_ipv4() && differ.leading_zeros() >= u32::from(self.prefix)
    }

    fn to_bytes(self) -> [u8; 18] {
        let mut bytes = [0; 18];
        let address = match self.address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        bytes[..16].copy_from_slice(&address.octets());
        bytes[16] = self.prefix;
        bytes[17] = u8::from(self.address.is_ipv4());
        bytes
    }

    fn from_bytes(bytes: &[u8; 18]) -> Self {
        let [address @ .., prefix, is_v4] = bytes;
        let address = Ipv6Addr::from(*address);
        let v4 = address.to_ipv4_mapped().filter(|_| *is_v4 == 1);
        Self { address: v4.map_or(IpAddr::V6(address), IpAddr::V4), prefix: *prefix }
    }
}

/// Returns the networks of this host through which others may reach it, with those of IP version 4
/// first.
fn networks() -> Vec<Network> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let usable = interfaces
        .iter()
        .filter(|interface| interface.is_oper_up() && !interface.is_loopback() && !interface.is_link_local());
    let network = |interface: &if_addrs::Interface| match &interface.addr {
        if_addrs::IfAddr::V4(v4) => Network { address: v4.ip.into(), prefix: v4.prefixlen },
        if_addrs::IfAddr::V6(v6) => Network { address: v6.ip.into(), prefix: v6.prefixlen },
    };
    let mut networks: Vec<Network> = usable.map(network).collect();
    networks.sort_by_key(|network| !network.address.is_ipv4());
    networks
}

/// Returns the address at which this rank listens. On one host this is the loopback address. On
/// several hosts it is this host's address in a network of rank 0: the first network in which each
/// host has an address of its own. Without such a network, this rank listens at the address from
/// which this host reaches rank 0. The inner error concerns this rank alone.
fn address(session: &Session, hosts: &Hosts) -> Result<Result<IpAddr, String>, String> {
    if hosts.count() == 1 {
        return Ok(Ok(Ipv4Addr::LOCALHOST.into()));
    }
    let mine = networks();
    let given: Vec<u8> = if session.rank() == 0 {
        mine.iter().flat_map(|network| network.to_bytes()).collect()
    } else {
        Vec::new()
    };
    let of_rank_0: Vec<Network> =
        session.gather(Group::All, &given)?[0].as_chunks().0.iter().map(Network::from_bytes).collect();
    let in_each: Vec<Option<IpAddr>> = of_rank_0.iter().map(|network| within(network, &mine)).collect();
    let given: Vec<String> = in_each.iter().map(|ip| ip.map_or("-".into(), |ip| ip.to_string())).collect();
    let all: Vec<Vec<u8>> = session.gather(Group::All, given.join(" ").as_bytes())?;
    let all: Vec<Vec<String>> = all
        .iter()
        .map(|bytes| String::from_utf8_lossy(bytes).split(' ').map(str::to_owned).collect())
        .collect();
    let common = (0..of_rank_0.len()).find(|&at| is_common(&all, &hosts.first_of, at));
    if let Some(address) = common.and_then(|at| in_each[at]) {
        return Ok(Ok(address));
    }
    let towards = |network: &Network| {
        let any: IpAddr = if network.address.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        // Connecting a UDP socket sends nothing, but looks up the route.
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((network.address, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    Ok(of_rank_0.iter().find_map(towards).ok_or_else(|| {
        format!(
            "no network leads to the host of rank 0, whose addresses are {:?}: set {RENDEZVOUS} to an address and port of it that all hosts reach, and FENCEPOST_SECRET_FILE",
            of_rank_0.iter().map(|network| network.address).collect::<Vec<_>>()
        )
    }))
}

/// Returns whether each host has an address of its own in the network with index `at`, given the
/// addresses that each rank has sent. This excludes bridges of virtual machines and containers,
/// which have the same address on each host.
fn is_common(all: &[Vec<String>], first_of: &[u32], at: usize) -> bool {
    let mut host_of = BTreeMap::new();
    all.iter().zip(first_of).all(|(addresses, host)| match addresses.get(at).map(String::as_str) {
        None | Some("-") => false,
        Some(address) => host_of.insert(address, host).is_none_or(|other| other == host),
    })
}

/// Returns the first of these addresses that is in `network`.
fn within(network: &Network, mine: &[Network]) -> Option<IpAddr> {
    mine.iter().map(|mine| mine.address).find(|&address| network.has(address))
}

/// Starts to listen, gathers the addresses of all ranks, and starts to watch the ranks of this
/// host.
fn listen(
    session: &Session,
    job: &Description,
    shared: Result<Option<Shared>, String>,
) -> Result<(Link, Vec<SocketAddr>), String> {
    let join = |shared: Option<Shared>| {
        let shared = shared.filter(|_| job.reach != Reach::Tcp);
        let memory = shared.as_ref().map(|shared| Arc::clone(&shared.segment));
        let joined = Link::join(job, memory, false)?;
        if let Some(Shared { segment, neighbours }) = shared {
            watch(neighbours, job.limits, Some(segment), None)?;
        }
        Ok(joined)
    };
    let joined = shared.and_then(join);
    // All ranks make the same calls of MPI, so a rank that can't join sends the reason in place of
    // its address.
    let given = match &joined {
        Ok((_, Some(address))) => address.to_string(),
        Ok((_, None)) => "0.0.0.0:0".into(),
        Err(why) => why.clone(),
    };
    let all = session.gather(Group::All, given.as_bytes())?;
    let read = |(rank, text): (usize, &Vec<u8>)| {
        let text = String::from_utf8_lossy(text);
        text.parse().map_err(|_| format!("rank {rank} can't join the job: {text}"))
    };
    let table = all.iter().enumerate().map(read).collect::<Result<_, String>>()?;
    Ok((joined?.0, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_host_need_not_be_consecutive() {
        let hosts = |first_of: &[u32]| Hosts {
            first_of: first_of.to_vec(),
            names: (0..first_of.len()).map(|rank| format!("host of {rank}")).collect(),
            here: Vec::new(),
            cores: 1,
        };
        let run = |host, first: u32, ranks| HostRanks { host, name: format!("host of {first}"), ranks };
        let of = |first_of: &[u32]| (hosts(first_of).reach(), hosts(first_of).runs());
        assert_eq!(of(&[0, 0, 2, 2, 2]), (Reach::Mixed, vec![run(0, 0, 2), run(1, 2, 3)]));
        let in_turn = vec![run(0, 0, 1), run(1, 1, 1), run(0, 0, 1), run(1, 1, 1)];
        assert_eq!(of(&[0, 1, 0, 1]), (Reach::Mixed, in_turn));
        assert_eq!(of(&[0; 4]), (Reach::Shm, vec![run(0, 0, 4)]));
        assert_eq!(of(&[0, 1]), (Reach::Tcp, vec![run(0, 0, 1), run(1, 1, 1)]));
    }

    #[test]
    fn an_address_is_chosen_in_a_network_that_both_hosts_have() {
        let network = |text: &str, prefix| Network { address: text.parse().expect("an address"), prefix };
        let mine = [network("192.168.7.5", 16), network("10.1.2.3", 24), network("fd00::5", 64)];
        let chosen = |text: &str, prefix| within(&network(text, prefix), &mine).map(|ip| ip.to_string());
        assert_eq!(chosen("10.1.2.200", 24).as_deref(), Some("10.1.2.3"));
        assert_eq!(chosen("10.1.3.3", 24), None);
        assert_eq!(chosen("fd00::1", 64).as_deref(), Some("fd00::5"));
        assert_eq!(chosen("::ffff:10.1.2.3", 96), None, "an address of version 6");
        let given = [
            ["10.0.0.1", "172.17.0.1"],
            ["10.0.0.1", "172.17.0.1"],
            ["10.0.0.2", "172.17.0.1"],
            ["10.0.0.3", "-"],
        ];
        let given = given.map(|addresses| addresses.map(str::to_owned).to_vec());
        let common = |ranks: usize, at| is_common(&given[..ranks], &[0, 0, 2, 3][..ranks], at);
        assert!(common(4, 0) && !common(3, 1), "a bridge has one address on both hosts");
        assert!(common(2, 1) && !common(4, 1) && !common(4, 2), "each host needs an address");
        for network in mine {
            assert_eq!(Network::from_bytes(&network.to_bytes()), network);
        }
    }
}
