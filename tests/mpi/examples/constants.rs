//! Prints the constants of an interface of MPI, `open-mpi`, `mpich` or `standard`, as `constants.c`
//! prints the constants of a header.

use fencepost_transport::mpi::{Family, numbers};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let family = match std::env::args().nth(1).as_deref() {
        Some("open-mpi") => Family::OpenMpi,
        Some("mpich") => Family::Mpich,
        Some("standard") => Family::Standard,
        other => panic!("{other:?}: give open-mpi, mpich or standard"),
    };
    for (name, value) in numbers(family) {
        writeln!(std::io::stdout(), "{name} {value}")?;
    }
    Ok(())
}
