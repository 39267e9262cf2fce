//! `fencepost mpi`: shows the MPI library through which ranks find each other if another launcher
//! starts them. Also shows the libraries that the search passed over before it found this library.

use fencepost_transport::mpi::{Look, Search, search};
use std::fmt::Write;
use std::path::Path;

/// Returns lines that describe the result of the search, and whether a library was found.
pub fn listed(named: Option<&Path>) -> (String, bool) {
    let Search { found, passed_over } = search(named, fencepost_job::interfaces_of_launcher());
    let mut text = String::new();
    let _ = match &found {
        Some((source, mpi)) => writeln!(
            text,
            "{}\n  library    {}\n  source     {source}\n  interface  {}",
            mpi.version(),
            mpi.path().display(),
            mpi.family()
        ),
        None => {
            writeln!(text, "no MPI is found: install one, or set FENCEPOST_MPI to the path of its library")
        }
    };
    if !passed_over.is_empty() {
        text += "passed over\n";
    }
    for Look { source, library, why } in passed_over {
        let library = library.map_or(String::new(), |path| format!(", {}", path.display()));
        let _ = writeln!(text, "  {source}{library}: {why}");
    }
    text += "Ranks use the library of the launcher that has started them: `mpirun -n 1 fencepost mpi` shows it.\n";
    (text, found.is_some())
}
