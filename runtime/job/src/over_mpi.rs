//! [`meet`]: how the ranks that a launcher of MPI has started find each other, over that MPI. Nothing has to be configured.
//!
//! MPI is used only for that: it is initialised, each rank gathers what the others give, and it is finalised. From then on the
//! ranks use their own connections.

use crate::description::{Description, HostRanks, Reach};
use crate::environment::{ExternalRank, MPI, RENDEZVOUS};
use crate::link::Link;
use crate::rendezvous::job_of;
use crate::settings::Settings;
use fencepost_transport::auth::Secret;
use fencepost_transport::mpi::{Group, Search, Session, search};
use rustix::system::uname;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Meets the other ranks over the MPI of their launcher. Returns the description of the job, this rank's transports, and the address
/// that each rank listens at.
///
/// # Errors
/// No MPI is found, or one that another launcher belongs to; a rank runs another program, or can't listen.
pub(crate) fn meet(external: &ExternalRank) -> Result<(Description, Link, Vec<SocketAddr>), String> {
    let settings = Settings::from_environment()?;
    let session = begin(external)?;
    let secret = agree(&session, &settings)?;
    let (hosts, cores) = hosts(&session)?;
    fencepost_transport::set_cores(cores as usize);
    let job = Description {
        job: job_of(&secret),
        secret,
        rank: external.rank,
        size: external.size,
        reach: Reach::Tcp,
        cores,
        bind: address(&session, hosts.len() > 1)?,
        hosts,
        sealed: settings.sealed,
        limits: settings.limits,
    };
    let (link, table) = listen(&session, &job)?;
    session.end();
    Ok((job, link, table))
}

/// Initialises the MPI of the launcher.
fn begin(external: &ExternalRank) -> Result<Session, String> {
    let &ExternalRank { launcher, rank, size, families } = external;
    let started = format!("{launcher} has started this process as rank {rank} of {size}");
    let instead = format!(
        "set {MPI} to the library of the MPI that has started it, or {RENDEZVOUS} to an address and port of the host of rank 0, such as 10.0.0.1:7777 (`fencepost mpi` shows what is found)"
    );
    let named = crate::environment::variable(MPI);
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

/// Takes the secret of rank 0, and compares what has to be the same on all ranks.
fn agree(session: &Session, settings: &Settings) -> Result<Secret, String> {
    let mut same = blake3::Hasher::new();
    // A program that can't be read is not compared: where one rank can read it, all should.
    same.update(&crate::digest(Path::new("/proc/self/exe")).unwrap_or_default());
    same.update(format!("{} {settings:?}", crate::RELEASE).as_bytes());
    let mut mine = same.finalize().as_bytes().to_vec();
    if session.rank() == 0 {
        let secret = Secret::new().map_err(|error| format!("no secret can be drawn: {error}"))?;
        mine.extend(secret.as_bytes());
    }
    let all = session.gather(Group::All, &mine)?;
    let (same, secret) = all[0].split_first_chunk::<32>().ok_or("rank 0 has sent no digest")?;
    if let Some(rank) = all.iter().position(|other| !other.starts_with(same)) {
        return Err(format!(
            "rank {rank} runs another program than rank 0, or another release of Fencepost, or has other variables (`fencepost env`): start one program with the same variables on all ranks"
        ));
    }
    let secret = secret.try_into().map_err(|_| "rank 0 has sent no secret")?;
    Ok(Secret::from_bytes(secret))
}

/// Returns the hosts of all ranks, and the number of cores that the ranks of this one may use together.
fn hosts(session: &Session) -> Result<(Vec<HostRanks>, u32), String> {
    let mut mine = (session.rank() as u32).to_le_bytes().to_vec();
    mine.extend(crate::pin::allowed_cores().into_iter().flat_map(|core| (core as u32).to_le_bytes()));
    let here = session.gather(Group::Host, &mine)?;
    let numbers = |bytes: &[u8]| -> Vec<u32> {
        bytes
            .chunks_exact(4)
            .map(|bytes| bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte)))
            .collect()
    };
    let cores: BTreeSet<u32> = here.iter().flat_map(|bytes| numbers(bytes).split_off(1)).collect();
    // The lowest rank of a host stands for it, and gives its name.
    let first = numbers(&here[0])[0];
    let mut mine = first.to_le_bytes().to_vec();
    if first == session.rank() as u32 {
        mine.extend(uname().nodename().to_bytes());
    }
    let all = session.gather(Group::All, &mine)?;
    let first_of: Vec<usize> = all.iter().map(|bytes| numbers(&bytes[..4])[0] as usize).collect();
    let name = |rank: usize| String::from_utf8_lossy(&all[rank][4..]).into_owned();
    Ok((runs(&first_of, name), cores.len() as u32))
}

