//! The glyphs for the legends of pictures: five by seven dots, drawn at twice their size.

/// The side of a dot in pixels.
const SCALE: usize = 2;
/// The height of a line in pixels.
pub const HEIGHT: usize = 7 * SCALE;
/// The distance of two glyphs in pixels.
const STEP: usize = 6 * SCALE;

/// Returns the rows of a glyph from the top. The leftmost dot of a row is the highest of five bits.
fn dots(glyph: char) -> [u8; 7] {
    match glyph {
        '0' => [0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110],
        '1' => [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        '2' => [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
        '3' => [0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110],
        '4' => [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
        '5' => [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
        '6' => [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
        '7' => [0b11111, 0b00001, 0b00010, 0b00100, 0b00100, 0b01000, 0b01000],
        '8' => [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
        '9' => [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
        '+' => [0b00000, 0b00100, 0b00100, 0b11111, 0b00100, 0b00100, 0b00000],
        '-' => [0b00000, 0b00000, 0b00000, 0b11111, 0b00000, 0b00000, 0b00000],
        '.' => [0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100],
        'm' => [0b00000, 0b00000, 0b11010, 0b10101, 0b10101, 0b10101, 0b10101],
        _ => [0; 7],
    }
}

/// Returns the width of `text` in pixels.
pub fn width(text: &str) -> usize {
    text.chars().count() * STEP
}

/// Calls `set` with the row and the column of each pixel of `text`. Characters other than digits,
/// signs, points and `m` are blank.
pub fn draw(text: &str, mut set: impl FnMut(usize, usize)) {
    for (place, glyph) in text.chars().enumerate() {
        for (row, bits) in dots(glyph).into_iter().enumerate() {
            for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                for dot in 0..SCALE * SCALE {
                    set(row * SCALE + dot / SCALE, place * STEP + column * SCALE + dot % SCALE);
                }
            }
        }
    }
}
