//! Pictures of a terrain (a hill-shaded relief in hypsometric tints), of the change between two
//! terrains, and of water.
//!
//! Pixels are square on the ground, whatever the shape of the cells. The shorter side of a cell has
//! two pixels. The surface between cell centres is a Catmull-Rom spline, so that slopes, and with
//! them the shading, are smooth.

use crate::glyphs;
use crate::grid::Grid;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// The maximum length of a side of a picture in pixels.
const SIDE_MAX: f64 = 1600.0;

/// A colour: red, green and blue, each from 0 to 1.
type Colour = [f64; 3];

/// The tints from low to high: valley green, meadow, sand, rock and pale summits.
const TINTS: [(f64, Colour); 6] = [
    (0.00, hex(0x4f8268)),
    (0.18, hex(0x86ad79)),
    (0.38, hex(0xcfd09a)),
    (0.58, hex(0xdcb67f)),
    (0.80, hex(0xb2805a)),
    (1.00, hex(0xf4eee6)),
];
/// The tints of loss, no change and gain. Colours at equal distances from the middle are equally
/// dark.
const CHANGES: [(f64, Colour); 7] = [
    (-1.0, hex(0x7a1f2b)),
    (-0.6, hex(0xc8553d)),
    (-0.25, hex(0xf0b692)),
    (0.0, hex(0xf7f4ee)),
    (0.25, hex(0xa5cbe0)),
    (0.6, hex(0x3f83b8)),
    (1.0, hex(0x15376b)),
];
/// The directions of light, in degrees clockwise from north, and their shares. Most light comes
/// from the north-west, as is the custom on maps. Some light comes from the sides, so that valleys
/// in the main direction do not look flat.
const LIGHTS: [(f64, f64); 4] = [(315.0, 0.55), (270.0, 0.2), (0.0, 0.15), (225.0, 0.1)];
/// The height of the light in degrees above the horizon.
const LIGHT_HEIGHT: f64 = 42.0;
/// The factor by which heights are stretched before they are shaded.
const EXAGGERATION: f64 = 2.0;

const fn hex(rgb: u32) -> Colour {
    [(rgb >> 16 & 255) as f64 / 255.0, (rgb >> 8 & 255) as f64 / 255.0, (rgb & 255) as f64 / 255.0]
}

/// The distances of neighbouring cells in metres.
#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// The distance of two rows.
    pub north_south: f64,
    /// The distance of two columns.
    pub east_west: f64,
}

/// The heights of the first and the last tint. To compare pictures, draw them with the same
/// heights.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heights {
    /// Heights up to this one have the first tint.
    pub low: f64,
    /// Heights from this one on have the last tint.
    pub high: f64,
}

impl Heights {
    /// Returns the range of the heights of `grid`, without the lowest and the highest half percent.
    /// In surveys, such extreme heights are often errors.
    pub fn of(grid: &Grid) -> Self {
        Self { low: grid.quantile(0.005), high: grid.quantile(0.995) }
    }
}

