//! A few letters of five by seven dots, twice their size: what the legends of pictures need.

/// Dots to a dot.
const SCALE: usize = 2;
/// The height of a line in pixels.
pub const HEIGHT: usize = 7 * SCALE;
/// From a letter to the next.
const STEP: usize = 6 * SCALE;

/// Rows from the top, the leftmost dot in the highest of five bits.
fn dots(letter: char) -> [u8; 7] {
    match letter {
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

/// How many pixels `text` takes in a row.
pub fn width(text: &str) -> usize {
    text.chars().count() * STEP
}

/// Calls `set` with row and column of each pixel of `text`; letters other than digits, signs and `m` are blank.
pub fn draw(text: &str, mut set: impl FnMut(usize, usize)) {
    for (place, letter) in text.chars().enumerate() {
        for (row, bits) in dots(letter).into_iter().enumerate() {
            for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                for dot in 0..SCALE * SCALE {
                    set(row * SCALE + dot / SCALE, place * STEP + column * SCALE + dot % SCALE);
                }
            }
        }
    }
}
