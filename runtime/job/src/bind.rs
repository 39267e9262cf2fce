//! Which address a rank listens at: given itself, or by the interface that has it.

use std::net::{IpAddr, ToSocketAddrs};

/// The address that `text` says: an address, or an interface of this machine by its name.
///
/// # Errors
/// It is neither; which interfaces there are.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let all = if_addrs::get_if_addrs().map_err(|error| format!("interfaces can't be listed: {error}"))?;
    let of_it = || all.iter().filter(|interface| interface.name == text).map(if_addrs::Interface::ip);
    of_it().find(IpAddr::is_ipv4).or_else(|| of_it().next()).ok_or_else(|| {
        let mut names: Vec<&str> = all.iter().map(|interface| interface.name.as_str()).collect();
        names.dedup();
        format!("`{text}` is neither an address nor an interface with one: there are {}", names.join(", "))
    })
}

/// The address that a host's name stands for.
///
/// # Errors
/// It stands for none.
pub fn resolve(host: &str) -> Result<IpAddr, String> {
    let found = (host, 0).to_socket_addrs().map_err(|error| format!("unknown host `{host}`: {error}"))?;
    let all: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    let first = all.iter().find(|ip| ip.is_ipv4()).or(all.first());
    first.copied().ok_or_else(|| format!("unknown host `{host}`: it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_itself_and_an_interface_has_its_own() {
        assert_eq!(address("127.0.0.9"), Ok(IpAddr::from([127, 0, 0, 9])));
        assert_eq!(address("lo"), Ok(IpAddr::from([127, 0, 0, 1])));
        let refused = address("no such").expect_err("no interface");
        assert!(refused.contains("neither") && refused.contains("lo"), "{refused}");
    }
}
