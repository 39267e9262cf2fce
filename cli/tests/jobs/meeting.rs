//! Jobs of external launchers. Environment variables assign the ranks, and the ranks find each
//! other at an address.

use crate::launched::{Launched, await_end, process, rank_program, start};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// A file with a secret. It is removed on drop.
struct SecretFile(std::path::PathBuf);

impl SecretFile {
    fn new(mode: u32, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("fencepost-secret-{}-{mode:o}", std::process::id()));
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).expect("a file");
        file.write_all(bytes).expect("written");
        Self(path)
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("it is there");
    }
}

/// Returns an address with a port that was free a moment ago.
fn somewhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").to_string()
}

/// Starts all ranks of a job with these variables. `{}` in a value is replaced by the rank.
fn ranks(size: usize, variables: &[(&str, &str)], words: &[&str]) -> Vec<Launched> {
    let one = |rank: usize| {
        let values: Vec<String> =
            variables.iter().map(|(_, value)| value.replace("{}", &rank.to_string())).collect();
        let pairs: Vec<(&str, &str)> =
            variables.iter().zip(&values).map(|((name, _), value)| (*name, value.as_str())).collect();
        start(&rank_program(), &[&["rank"], words].concat(), &pairs)
    };
    // Rank 0 starts last, so the other ranks have to wait for rank 0.
    (0..size).rev().map(one).collect()
}

pub fn launchers() {
    let secret = SecretFile::new(0o600, &[7; 32]);
    let file = secret.0.display().to_string();
    let launchers: &[&[(&str, &str)]] = &[
        &[("SLURM_PROCID", "{}"), ("SLURM_NTASKS", "3"), ("SLURM_STEP_ID", "0")],
        &[("PMI_RANK", "{}"), ("PMI_SIZE", "3")],
        &[("OMPI_COMM_WORLD_RANK", "{}"), ("OMPI_COMM_WORLD_SIZE", "3")],
        &[("PALS_RANKID", "{}"), ("PMI_SIZE", "3")],
        &[("FLUX_TASK_RANK", "{}"), ("FLUX_JOB_SIZE", "3")],
    ];
    for variables in launchers {
        let at = somewhere();
        let met = [("FENCEPOST_RENDEZVOUS", at.as_str()), ("FENCEPOST_SECRET_FILE", &file)];
        let mut said: Vec<String> = Vec::new();
        for rank in ranks(3, &[variables, &met[..]].concat(), &["well"]) {
            said.push(rank.end().expect(0).out.clone());
        }
        assert_eq!(said, [1, 0, 2].map(|before| format!("before me {before}\n").repeat(2)), "{variables:?}");
    }
}

pub fn refusals() {
    let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "4")];
    let one = |more: &[(&str, &str)], words: &[&str]| {
        start(&rank_program(), &[&["rank"], words].concat(), &[&pmi, more].concat()).end()
    };
    let says = |ended: crate::launched::Ended, text: &str| {
        assert!(
            ended.code != Some(0) && (ended.out.clone() + &ended.err).contains(text),
            "{text}: {ended:#?}"
        );
    };
    // Without an address, the ranks find each other through an MPI library.
    let no_mpi = [("FENCEPOST_MPI", "/no/such/libmpi.so")];
    says(one(&no_mpi, &["well"]), "FENCEPOST_MPI can't be used: /no/such/libmpi.so");
    says(one(&no_mpi, &["well"]), "or FENCEPOST_RENDEZVOUS to an address");
    says(one(&[("FENCEPOST_MPI", "libc.so.6")], &["well"]), "MPI_");
    let step = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "3"), ("SLURM_STEP_ID", "0")];
    says(start(&rank_program(), &["rank", "well"], &step).end(), "give srun --mpi=pmix");
    let at = somewhere();
    says(one(&[("FENCEPOST_RENDEZVOUS", &at)], &["well"]), "set FENCEPOST_SECRET_FILE to a file");
    let open = SecretFile::new(0o644, &[7; 32]);
    let short = SecretFile::new(0o600, &[7; 31]);
    for (file, text) in [(&open, "chmod 600"), (&short, "32 random bytes")] {
        let file = file.0.display().to_string();
        says(one(&[("FENCEPOST_RENDEZVOUS", &at), ("FENCEPOST_SECRET_FILE", &file)], &["well"]), text);
    }
    drop(short);
    // The file is a named pipe without a writer. The rank must not wait for a writer.
    let pipe = std::env::temp_dir().join(format!("fencepost-secret-{}-pipe", std::process::id()));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let set =
        [("FENCEPOST_RENDEZVOUS", at.as_str()), ("FENCEPOST_SECRET_FILE", pipe.to_str().expect("text"))];
    let rank = start(&rank_program(), &["rank", "well"], &[&pmi[..], &set].concat());
    await_end(&process(&rank.pid().as_raw_nonzero().to_string()));
    says(rank.end(), "regular file");
    std::fs::remove_file(&pipe).expect("it is there");
    let secret = SecretFile::new(0o600, &[8; 32]);
    let file = secret.0.display().to_string();
    let met = [("FENCEPOST_RENDEZVOUS", at.as_str()), ("FENCEPOST_SECRET_FILE", &file)];
    // The program asks for another number of ranks than the launcher has started.
    let two = [("PMI_RANK", "{}"), ("PMI_SIZE", "2")];
    for rank in ranks(2, &[&two, &met[..]].concat(), &["ask", "3"]) {
        let ended = rank.end();
        assert!(
            ended.expect(1).out.contains("asks for 3 ranks") && ended.out.contains("has 2"),
            "{ended:#?}"
        );
    }
}
