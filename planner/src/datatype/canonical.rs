//! Canonical form. First, runs are joined until they are maximal. Then equal neighbours are folded
//! into (count, stride), greedily from left to right, innermost first, until nothing changes.
//!
//! Pass 0 joins runs, and pass `k` folds neighbours that have the same body of `k - 1` dimensions.
//! A piece represents all runs that it describes. Pass `k` treats a piece as a list of its rows of
//! `k` dimensions. The passes would make the same rows if they began with the runs of this piece
//! alone, because each piece is *sound*: at no boundary between its rows could two runs be joined,
//! or a row be continued. So only the borders between pieces have to be examined. If two pieces can
//! be joined at their border, their outermost parts are split off. The result is the same as if
//! every run were written out, but the cost grows with the number of pieces.

use super::form::{Dim, Piece, Pieces};
use crate::error::{Error, ErrorClass, Result};
use smallvec::SmallVec;

/// The maximum number of pieces to which a description without a short form is expanded.
pub const MOST_PIECES: usize = 1 << 24;

/// Displacements are from `-REACH` to below `REACH`.
pub(super) const REACH: i64 = 1 << 62;

/// Returns the canonical form of a nest. A zero count makes an empty list.
pub(super) fn nest(offset: i64, dims: &[(usize, i64)], run: usize) -> Result<Pieces> {
    if run == 0 || dims.iter().any(|&(count, _)| count == 0) {
        return Ok(Pieces::new());
    }
    check(offset, dims, run)?;
    let mut list = Pieces::from_iter([Piece::contiguous(offset, run)]);
    for &(count, stride) in dims.iter().rev().filter(|(count, _)| *count > 1) {
        list = repeat(list, count, stride)?;
    }
    Ok(list)
}

/// Checks that the elements of a nest are within the limits. The nest must not be empty.
pub(super) fn check(offset: i64, dims: &[(usize, i64)], run: usize) -> Result<()> {
    let mut size = run;
    for &(count, _) in dims {
        size = size.saturating_mul(count);
    }
    if size > isize::MAX as usize {
        return Err(Error::new(
            ErrorClass::Type,
            format!("a datatype has at most {} elements: this one has more", isize::MAX),
        ));
    }
    // The product of the counts is below 2^63, and so is the sum of the counts. Hence no sum here
    // reaches 2^127.
    let (mut low, mut last) = (i128::from(offset), i128::from(offset) + run as i128 - 1);
    for &(count, stride) in dims {
        let span = (count as i128 - 1) * i128::from(stride);
        low += span.min(0);
        last += span.max(0);
    }
    if low < i128::from(-REACH) || last >= i128::from(REACH) {
        return Err(Error::new(
            ErrorClass::Type,
            format!(
                "elements {low} to {last} are out of range: displacements are from {} to below {REACH}",
                -REACH
            ),
        ));
    }
    Ok(())
}

/// Returns the canonical form of `count` copies of a canonical list, at distances of `stride`.
/// `count` is at least 2, and all copies are within the limits.
pub(super) fn repeat(mut list: Pieces, count: usize, stride: i64) -> Result<Pieces> {
    if let [piece] = &mut list[..] {
        let next = Piece { offset: piece.offset + stride, ..piece.clone() };
        let depth = piece.dims.len();
        match (0..=depth).find(|&pass| joins(piece, &next, pass)) {
            None => {
                piece.dims.insert(0, Dim { count, stride });
                return Ok(list);
            }
            // Each copy continues the run, or the outermost dimension, of the copy before it.
            Some(0) if depth == 0 => {
                piece.run *= count;
                return Ok(list);
            }
            Some(pass) if pass == depth => {
                piece.dims[0].count *= count;
                return Ok(list);
            }
            // If a copy has two rows, its second row is joined with the first row of the next copy.
            // All rows but the very first and the very last form such pairs.
            Some(pass) if pass + 1 == depth && piece.dims[0].count == 2 => {
                let mut joined = part(piece.offset, 1, &piece.dims, piece.run);
                let mut last = joined.clone();
                let first = joined.clone();
                joined.offset += piece.dims[0].stride;
                last.offset = joined.offset + (count as i64 - 1) * stride;
                match joined.dims.first_mut() {
                    Some(row) => row.count *= 2,
                    None => joined.run *= 2,
                }
                joined.dims.insert(0, Dim { count, stride });
                joined = part(joined.offset, count - 1, &joined.dims, joined.run);
                return fold(vec![first, joined, last]).map(Pieces::from_vec);
            }
            Some(_) => {}
        }
    }
    if list.is_empty() {
        return Ok(list);
    }
    if count.saturating_mul(list.len()) > MOST_PIECES {
        return Err(too_many(MOST_PIECES));
    }
    let copies = (0..count as i64).flat_map(|i| {
        list.iter().map(move |piece| Piece { offset: piece.offset + i * stride, ..piece.clone() })
    });
    fold(copies.collect()).map(Pieces::from_vec)
}

/// Returns the canonical form of a list of sound pieces within the limits.
pub(super) fn fold(list: Vec<Piece>) -> Result<Vec<Piece>> {
    fold_within(list, MOST_PIECES)
}

/// Does the same as [`fold`], but expands the list by at most `more` pieces.
pub(super) fn fold_within(mut list: Vec<Piece>, more: usize) -> Result<Vec<Piece>> {
    let most = list.len() + more;
    let mut pass = 0;
    while list.len() > 1 && list.iter().any(|piece| piece.dims.len() + 1 >= pass) {
        list = fold_once(list, pass, most)?;
        pass += 1;
    }
    Ok(list)
}

