//! [`Target`]: a program of the package in the current folder, built by cargo.

use cargo_metadata::{Message, TargetKind};
use clap::Args;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program of the package in the current folder.
#[derive(Args, Debug, Default)]
pub struct Target {
    /// The binary to build and use, if the package in the current folder has several
    #[arg(long, value_name = "NAME", conflicts_with = "example")]
    bin: Option<String>,
    /// The example to build and use, instead of a binary
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
}

impl Target {
    /// Returns whether the program is given by its name, and not by its path.
    pub fn is_named(&self) -> bool {
        self.bin.is_some() || self.example.is_some()
    }

    /// Builds the program, and returns its path.
    ///
    /// # Errors
    /// If cargo fails, or if the package has no program or several.
    pub fn build(&self) -> Result<PathBuf, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--message-format=json-render-diagnostics"]).stdout(Stdio::piped());
        match (&self.bin, &self.example) {
            (Some(name), _) => command.args(["--bin", name]),
            (None, Some(name)) => command.args(["--example", name]),
            (None, None) => command.arg("--bins"),
        };
        let mut child = command.spawn().map_err(|error| format!("cargo: {error}"))?;
        let Some(output) = child.stdout.take() else { return Err("cargo has no output".into()) };
        let mut programs = Vec::new();
        for message in Message::parse_stream(BufReader::new(output)) {
            let message = message.map_err(|error| format!("cargo: {error}"))?;
            if let Message::CompilerArtifact(artifact) = message
                && artifact
                    .target
                    .kind
                    .iter()
                    .any(|kind| matches!(kind, TargetKind::Bin | TargetKind::Example))
                && let Some(path) = artifact.executable
            {
                programs.push((artifact.target.name, path.into_std_path_buf()));
            }
        }
        let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err("cargo could not build the program that compiles the plans; give its path to use one that is built".into());
        }
        match &programs[..] {
            [(_, path)] => Ok(path.clone()),
            [] => {
                Err("the package in this folder has no program: give the path of one, or --example NAME"
                    .into())
            }
            several => {
                let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
                Err(format!("the package has several programs: choose one with --bin: {}", names.join(", ")))
            }
        }
    }
}
