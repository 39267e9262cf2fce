//! [`search`]: looks for a library of MPI, and reports why other libraries were passed over.
//!
//! A process has to use the library of the MPI that has started it. Any other library creates
//! worlds of one rank, or ends the process in `MPI_Init`. A launcher is installed next to its
//! library. So the search looks next to the launcher that has started this process before it looks
//! next to a launcher in the search path.

use super::families::Family;
use super::table::Mpi;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a library was looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// `FENCEPOST_MPI` names the library.
    Variable,
    /// The program has loaded the library, or was linked with it.
    Program,
    /// Next to the launcher that has started this process.
    Launcher(PathBuf),
    /// Next to the `mpirun` or `mpiexec` of the search path.
    SearchPath(PathBuf),
    /// In the folders of the dynamic loader.
    Loader,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Variable => f.write_str("FENCEPOST_MPI"),
            Source::Program => f.write_str("this program"),
            Source::Launcher(path) => write!(f, "next to the launcher {}", path.display()),
            Source::SearchPath(path) => write!(f, "next to {} of PATH", path.display()),
            Source::Loader => f.write_str("folders of the dynamic loader"),
        }
    }
}

/// A library that was looked at and passed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// Where the library was looked for.
    pub source: Source,
    /// The path or the name of the library; `None` if the source has no library.
    pub library: Option<PathBuf>,
    /// Why it was passed over.
    pub why: String,
}

/// The result of a [`search`].
pub struct Search {
    /// The library that was found, with its source.
    pub found: Option<(Source, Mpi)>,
    /// The libraries and places that were passed over before a library was found, in order.
    pub passed_over: Vec<Look>,
}

/// Looks for a library of MPI and loads it. If `named` is given, it is the only candidate.
/// Otherwise the candidates are, in this order: the library that the program has loaded, the
/// libraries next to the launcher that has started this process, the libraries next to the `mpirun`
/// of PATH, and the libraries that the dynamic loader finds. If `wanted` is not empty, a library
/// with an interface that is not in `wanted` is passed over.
pub fn search(named: Option<&Path>, wanted: &[Family]) -> Search {
    let mut search = Search { found: None, passed_over: Vec::new() };
    if let Some(path) = named {
        if path.as_os_str().is_empty() {
            search.pass_over(Source::Variable, None, "it is empty: give the path of a library".into());
            return search;
        }
        search.look(Source::Variable, Some(path), Mpi::load(path), wanted);
        return search;
    }
    if search.look(Source::Program, None, Mpi::of_program(), wanted) {
        return search;
    }
    let launcher = ancestors().into_iter().find(|path| is_launcher(path));
    let next_to = [
        launcher.map(|path| (Source::Launcher(path.clone()), path)),
        in_search_path(std::env::var_os("PATH").as_deref())
            .map(|(path, program)| (Source::SearchPath(path), program)),
    ];
    for (source, program) in next_to.into_iter().flatten() {
        let libraries = libraries_next_to(&program);
        if libraries.is_empty() {
            search.pass_over(source.clone(), None, "no library of MPI is there".into());
        }
        for path in libraries {
            if search.look(source.clone(), Some(&path), Mpi::load(&path), wanted) {
                return search;
            }
        }
    }
    for name in NAMES {
        let path = Path::new(name);
        if search.look(Source::Loader, Some(path), Mpi::load(path), wanted) {
            return search;
        }
    }
    search
}

impl Search {
    /// Looks at a library. Returns whether it is the result of the search.
    fn look(
        &mut self,
        source: Source,
        path: Option<&Path>,
        loaded: Result<Mpi, String>,
        wanted: &[Family],
    ) -> bool {
        match loaded {
            Err(why) => self.pass_over(source, path, why),
            Ok(mpi) if !wanted.is_empty() && !wanted.contains(&mpi.family()) => {
                let names: Vec<String> = wanted.iter().map(Family::to_string).collect();
                let why = format!("it has the interface of {}, not of {}", mpi.family(), names.join(" or "));
                self.pass_over(source, path, why);
            }
            Ok(mpi) => self.found = Some((source, mpi)),
        }
        self.found.is_some()
    }

    fn pass_over(&mut self, source: Source, library: Option<&Path>, why: String) {
        self.passed_over.push(Look { source, library: library.map(Into::into), why });
    }
}

/// The names of the libraries of Open MPI, of MPICH, and of its derivatives. The standard interface
/// comes last, since its constants still differ between releases.
const NAMES: [&str; 6] =
    ["libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so", "libmpi_abi.so.1", "libmpi_abi.so.0"];

