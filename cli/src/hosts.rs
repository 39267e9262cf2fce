//! Lists of hosts, and the assignment of ranks to hosts.

use std::net::Ipv6Addr;

/// A host as named by the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// The name that is passed to the remote command.
    pub name: String,
    /// The address or interface at which the host's ranks listen, if the user named one.
    pub address: Option<String>,
    /// The number of ranks that the host can take, if the user gave one.
    pub ranks: Option<u32>,
}

/// Parses a comma-separated list of `NAME`, `NAME:RANKS`, `NAME=ADDRESS` and `NAME=ADDRESS:RANKS`.
pub fn list(text: &str) -> Result<Vec<Named>, String> {
    text.split(',').map(|word| one(word.trim())).collect()
}

fn one(word: &str) -> Result<Named, String> {
    let bad = || format!("`{word}` is not a host: give NAME, NAME:RANKS, NAME=ADDRESS or NAME=ADDRESS:RANKS");
    // An IPv6 address contains colons itself, so a number of ranks can follow the address only if
    // the address is in brackets.
    let alone = word.split_once('=').is_some_and(|(_, address)| address.parse::<Ipv6Addr>().is_ok());
    let (rest, ranks) = match word.rsplit_once(':') {
        _ if alone => (word, None),
        Some((rest, count)) if !count.contains(']') => (rest, Some(number(count).ok_or_else(bad)?)),
        _ => (word, None),
    };
    let (name, address) = match rest.split_once('=') {
        Some((name, address)) => (name, Some(address.trim_matches(['[', ']']).to_owned())),
        None => (rest, None),
    };
    let whole =
        |text: &str| !text.is_empty() && !text.contains(char::is_whitespace) && !text.starts_with('-');
    if !whole(name) || !address.as_deref().is_none_or(whole) {
        return Err(bad());
    }
    Ok(Named { name: name.to_owned(), address, ranks })
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number > 0)
}

/// Parses a host file with one host in each line. A line has a form of [`list`], or the form `NAME
/// slots=RANKS address=ADDRESS`. `#` starts a comment.
pub fn file(text: &str) -> Result<Vec<Named>, String> {
    let mut hosts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(first) = words.next() else { continue };
        let on_line = |why: String| format!("line {}: {why}", at + 1);
        let mut host = one(first).map_err(on_line)?;
        for word in words {
            match word.split_once('=') {
                Some(("slots" | "ranks", count)) => {
                    let bad = || on_line(format!("`{word}`: the number of ranks must be at least 1"));
                    host.ranks = Some(number(count).ok_or_else(bad)?);
                }
                Some(("address", address)) => host.address = Some(address.to_owned()),
                _ => {
                    return Err(on_line(format!(
                        "`{word}`: only `slots=RANKS` and `address=ADDRESS` may follow a host"
                    )));
                }
            }
        }
        hosts.push(host);
    }
    if hosts.is_empty() { Err("the file names no host".into()) } else { Ok(hosts) }
}

/// Returns the number of ranks of each host, in the order of `hosts`. The total is `ranks`, or as
/// many ranks as the hosts can take.
///
/// If no host has a number of its own, the hosts share the ranks evenly. If a remainder is left,
/// the first hosts get one more rank each. If some hosts have a number of their own, each host
/// without a number takes one rank.
pub fn share(hosts: &[Named], ranks: Option<u32>) -> Result<Vec<u32>, String> {
    if let (Some(ranks), true) = (ranks, hosts.iter().all(|host| host.ranks.is_none())) {
        let (each, more) = (ranks / hosts.len() as u32, ranks % hosts.len() as u32);
        return Ok((0..hosts.len() as u32).map(|at| each + u32::from(at < more)).collect());
    }
    let room: Vec<u32> = hosts.iter().map(|host| host.ranks.unwrap_or(1)).collect();
    let all: u64 = room.iter().map(|&ranks| u64::from(ranks)).sum();
    let mut left = ranks.map_or(all, u64::from);
    if ranks.is_some_and(|ranks| u64::from(ranks) > all) {
        return Err(format!(
            "{} ranks do not fit on the hosts, which take {all}: ask for fewer ranks, or raise the numbers of the hosts",
            ranks.unwrap_or_default()
        ));
    }
    Ok(room
        .into_iter()
        .map(|room| {
            // The result is at most `room`, which has 32 bits.
            let here = u64::from(room).min(left) as u32;
            left -= u64::from(here);
            here
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, address: Option<&str>, ranks: Option<u32>) -> Named {
        Named { name: name.into(), address: address.map(str::to_owned), ranks }
    }

    #[test]
    fn a_list_names_hosts_addresses_and_ranks() {
        let all = list("a,b:3, c=10.0.0.3:2 ,d=[fe80::1]:4,e=eth0,f=[::1],g=::1").expect("hosts");
        assert_eq!(
            all,
            [
                host("a", None, None),
                host("b", None, Some(3)),
                host("c", Some("10.0.0.3"), Some(2)),
                host("d", Some("fe80::1"), Some(4)),
                host("e", Some("eth0"), None),
                host("f", Some("::1"), None),
                host("g", Some("::1"), None),
            ]
        );
        for bad in ["", "a,,b", "a:0", "a:x", "=1", "a=", "a b", "-oProxyCommand=x", "a:4294967296"] {
            assert!(list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_host_file_has_comments_and_two_forms_of_rank_counts() {
        let all = file("# all of them\n\na slots=4\nb:2 # the small one\nc ranks=1 address=ib0\n");
        let named = [host("a", None, Some(4)), host("b", None, Some(2)), host("c", Some("ib0"), Some(1))];
        assert_eq!(all, Ok(named.into()));
        for (bad, says) in [("a\nb slots=0", "line 2"), ("a cores=4", "slots="), ("# none", "no host")] {
            assert!(file(bad).expect_err("must be refused").contains(says), "{bad:?}");
        }
    }

    #[test]
    fn ranks_fill_the_hosts_in_order_or_are_shared_evenly() {
        let any = [host("a", None, None), host("b", None, None), host("c", None, None)];
        assert_eq!(share(&any, Some(5)), Ok(vec![2, 2, 1]));
        assert_eq!(share(&any, Some(2)), Ok(vec![1, 1, 0]));
        assert_eq!(share(&any, None), Ok(vec![1, 1, 1]));
        let some = [host("a", None, Some(2)), host("b", None, None), host("c", None, Some(3))];
        assert_eq!(share(&some, None), Ok(vec![2, 1, 3]));
        assert_eq!(share(&some, Some(4)), Ok(vec![2, 1, 1]));
        assert!(share(&some, Some(7)).expect_err("too many").contains("take 6"));
    }
}