/// Returns whether a list of pieces is in canonical form.
pub(super) fn is_canonical(list: &[Piece]) -> bool {
    list.iter().all(is_sound)
        && list.windows(2).all(|pair| {
            let passes = pair[0].dims.len().min(pair[1].dims.len()) + 1;
            !(0..=passes).any(|pass| joins(&pair[0], &pair[1], pass))
        })
}

/// Returns whether a piece within the limits is in canonical form.
fn is_sound(piece: &Piece) -> bool {
    let mut inner = Piece::contiguous(piece.offset, piece.run);
    for dim in piece.dims.iter().rev() {
        let next = Piece { offset: inner.offset + dim.stride, ..inner.clone() };
        if (0..=inner.dims.len()).any(|pass| joins(&inner, &next, pass)) {
            return false;
        }
        inner.dims.insert(0, *dim);
    }
    piece.run > 0 && piece.dims.iter().all(|dim| dim.count > 1)
}

/// Returns whether `pass` joins the first run or row of `next` to the last run or row of `piece`.
fn joins(piece: &Piece, next: &Piece, pass: usize) -> bool {
    let Some(body) = pass.checked_sub(1) else {
        return piece.end() == next.offset;
    };
    let (Some(rows), Some(next_rows)) =
        (piece.dims.len().checked_sub(body), next.dims.len().checked_sub(body))
    else {
        return false;
    };
    if piece.run != next.run || piece.dims[rows..] != next.dims[next_rows..] {
        return false;
    }
    let Some(row) = rows.checked_sub(1) else {
        return true;
    };
    let last = piece.offset + piece.dims[..rows].iter().map(|dim| dim.span()).sum::<i64>();
    next.offset - last == piece.dims[row].stride
}

/// Performs one pass over the list. The list may grow to at most `most` pieces.
fn fold_once(list: Vec<Piece>, pass: usize, most: usize) -> Result<Vec<Piece>> {
    let mut out: Vec<Piece> = Vec::with_capacity(list.len());
    let mut split: SmallVec<[Piece; 8]> = SmallVec::new();
    let mut input = list.into_iter();
    while let Some(mut next) = split.pop().or_else(|| input.next()) {
        if !out.last().is_some_and(|last| joins(last, &next, pass)) {
            out.push(next);
            continue;
        }
        if out.len() > most {
            return Err(too_many(most));
        }
        if out.last().is_some_and(|last| last.dims.len() > pass)
            && let Some(whole) = out.pop()
        {
            split_last(whole, pass, &mut out);
        }
        let Some(last) = out.last_mut() else { continue };
        if pass == 0 {
            split_first(&mut next, 0, &mut split);
            last.run += next.run;
        } else if last.dims.len() < pass {
            split_first(&mut next, pass - 1, &mut split);
            last.dims.insert(0, Dim { count: 2, stride: next.offset - last.offset });
        } else if next.dims.len() >= pass && next.dims[next.dims.len() - pass].stride == last.dims[0].stride {
            split_first(&mut next, pass, &mut split);
            last.dims[0].count += next.dims[0].count;
        } else {
            split_first(&mut next, pass - 1, &mut split);
            last.dims[0].count += 1;
        }
    }
    Ok(out)
}

/// Reduces `piece` to its first part with `depth` dimensions. Pushes the rest on the stack, with
/// the part that comes first on top.
///
/// If the rows have two parts each, the rest forms new pairs once the first part is gone: the
/// second part of each row with the first part of the next row. Storing these pairs at once saves
/// forming them row by row.
fn split_first(piece: &mut Piece, depth: usize, stack: &mut SmallVec<[Piece; 8]>) {
    let outer = piece.dims.len() - depth;
    let pairs = outer >= 2 && piece.dims[outer - 1].count == 2;
    for (i, dim) in piece.dims[..outer].iter().enumerate() {
        if pairs && i == outer - 2 {
            let within = piece.dims[i + 1].stride;
            let second = piece.offset + within;
            let body = &piece.dims[outer..];
            stack.push(Piece {
                offset: second + dim.span(),
                dims: SmallVec::from_slice(body),
                run: piece.run,
            });
            let mut dims: SmallVec<[Dim; 4]> = SmallVec::from_slice(&piece.dims[i..]);
            dims[1].stride = dim.stride - within;
            stack.push(part(second, dim.count - 1, &dims, piece.run));
            break;
        }
        stack.push(part(piece.offset + dim.stride, dim.count - 1, &piece.dims[i..], piece.run));
    }
    piece.dims.drain(..outer);
}

/// Appends `piece` to the list. Its last part with `depth` dimensions is split off and becomes a
/// separate piece at the end.
fn split_last(mut piece: Piece, depth: usize, out: &mut Vec<Piece>) {
    let outer = piece.dims.len() - depth;
    let mut offset = piece.offset;
    for (i, dim) in piece.dims[..outer].iter().enumerate() {
        out.push(part(offset, dim.count - 1, &piece.dims[i..], piece.run));
        offset += dim.span();
    }
    piece.offset = offset;
    piece.dims.drain(..outer);
    out.push(piece);
}

/// Returns a piece with `count` repetitions of the outermost of `dims`, and with the other
/// dimensions unchanged.
pub(super) fn part(offset: i64, count: usize, dims: &[Dim], run: usize) -> Piece {
    let mut dims: SmallVec<[Dim; 2]> = SmallVec::from_slice(dims);
    if count == 1 {
        dims.remove(0);
    } else {
        dims[0].count = count;
    }
    Piece { offset, dims, run }
}

/// Returns the error for a datatype that would be written out to more pieces than `most`.
pub(super) fn too_many(most: usize) -> Error {
    Error::new(
        ErrorClass::Type,
        format!("a datatype of more than {most} pieces that do not repeat: describe it in parts"),
    )
}
