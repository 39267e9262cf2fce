//! Pictures of a report, as SVG: bars, and a matrix. Colours are classes of the page's style.

use std::fmt::Write;

/// A bar of parts.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// The name of the bar.
    pub(super) name: String,
    /// The lengths of its parts.
    pub(super) parts: Vec<f64>,
    /// The value of the whole bar, as text.
    pub(super) label: String,
}

const ROW: usize = 22;
const NAMES: usize = 170;
const LENGTH: f64 = 480.0;
const WIDTH: usize = 780;

/// Escapes text for SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a name, or only its end if the name is too long for its place.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= 28 {
        name.into()
    } else {
        format!("\u{2026}{}", name.chars().skip(count - 27).collect::<String>())
    }
}

/// Draws bars, with a key if the bars have several parts.
pub(super) fn bars(bars: &[Bar], key: &[&str], name: &str) -> String {
    let longest = bars.iter().map(|bar| bar.parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let top = if key.len() > 1 { ROW } else { 0 };
    let height = top + ROW * bars.len() + 4;
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">",
        escaped(name)
    );
    // Writing to a `String` cannot fail.
    let mut add = |arguments: std::fmt::Arguments<'_>| {
        let _: std::fmt::Result = svg.write_fmt(arguments);
    };
    if key.len() > 1 {
        for (part, word) in key.iter().enumerate() {
            let x = NAMES + 110 * part;
            add(format_args!("<rect class=\"part{part}\" x=\"{x}\" y=\"4\" width=\"12\" height=\"12\"/>"));
            add(format_args!("<text x=\"{}\" y=\"15\">{}</text>", x + 17, escaped(word)));
        }
    }
    for (row, bar) in bars.iter().enumerate() {
        let y = top + ROW * row;
        add(format_args!(
            "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            NAMES - 8,
            y + 15,
            escaped(&shortened(&bar.name))
        ));
        let mut x = NAMES as f64;
        for (part, length) in bar.parts.iter().enumerate() {
            let width = if longest > 0.0 { LENGTH * length / longest } else { 0.0 };
            if width > 0.0 {
                add(format_args!(
                    "<rect class=\"part{part}\" x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\"/>",
                    y + 2,
                    ROW - 5
                ));
            }
            x += width;
        }
        add(format_args!("<text x=\"{:.1}\" y=\"{}\">{}</text>", x + 6.0, y + 15, escaped(&bar.label)));
    }
    svg + "</svg>"
}

/// Draws a square matrix: the larger a cell's value, the darker the cell, on a logarithmic scale.
pub(super) fn matrix(cells: &[u64], side: usize, name: &str) -> String {
    let cell = (512 / side).clamp(8, 64);
    let size = cell * side;
    let mut svg = format!(
        "<svg class=\"matrix\" role=\"img\" aria-label=\"{}\" viewBox=\"-1 -1 {} {}\" width=\"{size}\" height=\"{size}\"><rect class=\"ground\" x=\"0\" y=\"0\" width=\"{size}\" height=\"{size}\"/>",
        escaped(name),
        size + 2,
        size + 2
    );
    let most = cells.iter().copied().max().unwrap_or(0).max(1) as f64;
    for (at, bytes) in cells.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
        let (row, column) = (at / side, at % side);
        let dark = 1 + (7.0 * (1.0 + *bytes as f64).ln() / (1.0 + most).ln()).round() as usize;
        // Writing to a `String` cannot fail.
        let _: std::fmt::Result = write!(
            svg,
            "<rect class=\"dark{dark}\" x=\"{}\" y=\"{}\" width=\"{cell}\" height=\"{cell}\"/>",
            column * cell,
            row * cell
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        let bar = Bar { name: "<b>\"&".into(), parts: vec![1.0], label: "<i>".into() };
        let svg = bars(&[bar], &["x"], "\"><script>");
        assert!(!svg.contains("<b>") && !svg.contains("<i>") && !svg.contains("<script>"), "{svg}");
    }

    #[test]
    fn a_picture_without_anything_is_drawn() {
        assert!(bars(&[], &["x"], "none").ends_with("</svg>"));
        assert!(matrix(&[0], 1, "none").ends_with("</svg>"));
    }
}
