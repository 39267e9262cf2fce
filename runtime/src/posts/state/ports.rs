//! The ports of the objects that a world makes: windows, and plans of posts and starts.

use fencepost_transport::{Channels, Endpoint, Port};

/// The number of ports of each object that a world makes.
const PORTS: u32 = 3;

/// The first port of the first object that a world makes. Lower ports are the world's own.
const FIRST: u32 = 5;

/// Returns the ports of the object with this number that a world has made, or `None` if no port
/// numbers are left. No two objects share a port.
pub(crate) fn ports_of(number: u32) -> Option<[Port; PORTS as usize]> {
    let last = number.checked_mul(PORTS)?.checked_add(FIRST + PORTS - 1)?;
    Some([2, 1, 0].map(|before| Port(last - before)))
}

/// Returns the number of the object to which this port belongs. The port must not be one of the
/// world's own.
pub(crate) fn number_of(Port(port): Port) -> u32 {
    (port - FIRST) / PORTS
}

/// Closes the ports, except `kept`, of the object with this number. The world does not use the
/// object any more.
///
/// All ports of a world's objects are closed in the end, even the ports that this rank has not
/// used. So frames that other ranks have sent on such a port are freed, and closed ports of objects
/// with successive numbers form one range.
pub(crate) fn close(number: u32, kept: Option<Port>, endpoint: &mut Endpoint) {
    let ports = ports_of(number).into_iter().flatten().filter(|port| Some(*port) != kept);
    ports.for_each(|port| endpoint.close(port));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_of_one_thing_each_until_there_are_no_more() {
        assert!(Port::RECORDS < Port(FIRST));
        assert_eq!(ports_of(0), Some([Port(5), Port(6), Port(7)]));
        assert_eq!(ports_of(1), Some([Port(8), Port(9), Port(10)]));
        assert_eq!([7, 8, 10, 11].map(|port| number_of(Port(port))), [0, 1, 1, 2]);
        let last = (u32::MAX - FIRST + 1) / PORTS - 1;
        assert!(ports_of(last).is_some() && ports_of(last + 1).is_none() && ports_of(u32::MAX).is_none());
    }
}