/// Rows of pixels, three bytes each.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// The number of pixels in a row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// Red, green and blue of each pixel. Row 0 is the top row.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Writes the picture as PNG.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        Ok(writer.finish()?)
    }

    fn paint(width: usize, height: usize, colour: impl Fn(usize, usize) -> Colour) -> Self {
        let mut rgb = Vec::with_capacity(3 * width * height);
        for row in 0..height {
            for column in 0..width {
                rgb.extend(colour(row, column).map(|part| (255.0 * part.clamp(0.0, 1.0)).round() as u8));
            }
        }
        Self { width, height, rgb }
    }

    fn set(&mut self, row: usize, column: usize, colour: Colour) {
        if row < self.height && column < self.width {
            let at = 3 * (row * self.width + column);
            let bytes = colour.map(|part| (255.0 * part.clamp(0.0, 1.0)).round() as u8);
            self.rgb[at..at + 3].copy_from_slice(&bytes);
        }
    }

    /// Draws a scale of `tints` in the lower left corner, with `labels` at their positions from 0
    /// to 1.
    fn legend(&mut self, tints: impl Fn(f64) -> Colour, labels: &[(f64, String)]) {
        const LENGTH: usize = 240;
        const EDGE: usize = 14;
        let (paper, ink) = (hex(0xfbf9f4), hex(0x2e2a26));
        let panel = (LENGTH + 5 * EDGE, 3 * EDGE + 2 * glyphs::HEIGHT);
        if self.width < panel.0 + 2 * EDGE || self.height < panel.1 + 2 * EDGE {
            return;
        }
        let (top, left) = (self.height - panel.1 - EDGE, EDGE);
        for row in 0..panel.1 {
            for column in 0..panel.0 {
                self.set(top + row, left + column, paper);
            }
        }
        let bar = (top + EDGE, left + 5 * EDGE / 2);
        for row in 0..EDGE {
            for column in 0..LENGTH {
                self.set(bar.0 + row, bar.1 + column, tints(column as f64 / (LENGTH - 1) as f64));
            }
        }
        for (at, label) in labels {
            let middle = bar.1 + (at * (LENGTH - 1) as f64).round() as usize;
            for row in 0..4 {
                self.set(bar.0 + EDGE + row, middle, ink);
            }
            let wide = glyphs::width(label);
            let last = (left + panel.0).saturating_sub(wide + 2);
            let start = middle.saturating_sub(wide / 2).clamp(left + 4, last.max(left + 4));
            glyphs::draw(label, |row, column| self.set(bar.0 + EDGE + 8 + row, start + column, ink));
        }
    }
}

/// Draws a hill-shaded relief, in which each height has its tint.
pub fn relief(grid: &Grid, spacing: Spacing, heights: Heights) -> Picture {
    let surface = Surface::over(grid, spacing);
    let span = (heights.high - heights.low).max(f64::MIN_POSITIVE);
    let mut picture = Picture::paint(surface.width, surface.height, |row, column| {
        let tint = gradient(&TINTS, (surface.at(row as isize, column as isize) - heights.low) / span);
        lit(tint, surface.light(row, column))
    });
    let labels =
        [0.0, 0.5, 1.0].map(|at| (at, format!("{:.0} m", heights.low + at * (heights.high - heights.low))));
    picture.legend(|at| gradient(&TINTS, at), &labels);
    picture
}

/// Draws the change of heights over a faint relief of `after`: loss in red, gain in blue, no change
/// in white. The ends of the scale are a change that only one percent of the cells exceed.
pub fn change(before: &Grid, after: &Grid, spacing: Spacing) -> Picture {
    let gained = before.zip(after, |before, after| after - before);
    let full = gained.zip(&gained, |gained, _| gained.abs()).quantile(0.99).max(f64::MIN_POSITIVE);
    let (surface, ground) = (Surface::over(&gained, spacing), Surface::over(after, spacing));
    let mut picture = Picture::paint(surface.width, surface.height, |row, column| {
        let tint = gradient(&CHANGES, surface.at(row as isize, column as isize) / full);
        let light = ground.light(row, column);
        lit(tint, LEVEL_LIGHT + 0.5 * (light - LEVEL_LIGHT))
    });
    let labels = [-1.0, 0.0, 1.0].map(|at: f64| (at / 2.0 + 0.5, metres(at * full)));
    picture.legend(|at| gradient(&CHANGES, 2.0 * at - 1.0), &labels);
    picture
}

/// Draws a field as the lit surface of water: values below 0 in red, values above 0 in blue. The
/// scale ends at height `full`, measured in cells.
pub fn water(field: &Grid, full: f64) -> Picture {
    let surface = Surface::over(field, Spacing { north_south: 1.0, east_west: 1.0 });
    Picture::paint(surface.width, surface.height, |row, column| {
        let tint =
            gradient(&CHANGES, surface.at(row as isize, column as isize) / full.max(f64::MIN_POSITIVE));
        lit(tint, surface.light(row, column))
    })
}

