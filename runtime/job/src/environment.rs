//! External launchers. The table lists the environment variables with which a launcher passes each
//! process its rank and the number of ranks, and the MPI whose processes the launcher starts.
//!
//! | launcher | rank | ranks | MPI | used only if |
//! |---|---|---|---|---|
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | Open MPI | |
//! | PMI (MPICH, Intel) | `PMI_RANK` | `PMI_SIZE` | MPICH, also in a step of Slurm by `--mpi=pmi2` | |
//! | PALS | `PALS_RANKID` | `PMI_SIZE` | any | |
//! | Flux | `FLUX_TASK_RANK` | `FLUX_JOB_SIZE` | any | |
//! | Slurm | `SLURM_PROCID` | `SLURM_NTASKS` | any | `SLURM_STEP_ID` is set: a batch script is not a step |
//!
//! The first row whose variables are set counts. A launcher of MPI inside a job of Slurm or Flux
//! starts its own helpers through the batch system. The ranks then find the variables of both
//! launchers, and the variables of the batch system describe the helpers. Source: Open MPI 4.1 and
//! MPICH 4.0 as observed; the manuals of Slurm, Flux and PALS.

use crate::start::RANKS_MAX;
use fencepost_transport::mpi::Family;

/// One row of the table.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    only_with: Option<&'static str>,
    /// The interfaces of the MPI whose processes the launcher starts; empty if any is possible.
    families: &'static [Family],
}

const fn launcher(name: &'static str, rank: &'static str, size: &'static str) -> Launcher {
    Launcher { name, rank, size, only_with: None, families: &[] }
}

const TABLE: [Launcher; 5] = [
    Launcher {
        families: &[Family::OpenMpi, Family::Standard],
        ..launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    },
    Launcher { families: &[Family::Mpich, Family::Standard], ..launcher("PMI", "PMI_RANK", "PMI_SIZE") },
    launcher("PALS", "PALS_RANKID", "PMI_SIZE"),
    launcher("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    Launcher { only_with: Some("SLURM_STEP_ID"), ..launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS") },
];

/// The variable with the address and port at which rank 0 of a job of an external launcher listens
/// for the other ranks.
pub(crate) const RENDEZVOUS: &str = "FENCEPOST_RENDEZVOUS";
/// The variable with the path of the MPI library over which the ranks of a job of an external
/// launcher meet.
pub(crate) const MPI: &str = "FENCEPOST_MPI";
/// The variable that selects whether ranks of one host that meet over MPI share memory.
pub(crate) const SHARE: &str = "FENCEPOST_SHARE";
/// The variable with the path of the file that holds the job's secret. Only the owner of the file
/// may read it.
pub(crate) const SECRET: &str = "FENCEPOST_SECRET_FILE";

/// The names of the launchers, for messages.
pub(crate) fn launchers() -> String {
    TABLE.map(|row| row.name).join(", ")
}

/// The rank that an external launcher has assigned to this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExternalRank {
    pub(crate) launcher: &'static str,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The interfaces that the launcher's MPI may have; empty if any is possible.
    pub(crate) families: &'static [Family],
}

/// Returns the value of an environment variable. Bytes that are not UTF-8 are replaced, so that the
/// check refuses the value and shows it.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns the rank that an external launcher has assigned to this process, or `None` if there is
/// no such launcher.
///
/// # Errors
/// A variable of the launcher is missing or not valid.
pub(crate) fn external_rank(get: impl Fn(&str) -> Option<String>) -> Result<Option<ExternalRank>, String> {
    let is_set = |row: &&Launcher| {
        get(row.rank).is_some() && row.only_with.is_none_or(|variable| get(variable).is_some())
    };
    let Some(row) = TABLE.iter().find(is_set) else { return Ok(None) };
    let number = |variable: &str| match get(variable) {
        None => Err(format!("{} sets {} but not {variable}", row.name, row.rank)),
        Some(text) => text.trim().parse::<u32>().map_err(|_| {
            format!("{} sets {variable} to `{text}`, which is not a number of 32 bits", row.name)
        }),
    };
    let (rank, size) = (number(row.rank)?, number(row.size)?);
    if rank >= size {
        return Err(format!(
            "{} sets {}={rank} and {}={size}: the rank must be less than the number of ranks",
            row.name, row.rank, row.size
        ));
    }
    if size > RANKS_MAX {
        return Err(format!("{} sets {}={size}: a job has at most {RANKS_MAX} ranks", row.name, row.size));
    }
    Ok(Some(ExternalRank { launcher: row.name, rank, size, families: row.families }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Option<ExternalRank>, String> {
        external_rank(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
    }

    #[test]
    fn each_launcher_is_recognised_by_its_variables() {
        for row in &TABLE {
            let mut pairs = vec![(row.rank, "2"), (row.size, "5")];
            pairs.extend(row.only_with.map(|variable| (variable, "0")));
            let families = row.families;
            assert_eq!(
                with(&pairs),
                Ok(Some(ExternalRank { launcher: row.name, rank: 2, size: 5, families }))
            );
        }
        assert_eq!(
            with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]),
            Ok(None),
            "a batch script is not a step"
        );
        let both = [
            ("PMI_RANK", "0"),
            ("PMI_SIZE", "9"),
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
        ];
        assert_eq!(with(&both).map(|found| found.map(|rank| rank.launcher)), Ok(Some("Open MPI")));
        // In an allocation of Slurm, MPICH starts its helper on each host as a step of one process.
        let in_allocation = [
            ("SLURM_STEP_ID", "0"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "1"),
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "2"),
        ];
        let expected = ExternalRank { launcher: "PMI", rank: 1, size: 2, families: TABLE[1].families };
        assert_eq!(with(&in_allocation), Ok(Some(expected)));
    }

    #[test]
    fn missing_or_invalid_variables_are_refused_by_name() {
        for (pairs, says) in [
            (&[("PMI_RANK", "0")][..], "not PMI_SIZE"),
            (&[("PMI_RANK", "4"), ("PMI_SIZE", "4")], "PMI_RANK=4"),
            (&[("PMI_RANK", "x"), ("PMI_SIZE", "4")], "`x`"),
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "4294967296")], "a number of 32 bits"),
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "4294967295")], "at most 262144 ranks"),
        ] {
            assert!(with(pairs).expect_err("must be refused").contains(says), "{pairs:?}");
        }
    }
}
