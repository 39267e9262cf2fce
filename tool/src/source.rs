//! The source at a line of a call, for findings.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use fencepost_planner::ir::pattern::Site;
use std::path::{Path, PathBuf};

/// Returns where a call is, without the file if it is that of another one.
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

/// Returns a line of a file, and the range of its call.
fn line_of(file: &Path, site: &Site) -> Option<(String, std::ops::Range<usize>)> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().nth(site.line.checked_sub(1)? as usize)?.to_owned();
    let at = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let start = at(site.column.saturating_sub(1) as usize);
    let start = if start < line.len() { start } else { line.len() - line.trim_start().len() };
    let end = line.trim_end().len().max(start);
    Some((line, start..end))
}

/// Finds a file that the compiler names relative to the folder of a workspace: here, or in a folder
/// above.
fn find(path: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(path)).find(|path| path.is_file())
}

/// Returns a line of the source, without the space around it.
#[cfg(feature = "command")]
pub(crate) fn line(site: &Site) -> Option<String> {
    let (line, _) = line_of(&find(Path::new(&*site.file))?, site)?;
    Some(line.trim().to_owned())
}