/// Returns the hosts, from the lowest rank of each rank's host. They are numbered in the order of these.
fn runs(first_of: &[usize], name: impl Fn(usize) -> String) -> Vec<HostRanks> {
    let firsts: Vec<usize> = (0..first_of.len()).filter(|&rank| first_of[rank] == rank).collect();
    let equal = first_of.chunk_by(|one, next| one == next);
    equal
        .map(|run| HostRanks {
            host: firsts.partition_point(|&first| first < run[0]) as u32,
            name: name(run[0]),
            ranks: run.len() as u32,
        })
        .collect()
}

/// A network that a host has an address in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    address: IpAddr,
    /// The number of bits that all addresses of the network have in common.
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

/// Returns the networks of this host through which others may reach it, those of version 4 first.
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

/// Returns the address that this rank listens at: on one host that of loopback; on several that in the first network of rank 0 that
/// all hosts have an address in; if there is none, the address from which this host reaches rank 0.
fn address(session: &Session, has_hosts: bool) -> Result<IpAddr, String> {
    if !has_hosts {
        return Ok(Ipv4Addr::LOCALHOST.into());
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
    let has: Vec<u8> = in_each.iter().map(|address| u8::from(address.is_some())).collect();
    let all = session.gather(Group::All, &has)?;
    let common = (0..of_rank_0.len()).find(|&at| all.iter().all(|has| has[at] == 1));
    if let Some(address) = common.and_then(|at| in_each[at]) {
        return Ok(address);
    }
    let towards = |network: &Network| {
        let any: IpAddr = if network.address.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        // Connecting a socket of UDP sends nothing: it asks for the route.
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((network.address, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    of_rank_0.iter().find_map(towards).ok_or_else(|| {
        format!(
            "rank {} finds no network to the host of rank 0, whose addresses are {:?}: set {RENDEZVOUS} to one that all hosts reach",
            session.rank(),
            of_rank_0.iter().map(|network| network.address).collect::<Vec<_>>()
        )
    })
}

/// Returns the first of these addresses that is in a network.
fn within(network: &Network, mine: &[Network]) -> Option<IpAddr> {
    mine.iter().map(|mine| mine.address).find(|&address| network.has(address))
}

/// Starts to listen, and gathers the addresses of all ranks.
fn listen(session: &Session, job: &Description) -> Result<(Link, Vec<SocketAddr>), String> {
    let joined = Link::join(job, None, false);
    // All ranks go through the same calls of MPI, so a rank that can't listen says so in place of its address.
    let given = match &joined {
        Ok((_, Some(address))) => address.to_string(),
        Ok((_, None)) => "it does not listen".into(),
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
        let name = |rank: usize| format!("host of {rank}");
        let run = |host, first: usize, ranks| HostRanks { host, name: name(first), ranks };
        assert_eq!(runs(&[0, 0, 2, 2, 2], name), [run(0, 0, 2), run(1, 2, 3)]);
        assert_eq!(runs(&[0, 1, 0, 1], name), [run(0, 0, 1), run(1, 1, 1), run(0, 0, 1), run(1, 1, 1)]);
        assert_eq!(runs(&[0; 4], name), [run(0, 0, 4)]);
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
        for network in mine {
            assert_eq!(Network::from_bytes(&network.to_bytes()), network);
        }
    }
}
