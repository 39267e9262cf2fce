//! What other launchers tell their processes by variables: which rank one is, of how many.
//!
//! | launcher | rank | ranks | counts only where |
//! |---|---|---|---|
//! | Flux | `FLUX_TASK_RANK` | `FLUX_JOB_SIZE` | |
//! | PALS | `PALS_RANKID` | `PMI_SIZE` | |
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | |
//! | Slurm | `SLURM_PROCID` | `SLURM_NTASKS` | `SLURM_STEP_ID` is set: a batch script is no step |
//! | PMI (MPICH, Intel) | `PMI_RANK` | `PMI_SIZE` | |
//!
//! The first that is there counts, since those before may start their processes through those after. Source: Open MPI 4.1
//! and MPICH 4.0 as seen; Slurm's, Flux's and PALS' manuals.

/// One row of the table.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    only_with: Option<&'static str>,
}

const fn launcher(name: &'static str, rank: &'static str, size: &'static str) -> Launcher {
    Launcher { name, rank, size, only_with: None }
}

const TABLE: [Launcher; 5] = [
    launcher("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    launcher("PALS", "PALS_RANKID", "PMI_SIZE"),
    launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    Launcher { only_with: Some("SLURM_STEP_ID"), ..launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS") },
    launcher("PMI", "PMI_RANK", "PMI_SIZE"),
];

/// Where rank 0 of such a job is found by the others: an address and a port.
pub(crate) const RENDEZVOUS: &str = "FENCEPOST_RENDEZVOUS";
/// The file that the job's secret is in, which only its owner may read.
pub(crate) const SECRET: &str = "FENCEPOST_SECRET_FILE";

/// What a launcher has told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) launcher: &'static str,
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

/// What a launcher has told this process, if one has, of several.
///
/// # Errors
/// What it told is not whole, or can't be.
pub(crate) fn told(get: impl Fn(&str) -> Option<String>) -> Result<Option<Told>, String> {
    let there = |row: &&Launcher| {
        get(row.rank).is_some() && row.only_with.is_none_or(|variable| get(variable).is_some())
    };
    let Some(row) = TABLE.iter().find(there) else { return Ok(None) };
    let number = |variable: &str| match get(variable) {
        None => Err(format!("{} gives {} and no {variable}", row.name, row.rank)),
        Some(text) => text
            .trim()
            .parse::<u32>()
            .map_err(|_| format!("{} gives {variable}=`{text}`, which is no number", row.name)),
    };
    let (rank, size) = (number(row.rank)?, number(row.size)?);
    if rank >= size {
        return Err(format!("{} gives {}={rank} and {}={size}", row.name, row.rank, row.size));
    }
    Ok((size > 1).then_some(Told { launcher: row.name, rank, size }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Option<Told>, String> {
        told(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        for row in &TABLE {
            let mut pairs = vec![(row.rank, "2"), (row.size, "5")];
            pairs.extend(row.only_with.map(|variable| (variable, "0")));
            assert_eq!(with(&pairs), Ok(Some(Told { launcher: row.name, rank: 2, size: 5 })));
        }
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), Ok(None), "a script is no step");
        assert_eq!(with(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), Ok(None), "one process is no job");
        let both = [
            ("PMI_RANK", "0"),
            ("PMI_SIZE", "9"),
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
        ];
        assert_eq!(with(&both).map(|told| told.map(|told| told.launcher)), Ok(Some("Open MPI")));
    }

    #[test]
    fn what_is_not_whole_or_can_not_be_is_refused_by_name() {
        for (pairs, says) in [
            (&[("PMI_RANK", "0")][..], "no PMI_SIZE"),
            (&[("PMI_RANK", "4"), ("PMI_SIZE", "4")], "PMI_RANK=4"),
            (&[("PMI_RANK", "x"), ("PMI_SIZE", "4")], "`x`"),
        ] {
            assert!(with(pairs).expect_err("must be refused").contains(says), "{pairs:?}");
        }
    }
}
