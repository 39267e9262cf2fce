//! Finds the address at which a rank listens, from an address or the name of an interface.

use std::net::{IpAddr, ToSocketAddrs};

/// Returns the address that `text` denotes: an IP address, or the name of an interface of this
/// machine.
///
/// # Errors
/// `text` is neither an address nor an interface; the message lists the interfaces.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let all = if_addrs::get_if_addrs()
        .map_err(|error| format!("the network interfaces can't be listed: {error}"))?;
    let addresses = || all.iter().filter(|interface| interface.name == text).map(if_addrs::Interface::ip);
    addresses().find(IpAddr::is_ipv4).or_else(|| addresses().next()).ok_or_else(|| {
        let mut names: Vec<&str> = all.iter().map(|interface| interface.name.as_str()).collect();
        names.dedup();
        format!(
            "`{text}` is neither an address nor an interface that has one: the interfaces here are {}",
            names.join(", ")
        )
    })
}

/// Resolves the name of a host to an address, preferably of IP version 4.
///
/// # Errors
/// The name has no address.
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
    fn addresses_and_interface_names_are_resolved() {
        assert_eq!(address("127.0.0.9"), Ok(IpAddr::from([127, 0, 0, 9])));
        assert_eq!(address("lo"), Ok(IpAddr::from([127, 0, 0, 1])));
        let refused = address("no such").expect_err("no interface");
        assert!(refused.contains("neither") && refused.contains("lo"), "{refused}");
    }
}
