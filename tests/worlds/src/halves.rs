//! Runs a prepared epoch in two halves. Between the halves, the rank accesses the elements that it
//! keeps.

use crate::play::Any;
use fencepost::__private::Prepared;
use fencepost::{Element, Lent, Result, Running, Taken, Window};

/// Runs the prepared epoch of the one or two windows that are `fenced`.
pub fn end(prepared: &mut Prepared, windows: &mut Vec<Any>, fenced: &[usize]) -> Result<()> {
    match *fenced {
        [w] => {
            let window = windows.remove(w);
            windows.insert(w, window.one(prepared)?);
        }
        [first, second] => {
            let (second_window, first_window) = (windows.remove(second), windows.remove(first));
            let (first_window, second_window) = first_window.two(second_window, prepared)?;
            windows.insert(first, first_window);
            windows.insert(second, second_window);
        }
        _ => unreachable!("epochs of one or two windows are ended in two halves"),
    }
    Ok(())
}

/// Runs the prepared epoch of one window.
pub fn one<T: Element>(prepared: &mut Prepared, window: Window<T>) -> Result<Window<T>> {
    let before = window.to_vec();
    let mut running = prepared.begun((window,), ())?;
    let (mut lent,) = running.each();
    let kept = keep(&mut lent, &before);
    let (window,) = finish(running)?;
    stays(&window, &before, &kept);
    Ok(window)
}

/// Runs the prepared epoch of two windows.
pub fn two<T: Element, U: Element>(
    prepared: &mut Prepared,
    windows: (Window<T>, Window<U>),
) -> Result<(Window<T>, Window<U>)> {
    let before = (windows.0.to_vec(), windows.1.to_vec());
    let mut running = prepared.begun(windows, ())?;
    let (mut first, mut second) = running.each();
    let kept = (keep(&mut first, &before.0), keep(&mut second, &before.1));
    let windows = finish(running)?;
    stays(&windows.0, &before.0, &kept.0);
    stays(&windows.1, &before.1, &kept.1);
    Ok(windows)
}

fn finish<W: Taken>(running: Running<W>) -> Result<W> {
    running.finish()
}

/// Reads the elements that are lent, at most 64, and checks that each is unchanged. Writes the
/// elements that are lent for writing, and then restores them. Returns the elements that are lent
/// for reading.
fn keep<T: Element>(lent: &mut Lent<'_, T>, before: &[T]) -> Vec<usize> {
    let tried = before.iter().enumerate().step_by(1 + before.len() / 64);
    let kept = tried.filter_map(|(i, old)| {
        if let Ok([element]) = lent.kept_mut(i..i + 1) {
            assert_eq!(bytes(element), bytes(old), "element {i} is touched by nobody");
            *element = T::zeroed();
            *element = std::hint::black_box(*old);
        }
        match lent.kept(i..i + 1) {
            Ok(elements) => {
                assert_eq!(bytes(&elements[0]), bytes(old), "element {i} is written by nobody");
                Some(i)
            }
            Err(_) => None,
        }
    });
    kept.collect()
}

/// Checks that the kept elements are unchanged.
fn stays<T: Element>(window: &[T], before: &[T], kept: &[usize]) {
    for &i in kept {
        assert_eq!(bytes(&window[i]), bytes(&before[i]), "element {i} was kept, and has changed");
    }
}

fn bytes<T: Element>(element: &T) -> &[u8] {
    bytemuck::bytes_of(element)
}
