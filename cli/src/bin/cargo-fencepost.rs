//! `cargo fencepost ..`: runs the command `fencepost` that is installed next to this one.

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // The first argument that cargo passes is `fencepost`, its own name for this command.
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == "fencepost") {
        words.remove(0);
    }
    let own = std::env::current_exe().unwrap_or_default();
    let sibling = own.with_file_name(format!("fencepost{}", std::env::consts::EXE_SUFFIX));
    let program = if sibling.is_file() { sibling.as_path() } else { Path::new("fencepost") };
    match Command::new(program).args(words).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1)),
        Err(error) => {
            let why = format!("cargo-fencepost: {}: {error}\n", program.display());
            // A write fails only if standard error has no reader.
            let _: std::io::Result<()> = std::io::Write::write_all(&mut std::io::stderr(), why.as_bytes());
            ExitCode::from(fencepost_job::USAGE)
        }
    }
}
