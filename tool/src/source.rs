//! The source line of a call, for findings.

use crate::files;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use fencepost_planner::ir::pattern::Site;
use std::path::{Component, Path, PathBuf};

/// Returns the place of a call, without the file if `near` is in the same file.
pub(crate) fn short(site: &Site, near: &Site) -> String {
    if site.file == near.file { format!("line {}", site.line) } else { site.to_string() }
}

/// Returns an error that quotes the source line of a call, with a label and a note. If the source
/// cannot be read, the error has the place of the call instead.
pub(crate) fn annotated(title: &str, site: &Site, label: &str, note: &str) -> String {
    let file = find(Path::new(&*site.file));
    let Some((text, span)) = file.and_then(|file| line_of(&file, site)) else {
        return format!("{title}\n  {site}: {label}\n  {note}");
    };
    let snippet = Snippet::source(text)
        .line_start(site.line as usize)
        .path(site.file.to_string())
        .annotation(AnnotationKind::Primary.span(span).label(label));
    let group = Level::ERROR.primary_title(title).element(snippet).element(Level::NOTE.message(note));
    Renderer::plain().render(&[group])
}

/// Returns the source line of a call, and the range of the call in this line.
fn line_of(file: &Path, site: &Site) -> Option<(String, std::ops::Range<usize>)> {
    let text = files::text(file).ok()?;
    let line = text.lines().nth(site.line.checked_sub(1)? as usize)?.to_owned();
    let at = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let start = at(site.column.saturating_sub(1) as usize);
    let start = if start < line.len() { start } else { line.len() - line.trim_start().len() };
    let end = line.trim_end().len().max(start);
    Some((line, start..end))
}

/// Finds a source file whose path the compiler gives relative to the folder of a workspace. Looks
/// in the current folder and in the folders above it. A plan may come from anywhere, so no other
/// file is read.
pub(crate) fn find(path: &Path) -> Option<PathBuf> {
    let is_within = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_within || path.extension().is_none_or(|extension| extension != "rs") {
        return None;
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(path)).find(|path| path.is_file())
}

/// Returns the source line of a call, without the space around it.
#[cfg(feature = "command")]
pub(crate) fn line(site: &Site) -> Option<String> {
    let (line, _) = line_of(&find(Path::new(&*site.file))?, site)?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_source_files_below_here_or_above_are_read() {
        assert!(find(Path::new("src/source.rs")).is_some());
        for path in ["/etc/passwd", "../tool/src/source.rs", "Cargo.toml", "src", "/proc/self/environ.rs"] {
            assert_eq!(find(Path::new(path)), None, "{path}");
        }
    }
}