/// Formats a height with a sign. Smaller heights have more decimals.
fn metres(value: f64) -> String {
    let decimals =
        if value == 0.0 { 0 } else { (1.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize };
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{value:.decimals$} m")
}

/// The strength of light on level ground.
const LEVEL_LIGHT: f64 = 0.669_130_606_358_858_2; // sin 42 degrees

/// Returns `colour` in light of strength `light`. Shadows make it cooler, strong light makes it
/// warmer, and the light on level ground leaves it unchanged.
fn lit(colour: Colour, light: f64) -> Colour {
    let (shadow, sun) = (hex(0x23304f), hex(0xfff6dc));
    if light < LEVEL_LIGHT {
        blend(colour, shadow, 0.85 * (1.0 - light.max(0.0) / LEVEL_LIGHT).powf(1.1))
    } else {
        blend(colour, sun, 0.75 * ((light - LEVEL_LIGHT) / (1.0 - LEVEL_LIGHT)).powf(1.3))
    }
}

fn blend(a: Colour, b: Colour, share: f64) -> Colour {
    std::array::from_fn(|part| a[part] + (b[part] - a[part]) * share)
}

/// Returns the colour at `at`, interpolated between the stops. Beyond the stops it is the colour of
/// the nearest stop.
fn gradient(stops: &[(f64, Colour)], at: f64) -> Colour {
    let next = stops.partition_point(|stop| stop.0 <= at).clamp(1, stops.len() - 1);
    let ((low, below), (high, above)) = (stops[next - 1], stops[next]);
    blend(below, above, ((at - low) / (high - low)).clamp(0.0, 1.0))
}

/// The values of a grid, resampled to pixels that are square on the ground.
struct Surface {
    width: usize,
    height: usize,
    pixel: f64,
    values: Grid,
}

impl Surface {
    fn over(grid: &Grid, spacing: Spacing) -> Self {
        let (south, east) = (grid.rows as f64 * spacing.north_south, grid.columns as f64 * spacing.east_west);
        let pixel = (spacing.north_south.min(spacing.east_west) / 2.0).max(south.max(east) / SIDE_MAX);
        let pixels = |extent: f64| (extent / pixel).round().clamp(1.0, SIDE_MAX) as usize;
        let (width, height) = (pixels(east), pixels(south));
        let place = |at: usize, pixels: usize, cells: usize| {
            (at as f64 + 0.5) / pixels as f64 * cells as f64 - 0.5 // in cells, from the first cell's centre
        };
        let across: Vec<_> = (0..width).map(|x| Spline::at(place(x, width, grid.columns))).collect();
        let mut cells = Vec::with_capacity(width * height);
        for y in 0..height {
            let down = Spline::at(place(y, height, grid.rows));
            for right in &across {
                cells.push(down.sum(|row| right.sum(|column| grid.nearest(row, column))));
            }
        }
        Self { width, height, pixel, values: Grid::new(height, width, cells) }
    }

    fn at(&self, row: isize, column: isize) -> f64 {
        self.values.nearest(row, column)
    }

    /// Returns the strength of light on a pixel, from 0 to 1.
    fn light(&self, row: usize, column: usize) -> f64 {
        let (row, column) = (row as isize, column as isize);
        let slope = |a: f64, b: f64| EXAGGERATION * (b - a) / (2.0 * self.pixel);
        let east = slope(self.at(row, column - 1), self.at(row, column + 1));
        let north = slope(self.at(row + 1, column), self.at(row - 1, column));
        let steepness = (1.0 + east * east + north * north).sqrt();
        let (rise, reach) = LIGHT_HEIGHT.to_radians().sin_cos();
        let lights = LIGHTS.iter().map(|&(azimuth, share)| {
            let (to_east, to_north) = azimuth.to_radians().sin_cos();
            share * ((rise - reach * (east * to_east + north * to_north)) / steepness).max(0.0)
        });
        lights.sum()
    }
}

/// Four neighbouring cells in a row, and the share of each in a value between the two middle cells.
struct Spline {
    first: isize,
    shares: [f64; 4],
}

impl Spline {
    fn at(place: f64) -> Self {
        let t = place - place.floor();
        let shares = [
            t * (-0.5 + t * (1.0 - 0.5 * t)),
            1.0 + t * t * (1.5 * t - 2.5),
            t * (0.5 + t * (2.0 - 1.5 * t)),
            t * t * (0.5 * t - 0.5),
        ];
        Self { first: place.floor() as isize - 1, shares }
    }

    fn sum(&self, cell: impl Fn(isize) -> f64) -> f64 {
        self.shares.iter().zip(self.first..).map(|(share, at)| share * cell(at)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: Spacing = Spacing { north_south: 10.0, east_west: 10.0 };

    fn plane(rows: usize, columns: usize, height: impl Fn(f64, f64) -> f64) -> Grid {
        let cells = (0..rows * columns).map(|i| height((i / columns) as f64, (i % columns) as f64)).collect();
        Grid::new(rows, columns, cells)
    }

    #[test]
    fn the_spline_keeps_planes_and_its_shares_sum_to_one() {
        for place in [0.0, 0.25, 3.5, 7.999] {
            let spline = Spline::at(place);
            assert!((spline.sum(|_| 1.0) - 1.0).abs() < 1e-12);
            assert!((spline.sum(|cell| cell as f64) - place).abs() < 1e-12);
        }
    }

    #[test]
    fn pixels_are_square_on_the_ground_and_few() {
        let wide = Surface::over(&plane(10, 10, |_, _| 0.0), Spacing { north_south: 20.0, east_west: 10.0 });
        assert_eq!((wide.width, wide.height), (20, 40));
        let long = Surface::over(&plane(1, 100_000, |_, _| 0.0), SQUARE);
        assert_eq!((long.width, long.height), (1600, 1));
    }

    #[test]
    fn slopes_to_the_north_west_are_lighter_than_level_ground_and_others_darker() {
        let light = |grid| Surface::over(&grid, SQUARE).light(10, 10);
        let level = light(plane(10, 10, |_, _| 5.0));
        assert!((level - LEVEL_LIGHT).abs() < 1e-12);
        assert!(light(plane(10, 10, |row, column| row + column)) > level);
        assert!(light(plane(10, 10, |row, column| -row - column)) < level);
    }

    #[test]
    fn level_water_is_white_and_waves_are_not() {
        let level = water(&Grid::new(8, 8, vec![0.0; 64]), 1.0);
        assert!(level.rgb.iter().all(|&part| part > 200), "{:?}", &level.rgb[..3]);
        let waves = (0..64).map(|at| if at % 8 < 4 { -1.0 } else { 1.0 }).collect();
        let waves = water(&Grid::new(8, 8, waves), 1.0);
        let (left, right) = (&waves.rgb[6..9], &waves.rgb[3 * (waves.width - 3)..3 * (waves.width - 2)]);
        assert!(left[0] > left[2] && right[2] > right[0], "{left:?}, {right:?}");
    }

    #[test]
    fn no_change_is_white_and_gain_and_loss_have_different_colours() {
        let flat = plane(4, 4, |_, _| 0.0);
        let colour = |after: f64| {
            let picture =
                change(&flat, &plane(4, 4, |_, column| if column > 1.0 { after } else { 0.0 }), SQUARE);
            let last = picture.rgb.len() - 3;
            [picture.rgb[last], picture.rgb[last + 1], picture.rgb[last + 2]]
        };
        let ([loss_red, _, loss_blue], [gain_red, _, gain_blue]) = (colour(-1e-6), colour(1e-6));
        assert!(loss_red > loss_blue && gain_blue > gain_red, "{:?} {:?}", colour(-1e-6), colour(1e-6));
        assert!(colour(0.0).iter().all(|&part| part > 220), "{:?}", colour(0.0));
    }

    #[test]
    fn cells_that_are_not_numbers_still_make_a_picture() {
        let odd = plane(3, 3, |row, _| if row == 1.0 { f64::NAN } else { f64::INFINITY });
        assert_eq!(relief(&odd, SQUARE, Heights::of(&odd)).rgb.len(), 3 * 6 * 6);
        assert_eq!(change(&odd, &odd, SQUARE).rgb.len(), 3 * 6 * 6);
    }

    #[test]
    fn a_saved_picture_is_a_png_of_that_size() {
        let picture =
            relief(&plane(40, 50, |row, column| row * column), SQUARE, Heights { low: 0.0, high: 9.0 });
        let path = std::env::temp_dir().join(format!("fencepost-picture-{}.png", std::process::id()));
        picture.save(&path).expect("a file in the temporary folder");
        let reader = io::BufReader::new(File::open(&path).expect("just written"));
        let reader = png::Decoder::new(reader).read_info().expect("a picture");
        assert_eq!((reader.info().width, reader.info().height), (100, 80));
        std::fs::remove_file(path).expect("just written");
    }
}