/// The programs of Open MPI, of MPICH, and of its derivatives that start the ranks of a host.
const LAUNCHERS: [&str; 9] = [
    "orterun",
    "orted",
    "prterun",
    "prte",
    "prted",
    "mpirun",
    "mpiexec.hydra",
    "hydra_pmi_proxy",
    "hydra_bstrap_proxy",
];

fn is_launcher(program: &Path) -> bool {
    program.file_name().and_then(OsStr::to_str).is_some_and(|name| LAUNCHERS.contains(&name))
}

/// Returns the libraries in the folders next to the folder of a program. Each file is returned
/// once, under the first of its names. A launcher of one MPI may share its folder with another MPI,
/// so the library whose name matches the launcher comes first.
fn libraries_next_to(program: &Path) -> Vec<PathBuf> {
    let Some(prefix) = program.parent().and_then(Path::parent) else { return Vec::new() };
    let folders = ["lib".to_owned(), "lib64".to_owned(), format!("lib/{}-linux-gnu", std::env::consts::ARCH)];
    let is_hydra = program.file_name().is_some_and(|name| name.to_string_lossy().contains("hydra"));
    let (mpich, others): (Vec<&str>, Vec<&str>) = NAMES.iter().partition(|name| name.ends_with(".12"));
    let names = if is_hydra { [mpich, others].concat() } else { NAMES.to_vec() };
    let mut found: Vec<PathBuf> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for name in names {
        for folder in &folders {
            let path = prefix.join(folder).join(name);
            if let Ok(file) = path.canonicalize()
                && !files.contains(&file)
            {
                files.push(file);
                found.push(path);
            }
        }
    }
    found
}

/// Returns the first `mpirun` or `mpiexec` of the search path, and the program that it links to.
fn in_search_path(path: Option<&OsStr>) -> Option<(PathBuf, PathBuf)> {
    let folders: Vec<PathBuf> = std::env::split_paths(path?).collect();
    let named = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    let found = named("mpirun").or_else(|| named("mpiexec"))?;
    let program = found.canonicalize().ok()?;
    Some((found, program))
}

/// How many ancestors of this process are looked at. The nearest ones may be wrappers; the launcher
/// is above them.
const ABOVE: usize = 16;

/// Returns the programs of the ancestors of this process, as far as this user may read them. The
/// parent comes first.
fn ancestors() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut process = std::os::unix::process::parent_id();
    while process > 1 && programs.len() < ABOVE {
        programs.push(std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default());
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name of the program, in parentheses, may have any characters. The state and the
        // parent follow it.
        let parent = status.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        process = parent.and_then(|parent| parent.parse().ok()).unwrap_or_default();
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_next_to_the_launcher_each_once() {
        let prefix = std::env::temp_dir().join(format!("fencepost-mpi-{}", std::process::id()));
        let lib = prefix.join("lib");
        std::fs::create_dir_all(&lib).expect("a folder");
        for name in ["libmpi.so.40", "libmpi.so.12", "libmpi_abi.so.0"] {
            std::fs::write(lib.join(name), name).expect("a file");
        }
        std::os::unix::fs::symlink("libmpi.so.40", lib.join("libmpi.so")).expect("a link");
        let names = |launcher: &str| -> Vec<String> {
            let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
            libraries_next_to(&prefix.join("bin").join(launcher)).into_iter().map(name).collect()
        };
        assert_eq!(names("orterun"), ["libmpi.so.40", "libmpi.so.12", "libmpi_abi.so.0"]);
        assert_eq!(names("hydra_pmi_proxy"), ["libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.0"]);
        std::fs::remove_dir_all(&prefix).expect("removed");
    }

    #[test]
    fn a_named_library_is_the_only_one_that_is_looked_at() {
        let path = Path::new("/no/such/libmpi.so");
        let search = search(Some(path), &[]);
        assert!(search.found.is_none());
        let [look] = &search.passed_over[..] else { panic!("{:?}", search.passed_over) };
        assert_eq!((&look.source, look.library.as_deref()), (&Source::Variable, Some(path)));
        assert!(look.why.contains("/no/such/libmpi.so"), "{}", look.why);
    }

    #[test]
    fn a_library_that_is_no_mpi_is_passed_over() {
        let search = search(Some(Path::new("libc.so.6")), &[]);
        assert!(search.found.is_none());
        assert!(search.passed_over[0].why.contains("MPI_"), "{:?}", search.passed_over);
    }

    #[test]
    fn the_processes_above_this_one_are_known() {
        let programs = ancestors();
        assert!(!programs.is_empty() && programs.len() <= ABOVE, "{programs:?}");
    }
}
