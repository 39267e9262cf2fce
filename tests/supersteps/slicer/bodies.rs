//! Bodies written to break the slicer.

#![allow(
    unused,
    unused_qualifications,
    non_upper_case_globals,
    clippy::all,
    clippy::pedantic,
    reason = "the bodies are as odd as bodies can be"
)]

use super::*;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, RwLock};

pub fn bad(what: &str) -> Error {
    Error::new(ErrorClass::Arg, what.to_string())
}
pub fn validate(list: &[usize]) -> Result<()> {
    if list.len() < 3 { Err(bad("too few")) } else { Ok(()) }
}
pub fn small(n: usize) -> Result<usize> {
    if n > 6 { Err(bad("too great")) } else { Ok(n) }
}
pub fn validated(list: &[usize], of: &[u64]) -> Result<()> {
    if of[0] > 1000 { Err(bad("great elements")) } else { validate(list) }
}
pub fn pick(list: &[usize], n: usize) -> usize {
    list.get(n).copied().unwrap_or(n)
}
fn bump(n: &mut usize) {
    *n += 1;
}
fn must(list: &[usize]) {
    assert!(list.len() >= 3, "too few");
}
fn generic<T: Into<usize>>(n: T) -> usize {
    n.into() + 1
}

trait Located {
    fn place(&self) -> usize;
    fn next_place(&mut self) -> usize;
    fn checked(&self) -> Result<usize> {
        small(self.place())
    }
}
#[derive(Clone, Copy, Default)]
struct Spot {
    at: usize,
    by: usize,
}
impl Located for Spot {
    fn place(&self) -> usize {
        self.at
    }
    fn next_place(&mut self) -> usize {
        self.at += 1;
        self.at
    }
}
impl Iterator for Spot {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        self.at += self.by;
        (self.at < 12).then_some(self.at)
    }
}
struct Hidden(Cell<usize>);
impl Hidden {
    fn value(&self) -> usize {
        self.0.get()
    }
}
enum Heading {
    Left(usize),
    Right { at: usize },
    Nowhere,
}
fn heading(n: usize) -> Heading {
    match n % 3 {
        0 => Heading::Left(n),
        1 => Heading::Right { at: n },
        _ => Heading::Nowhere,
    }
}

const FIVE: usize = 5;
const TABLE: [usize; 4] = [2, 0, 1, 2];
static STEADY: usize = 4;
static COUNTER: AtomicUsize = AtomicUsize::new(0);
static lower_counter: AtomicUsize = AtomicUsize::new(0);
static ONCE: OnceLock<usize> = OnceLock::new();
static LAZY: LazyLock<usize> = LazyLock::new(|| 3);
static LOCKED: Mutex<usize> = Mutex::new(2);
static READ: RwLock<usize> = RwLock::new(2);
static SLOTS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
thread_local!(static CALLS: Cell<usize> = const { Cell::new(0) });
fn steps() -> usize {
    CALLS.with(|calls| {
        calls.set(calls.get() + 1);
        calls.get()
    })
}
fn of_counter(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

macro_rules! bail {
    ($what:expr) => {
        return Err(bad($what))
    };
}
macro_rules! ensure {
    ($holds:expr, $what:expr) => {
        if !$holds {
            return Err(bad($what));
        }
    };
}
macro_rules! twice {
    ($n:expr) => {
        $n * 2
    };
}
macro_rules! add {
    ($to:ident, $n:expr) => {
        $to += $n
    };
}

programs! {
    // Early returns.

    sliced return_err_of_an_argument(u, n, k, list) {
        if n > 8 { return Err(bad("n")); }
        u.put([1]).to(n % u.size(), k)
    }
    sliced return_err_guards_an_index(u, n, k, list) {
        if list.len() < 3 { return Err(bad("too few")); }
        u.put([1]).to(list[2] % u.size(), 1)
    }
    sliced return_err_guards_an_index_and_another_reads_the_window(u, n, k, list) {
        if list.len() < 3 { return Err(bad("too few")); }
        if u[0] == 99 { return Err(bad("element 0")); }
        u.put([1]).to(list[2] % u.size(), 1)?;
        Ok(())
    }
    sliced return_err_ends_a_loop_and_another_reads_the_window(u, n, k, list) {
        let mut i = k;
        while i != 10 {
            if i > 10 { return Err(bad("too far")); }
            i += 4;
        }
        if u[0] == 99 { return Err(bad("element 0")); }
        u.put([1]).to(n % u.size(), i)?;
        Ok(())
    }
    sliced a_loop_that_only_elements_end(u, n, k, list) {
        let mut i = 2 * (n / 9);
        while i != 2 {
            if i > 10 && u[0] < 1000 { return Err(bad("too far")); }
            i += 2;
            if i > 3 && u[0] < 1000 { return Err(bad("farther")); }
        }
        u.put([1]).to(n % u.size(), i)?;
        Ok(())
    }
    sliced return_err_with_an_element_in_the_message(u, n, k, list) {
        if n > 8 { let e = u[0]; return Err(bad(&format!("n and {e}"))); }
        u.put([1]).to(n % u.size(), k)
    }
    sliced return_ok_before_an_operation(u, n, k, list) {
        if n == 2 { return Ok(()); }
        u.put([1]).to(n % u.size(), k)
    }
    sliced return_ok_between_operations(u, n, k, list) {
        u.put([1]).to(n % u.size(), 0)?;
        if k == 0 { return Ok(()); }
        u.put([2]).to(n % u.size(), 1)
    }
    sliced return_out_of_a_loop(u, n, k, list) {
        for &i in list {
            if i > 7 { return Ok(()); }
            u.put([i as u64]).to(i % u.size(), i)?;
        }
        u.put([7]).to(0, 20)
    }
    sliced return_out_of_nested_loops(u, n, k, list) {
        for i in 0..n {
            for j in 0..k {
                if i * j > 4 { return Ok(()); }
                u.put([(i + j) as u64]).to((i + j) % u.size(), i + j)?;
            }
        }
        Ok(())
    }
    dynamic return_ok_by_an_element(u, n, k, list) {
        if u[0] > 100 { return Ok(()); }
        u.put([1]).to(n % u.size(), k)
    }
    sliced return_err_in_a_match(u, n, k, list) {
        let at = match n { 0 => 3, 9 => return Err(bad("nine")), other => other };
        u.put([1]).to(at % u.size(), k)
    }
    sliced return_err_in_a_match_that_is_not_needed(u, n, k, list) {
        let _unused = match list.first() { None => return Err(bad("none")), Some(first) => first };
        u.put([1]).to(n % u.size(), list[0] % 20)
    }
    sliced return_a_result_that_was_kept(u, n, k, list) {
        let checked = validate(list);
        if checked.is_err() { return checked; }
        u.put([1]).to(list[2] % u.size(), 2)
    }
    sliced err_with_a_question_mark(u, n, k, list) {
        if list.len() < 2 { Err(bad("short"))?; }
        u.put([1]).to(list[1] % u.size(), 2)
    }
    sliced err_with_a_question_mark_and_a_local(u, n, k, list) {
        if list.len() < 2 {
            let what = format!("short {}", u[0]);
            Err(bad(&what))?;
        }
        u.put([1]).to(list[1] % u.size(), 2)
    }
    sliced return_err_in_an_else(u, n, k, list) {
        if n < 9 { u[3] = 5; } else { return Err(bad("n")); }
        u.put(3..4).to(n % u.size(), 2)
    }
    sliced return_err_after_an_operation(u, n, k, list) {
        u.put([1]).to(n % u.size(), 0)?;
        if list.is_empty() { return Err(bad("empty")); }
        u.put([2]).to(list[0] % u.size(), 1)
    }
    sliced return_in_a_closure_leaves_the_closure(u, n, k, list) {
        let first = |at: usize| -> usize { if at > 3 { return 1; } at };
        u.put([1]).to(first(n) % u.size(), k)
    }
    sliced question_in_a_closure_leaves_the_closure(u, n, k, list) {
        let of = |at: usize| -> Result<usize> { Ok(small(at)? + 1) };
        let at = of(n).unwrap_or(0);
        u.put([1]).to(at % u.size(), k)
    }
    sliced question_on_an_option_in_a_closure(u, n, k, list) {
        let of = || -> Option<usize> { Some(*list.first()? + 1) };
        u.put([1]).to(of().unwrap_or(2) % u.size(), k)
    }

    // `?`.

    sliced validate_guards_an_index(u, n, k, list) {
        validate(list)?;
        u.put([1]).to(list[2] % u.size(), 1)?;
        Ok(())
    }
    sliced validate_guards_an_index_by_its_value(u, n, k, list) {
        let n = small(n)?;
        u.put([1]).to(TABLE[n % 4] % u.size(), n)
    }
    sliced validate_of_what_is_not_needed(u, n, k, list) {
        small(k)?;
        u.put([1]).to(n % u.size(), 3)
    }
    sliced validate_whose_value_is_dropped(u, n, k, list) {
        let _checked = small(n)?;
        u.put([1]).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced validate_that_reads_the_window(u, n, k, list) {
        validated(list, &u[..])?;
        u.put([1]).to(list[2] % u.size(), 3)
    }
    sliced validate_into_the_window(u, n, k, list) {
        u[2] = small(n)? as u64;
        u.put(2..3).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced validate_in_a_sum_with_elements(u, n, k, list) {
        let mut sum = 0;
        sum += small(n)? as u64 * u[1];
        u[2] = sum;
        u.put(2..3).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced validate_in_an_argument(u, n, k, list) {
        u[4] = pick(list, small(n)?) as u64;
        u.put(4..5).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced validate_in_a_source(u, n, k, list) {
        u.put([small(n)? as u64]).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced validate_in_a_target(u, n, k, list) {
        u.put([1]).to(small(n)? % u.size(), small(k)?)
    }
    sliced validate_in_a_condition(u, n, k, list) {
        if small(n)? > 3 { u[1] = 5; }
        u.put(1..2).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced validate_in_a_loop(u, n, k, list) {
        for &x in list { small(x)?; }
        for &x in list { u.put([1]).to([0, 1, 2, 0, 1, 2, 0][x], x)?; }
        Ok(())
    }
    sliced validate_in_the_loop_of_the_operation(u, n, k, list) {
        for &x in list {
            small(x)?;
            u.put([1]).to([0, 1, 2, 0, 1, 2, 0][x], x)?;
        }
        Ok(())
    }
    sliced validate_in_a_while_head(u, n, k, list) {
        let mut i = 0;
        while small(n + i)? < 6 && i < 3 { i += 1; }
        u.put([1]).to(i % u.size(), 1)
    }
    sliced validate_by_a_trait(u, n, k, list) {
        let spot = Spot { at: n, by: 1 };
        spot.checked()?;
        u.put([1]).to([0, 1, 2, 0, 1, 2, 0][spot.at], 3)
    }
    sliced validate_with_map_err(u, n, k, list) {
        let at: usize = list.first().ok_or_else(|| bad("no first"))?.clone();
        u.put([1]).to(at % u.size(), 3)
    }
    sliced validate_by_a_conversion(u, n, k, list) {
        let at = u8::try_from(n).map_err(|_| bad("wide"))?;
        u.put([1]).to(at as usize % u.size(), 3)
    }
    sliced validate_in_a_block(u, n, k, list) {
        let at = { let x = small(n)?; x + 1 };
        u.put([1]).to(at % u.size(), 3)
    }
    sliced validate_a_result_kept_before(u, n, k, list) {
        let checked = validate(list);
        u[1] += 1;
        checked?;
        u.put([1]).to(list[2] % u.size(), 3)
    }
    sliced validate_twice(u, n, k, list) {
        validate(list)?;
        small(list[2])?;
        u.put([1]).to([0, 1, 2, 0, 1, 2, 0][list[2]], 3)
    }
    sliced validate_on_the_right_of_and(u, n, k, list) {
        let _ = n > 3 && small(n)? > 1;
        u.put([1]).to(n % u.size(), 3)
    }
    sliced validate_on_the_right_of_or(u, n, k, list) {
        n < 7 || small(n)? > 1;
        u.put([1]).to([0, 1, 2, 0, 1, 2, 0][n], 3)
    }
    sliced question_in_a_chain(u, n, k, list) {
        let at = small(small(small(n)?)? + 1)?;
        u.put([1]).to(at % u.size(), 3)
    }
    sliced question_in_an_array(u, n, k, list) {
        let both = [small(n)?, small(k)?];
        u.put([1]).to(both[0] % u.size(), both[1])
    }

    // Checks that panic.

    sliced assert_guards_an_index(u, n, k, list) {
        assert!(list.len() >= 3);
        u.put([1]).to(list[2] % u.size(), 1)
    }
    sliced a_function_that_panics_guards_an_index(u, n, k, list) {
        must(list);
        u.put([1]).to(list[2] % u.size(), 1)
    }
    sliced an_index_panics(u, n, k, list) {
        u.put([1]).to(list[1] % u.size(), 1)
    }
    sliced an_unwrap_panics(u, n, k, list) {
        u.put([1]).to(list.iter().max().unwrap() % u.size(), 1)
    }
    sliced an_overflow_panics(u, n, k, list) {
        u.put([1]).to((list.len() - 1) % u.size(), 1)
    }
    sliced unreachable_in_a_match(u, n, k, list) {
        match n { 0..=8 => {} _ => unreachable!("{n}") }
        u.put([1]).to(n % u.size(), 1)
    }
    sliced a_panic_under_a_condition(u, n, k, list) {
        if n > 8 { panic!("n"); }
        u.put([1]).to(n % u.size(), 1)
    }
    sliced a_division_panics(u, n, k, list) {
        u.put([1]).to(n / k % u.size(), 1)
    }
    sliced a_section_that_is_too_long(u, n, k, list) {
        let to = if n == 9 { usize::MAX / 16 } else { 2 };
        u.put(&u[0..to].to_vec()).to(1, 1)
    }
    sliced a_slice_of_elements_that_is_too_long(u, n, k, list) {
        let len = if n == 9 { usize::MAX / 16 } else { 2 };
        if n == 9 && u[0] < 1000 { return Err(bad("too long")); }
        let values = vec![3; len];
        u.put(&values).to(1, 1)
    }

    // Labels.

    sliced break_of_an_outer_loop(u, n, k, list) {
        'outer: for i in 0..n {
            for j in 0..3 {
                if i + j == 4 { break 'outer; }
                u.put([(i * j) as u64]).to((i + j) % u.size(), i + j)?;
            }
        }
        Ok(())
    }
    sliced continue_of_an_outer_loop(u, n, k, list) {
        'outer: for i in 0..n {
            for j in 0..3 {
                if j == 2 && i % 2 == 0 { continue 'outer; }
                u.put([(i * j) as u64]).to((i + j) % u.size(), i + j)?;
            }
            u.put([7]).to(i % u.size(), 15)?;
        }
        Ok(())
    }
    sliced break_of_a_block(u, n, k, list) {
        'skip: {
            if k == 0 { break 'skip; }
            u.put([1]).to(n % u.size(), k)?;
        }
        u.put([2]).to(n % u.size(), 9)
    }
    sliced break_of_a_block_with_a_value(u, n, k, list) {
        let at = 'found: {
            for &x in list { if x > 6 { break 'found x; } }
            k
        };
        u.put([1]).to(at % u.size(), at)
    }
    sliced break_of_a_loop_with_a_value(u, n, k, list) {
        let mut i = n;
        let at = loop { i += 2; if i > 7 { break i; } };
        u.put([1]).to(at % u.size(), at)
    }
    sliced break_of_nested_blocks(u, n, k, list) {
        'a: {
            'b: {
                if n == 0 { break 'a; }
                if n == 2 { break 'b; }
                u.put([1]).to(n % u.size(), 1)?;
            }
            u.put([2]).to(n % u.size(), 2)?;
        }
        Ok(())
    }
    sliced the_same_label_twice(u, n, k, list) {
        'a: for i in 0..n { if i == 3 { break 'a; } u.put([1]).to(i % u.size(), i)?; }
        'a: for i in 0..k { if i == 2 { break 'a; } u.put([2]).to(i % u.size(), 10 + i)?; }
        Ok(())
    }
    sliced a_loop_without_an_operation_and_a_label(u, n, k, list) {
        let mut sum = 0;
        'a: for i in 0..n { for j in 0..k { if i * j > 5 { break 'a; } sum += i; } }
        u[0] = sum as u64;
        u.put(0..1).to(k % u.size(), 1)
    }
    sliced a_needed_sum_in_labelled_loops(u, n, k, list) {
        let mut sum = 0;
        'a: for i in 0..n { for j in 0..k { if i * j > 5 { break 'a; } if j == 2 { continue 'a; } sum += i; } }
        u.put([1]).to(sum % u.size(), sum % 20)
    }
    dynamic break_by_an_element(u, n, k, list) {
        for i in 0..4 {
            if u[i] == 2 { break; }
            u.put([1]).to(i % u.size(), i)?;
        }
        Ok(())
    }
    sliced a_while_that_only_breaks(u, n, k, list) {
        let mut i = 0;
        while u.size() > 0 { if i >= n { break; } u.put([i as u64]).to(i % u.size(), i)?; i += 1; }
        Ok(())
    }

    // let-else, if-let.

    sliced let_else_returns_an_error(u, n, k, list) {
        let Some(&at) = list.first() else { return Err(bad("none")) };
        u.put([1]).to(at % u.size(), 1)
    }
    sliced let_else_returns_an_error_and_is_not_needed(u, n, k, list) {
        let Some(_at) = list.first() else { return Err(bad("none")) };
        u.put([1]).to(list[0] % u.size(), 1)
    }
    sliced let_else_returns_ok(u, n, k, list) {
        let [_, second, ..] = list else { return Ok(()) };
        u.put([1]).to(second % u.size(), 1)
    }
    sliced let_else_breaks(u, n, k, list) {
        let mut rest = list.iter();
        loop {
            let Some(&at) = rest.next() else { break };
            u.put([at as u64]).to(at % u.size(), at)?;
        }
        Ok(())
    }
    sliced let_else_panics(u, n, k, list) {
        let Some(&at) = list.first() else { panic!("none") };
        u.put([1]).to(at % u.size(), 1)
    }
    sliced let_else_of_an_element(u, n, k, list) {
        let Some(_first) = u.first() else { return Err(bad("none")) };
        u.put([1]).to(n % u.size(), 1)
    }
    dynamic let_else_with_a_change(u, n, k, list) {
        let mut tries = 0;
        let Some(&at) = list.get(n) else { tries += 1; return u.put([tries]).to(tries as usize, 1) };
        u.put([1]).to(at % u.size(), 1)
    }
    sliced if_let_chain(u, n, k, list) {
        if let Some(&at) = list.first() && at > 2 && let Some(&other) = list.get(1) {
            u.put([1]).to((at + other) % u.size(), 1)?;
        }
        Ok(())
    }
    sliced if_let_else_if_let(u, n, k, list) {
        if let Some(&at) = list.get(4) { u.put([1]).to(at % u.size(), 1)?; }
        else if let Some(&at) = list.get(1) { u.put([2]).to(at % u.size(), 2)?; }
        else { u.put([3]).to(0, 3)?; }
        Ok(())
    }
    sliced while_let_pop(u, n, k, list) {
        let mut stack = list.to_vec();
        while let Some(at) = stack.pop() { u.put([at as u64]).to(at % u.size(), at)?; }
        Ok(())
    }
    sliced a_match_on_a_way(u, n, k, list) {
        match heading(n) {
            Heading::Left(at) => u.put([1]).to(at % u.size(), 1)?,
            Heading::Right { at } if at > 3 => u.put([2]).to(at % u.size(), 2)?,
            Heading::Right { .. } => {}
            Heading::Nowhere => return Ok(()),
        }
        u.put([9]).to(0, 9)
    }
    sliced a_match_with_a_binding_at(u, n, k, list) {
        match n { small @ 0..=2 => u.put([1]).to(small, 1), big @ 3.. => u.put([2]).to(big % u.size(), 2) }
    }

    // Shadowing.

    sliced a_name_is_bound_again(u, n, k, list) {
        let n = n + 1;
        let n = n * 2;
        u.put([1]).to(n % u.size(), n % 20)
    }
    sliced a_name_is_bound_again_in_a_block(u, n, k, list) {
        let at = n;
        { let at = at + 5; u.put([1]).to(at % u.size(), 1)?; }
        u.put([2]).to(at % u.size(), 2)
    }
    dynamic a_name_is_bound_to_an_element_in_a_block(u, n, k, list) {
        let at = n;
        { let at = u[0] as usize; u[1] = at as u64; }
        u.put([2]).to(at % u.size(), 2)
    }
    sliced a_name_is_bound_in_a_loop(u, n, k, list) {
        let i = 7;
        for i in 0..n { u[i % 24] = 3; }
        u.put([2]).to(i % u.size(), i)
    }
    sliced a_list_is_bound_to_a_range(u, n, k, list) {
        let part = vec![1u64, 2];
        u[0] = part[0];
        let mut part = 2..4;
        part.start += 1;
        u.put(part).to(n % u.size(), 6)
    }
    sliced a_parameter_is_bound_again(u, n, k, list) {
        let list: Vec<usize> = list.iter().map(|x| x + 1).collect();
        for at in &list { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced an_arm_binds_a_name(u, n, k, list) {
        let at = 1;
        match Some(n) { Some(at) if at > 3 => u[0] = at as u64, _ => {} }
        u.put([2]).to(at, 2)
    }
    sliced a_function_has_the_name_of_a_local(u, n, k, list) {
        fn at(n: usize) -> usize { n + 1 }
        let at = at(n);
        u.put([2]).to(at % u.size(), 2)
    }
    sliced a_closure_parameter_has_the_name_of_a_local(u, n, k, list) {
        let at = n;
        let sum: usize = list.iter().map(|at| at * 2).sum();
        u.put([2]).to(at % u.size(), sum % 20)
    }

    // Closures.

    sliced a_closure_computes_a_target(u, n, k, list) {
        let size = u.size();
        let to = |i: usize| (i * k + 1) % size;
        for i in 0..n { u.put([1]).to(to(i), i)?; }
        Ok(())
    }
    dynamic a_closure_counts(u, n, k, list) {
        let mut count = 0;
        let mut next = || { count += 1; count };
        next();
        u.put([1]).to(next() % u.size(), 1)
    }
    dynamic a_moved_closure_counts(u, n, k, list) {
        let mut count = n;
        let mut next = move || { count += 1; count };
        u[1] = next() as u64;
        u.put([1]).to(next() % u.size(), 1)
    }
    dynamic a_closure_advances_an_iterator(u, n, k, list) {
        let mut rest = list.iter().copied();
        let mut next = || rest.next().unwrap_or(1);
        next();
        u.put([1]).to(next() % u.size(), 1)
    }
    dynamic for_each_counts(u, n, k, list) {
        let mut sum = 0;
        list.iter().for_each(|x| sum += x);
        u.put([1]).to(sum % u.size(), 1)
    }
    sliced a_fold(u, n, k, list) {
        let sum = list.iter().fold(0, |sum, x| sum + x);
        u.put([1]).to(sum % u.size(), 1)
    }
    sliced a_closure_that_reads_the_window_and_is_not_needed(u, n, k, list) {
        let sum: u64 = (0..3).map(|i| u[i]).sum();
        u[5] = sum;
        u.put(5..6).to(n % u.size(), 1)
    }
    dynamic a_closure_that_reads_the_window(u, n, k, list) {
        let sum: u64 = (0..3).map(|i| u[i]).sum();
        u.put([1]).to(sum as usize % u.size(), 1)
    }
    sliced a_boxed_closure(u, n, k, list) {
        let to: Box<dyn Fn(usize) -> usize> = if n > 2 { Box::new(|x| x + 1) } else { Box::new(|x| x) };
        u.put([1]).to(to(n) % u.size(), 1)
    }
    sliced sorting_by_a_closure(u, n, k, list) {
        let mut order = list.to_vec();
        order.sort_by_key(|x| std::cmp::Reverse(*x));
        if let Some(at) = order.first() { u.put([1]).to(at % u.size(), 1)?; }
        Ok(())
    }

    // Nested items.

    sliced a_nested_function(u, n, k, list) {
        fn to(n: usize, size: usize) -> usize { (n + 1) % size }
        u.put([1]).to(to(n, u.size()), 1)
    }
    sliced a_nested_function_after_its_use(u, n, k, list) {
        u.put([1]).to(to(n), 1)?;
        fn to(n: usize) -> usize { n % 3 }
        Ok(())
    }
    sliced a_nested_function_without_arguments(u, n, k, list) {
        fn two() -> usize { 2 }
        u.put([1]).to(two(), n % 20)
    }
    dynamic a_nested_function_with_a_static(u, n, k, list) {
        fn next() -> usize {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            NEXT.fetch_add(1, Ordering::SeqCst)
        }
        u.put([1]).to(next().min(0), n % 20)
    }
    dynamic a_nested_function_that_calls_one_with_a_static(u, n, k, list) {
        fn next() -> usize {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            NEXT.fetch_add(1, Ordering::SeqCst)
        }
        fn outer(n: usize) -> usize { next().min(0) + n }
        u.put([1]).to(outer(n) % u.size(), n % 20)
    }
    sliced a_static_lifetime_is_no_static(u, n, k, list) {
        fn name(n: usize) -> &'static str { if n > 2 { "long" } else { "s" } }
        u.put([1]).to(name(n).len() % u.size(), n % 20)
    }
    sliced a_nested_const(u, n, k, list) {
        const BY: usize = 2;
        u.put([1]).to((n + BY) % u.size(), BY)
    }
    sliced a_nested_const_of_no_plain_kind(u, n, k, list) {
        const SPOT: Spot = Spot { at: 1, by: 2 };
        u.put([1]).to((n + SPOT.place()) % u.size(), SPOT.by)
    }
    dynamic a_nested_static(u, n, k, list) {
        static SEEN: AtomicUsize = AtomicUsize::new(0);
        u.put([1]).to((n + SEEN.swap(1, Ordering::SeqCst).min(0)) % u.size(), 2)
    }
    sliced a_nested_static_for_something_else(u, n, k, list) {
        static SEEN: AtomicUsize = AtomicUsize::new(0);
        SEEN.fetch_add(1, Ordering::SeqCst);
        u.put([1]).to(n % u.size(), 2)
    }
    sliced a_nested_struct_with_a_method(u, n, k, list) {
        struct Step(usize);
        impl Step { fn to(&self, n: usize) -> usize { self.0 + n } }
        let step = Step(k);
        u.put([1]).to(step.to(n) % u.size(), 2)
    }
    sliced a_nested_trait(u, n, k, list) {
        trait Twice { fn doubled(&self) -> usize; }
        impl Twice for usize { fn doubled(&self) -> usize { self * 2 } }
        u.put([1]).to(n.doubled() % u.size(), 2)
    }
    sliced a_nested_use(u, n, k, list) {
        use std::cmp::max;
        u.put([1]).to(max(n, k) % u.size(), 2)
    }
    sliced a_nested_macro(u, n, k, list) {
        macro_rules! plus { ($x:expr) => { $x + 1 } }
        u.put([1]).to(plus!(n) % u.size(), 2)
    }

    // Iterators with a state.

    sliced an_iterator_is_advanced_before(u, n, k, list) {
        let mut rest = list.iter();
        rest.next();
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced an_iterator_is_advanced_into_the_window(u, n, k, list) {
        let mut rest = list.iter().copied();
        u[7] = rest.next().unwrap_or(1) as u64;
        u.put(7..8).to(rest.next().unwrap_or(2) % u.size(), 1)
    }
    sliced an_iterator_is_advanced_by_a_place_in_the_window(u, n, k, list) {
        let mut rest = list.iter().copied();
        u[rest.next().unwrap_or(1)] = 77;
        u.put([1]).to(rest.next().unwrap_or(2) % u.size(), 1)
    }
    sliced an_iterator_is_advanced_by_a_place_that_is_added_to(u, n, k, list) {
        let mut rest = list.iter().copied();
        u[rest.next().unwrap_or(1)] += 77;
        u.put([1]).to(rest.next().unwrap_or(2) % u.size(), 1)
    }
    sliced an_iterator_is_advanced_in_a_source(u, n, k, list) {
        let mut rest = list.iter().copied();
        u.put([rest.next().unwrap_or(5) as u64]).to(rest.next().unwrap_or(2) % u.size(), 1)
    }
    sliced a_counter_is_changed_in_a_source(u, n, k, list) {
        let mut count = n;
        u.put([{ count += 1; 4 }]).to(count % u.size(), 1)?;
        u.put([5]).to(count % u.size(), 2)
    }
    sliced an_iterator_is_advanced_on_the_right_of_and(u, n, k, list) {
        let mut rest = list.iter();
        n > 1 && rest.next().is_some();
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced an_iterator_is_advanced_on_the_right_of_or(u, n, k, list) {
        let mut rest = list.iter();
        let _ = n > 1 || rest.next().is_some();
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced a_counter_is_changed_on_the_right_of_and(u, n, k, list) {
        let mut at = k;
        n > 1 && { at += 1; true };
        u.put([1]).to(at % u.size(), 1)
    }
    sliced an_iterator_is_advanced_in_a_condition(u, n, k, list) {
        let mut rest = list.iter();
        if rest.next().is_some() { u[1] = 3; }
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced an_iterator_is_advanced_in_a_scrutinee(u, n, k, list) {
        let mut rest = list.iter();
        let mut sum = 0;
        match rest.next() { Some(x) => sum += x, None => sum = 9 }
        u[1] = sum as u64;
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced an_iterator_is_advanced_in_an_argument(u, n, k, list) {
        let mut rest = list.iter().copied();
        u[2] = pick(list, rest.next().unwrap_or(0)) as u64;
        u.put([1]).to(rest.next().unwrap_or(1) % u.size(), 1)
    }
    dynamic an_iterator_by_reference(u, n, k, list) {
        let mut rest = list.iter();
        let sum: usize = rest.by_ref().take(2).sum();
        u[2] = sum as u64;
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    dynamic a_loop_over_a_mutable_borrow(u, n, k, list) {
        let mut rest = list.iter();
        for at in &mut rest { if *at > 3 { break; } }
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced an_iterator_of_its_own(u, n, k, list) {
        let mut spot = Spot { at: n, by: 2 };
        spot.next();
        u.put([1]).to(spot.at % u.size(), spot.at)
    }
    dynamic a_peekable_iterator(u, n, k, list) {
        let mut rest = list.iter().peekable();
        while let Some(at) = rest.next() {
            if rest.peek().is_none() { u.put([1]).to(at % u.size(), 1)?; }
        }
        Ok(())
    }
    sliced windows_of_a_list(u, n, k, list) {
        for pair in list.windows(2) { u.put([1]).to(pair[0] % u.size(), pair[1])?; }
        Ok(())
    }
    sliced zip_and_enumerate(u, n, k, list) {
        for (i, (a, b)) in list.iter().zip(list.iter().skip(1)).enumerate() { u.put([i as u64]).to((a + b) % u.size(), i)?; }
        Ok(())
    }
    sliced any_advances(u, n, k, list) {
        let mut rest = list.iter();
        let found = rest.any(|x| *x == 1);
        if found { for at in rest { u.put([1]).to(at % u.size(), *at)?; } }
        Ok(())
    }
    dynamic position_advances(u, n, k, list) {
        let mut rest = list.iter();
        let _ = rest.position(|x| *x == 1);
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced drain_of_a_list(u, n, k, list) {
        let mut all = list.to_vec();
        let front: usize = all.drain(..all.len() / 2).sum();
        u[1] = front as u64;
        for at in &all { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }

    // Changes.

    sliced fields_that_change(u, n, k, list) {
        let mut spot = Spot { at: n, by: k };
        spot.at += 2;
        spot.by = spot.at;
        u.put([1]).to(spot.at % u.size(), spot.by % 20)
    }
    replay a_range_moves_by_its_fields(u, n, k, list) {
        let mut part = 0..2usize;
        for i in 0..3 {
            u.put(part.clone()).to(n % u.size(), 6 + 2 * i)?;
            part.start += 2;
            part.end += 2;
        }
        Ok(())
    }
    replay a_range_of_a_tuple_moves(u, n, k, list) {
        let mut parts = (0..2usize, 1);
        parts.0.start += 1;
        u.put(parts.0.clone()).to(n % u.size(), 6)
    }
    replay a_range_is_copied_and_moves(u, n, k, list) {
        let first = 2..4usize;
        let mut part = first.clone();
        part.end += k;
        u.put(part).to(n % u.size(), 10)
    }
    replay a_range_that_is_got_moves(u, n, k, list) {
        let mut part = 8..9usize;
        part.start += 1;
        part.end += 1;
        u.get(part).from(n % u.size(), 1)
    }
    sliced a_datatype_by_name(u, n, k, list) {
        let part = Datatype::from(2..5);
        u.put(&part).to(n % u.size(), 9)?;
        u.put(part).to((n + 1) % u.size(), 9)
    }
    replay a_range_by_name(u, n, k, list) {
        let part = n..n + 2;
        u.put(part).to(k % u.size(), 12)
    }
    sliced an_array_by_name(u, n, k, list) {
        let mut values = [u[0], u[1], 3];
        values[2] = u[2];
        u.put(values).to(n % u.size(), 9)
    }
    sliced a_list_by_name(u, n, k, list) {
        let mut values: Vec<u64> = Vec::new();
        for i in 0..n { values.push(u[i]); }
        values[..].reverse();
        u.put(&values).to(k % u.size(), 9)
    }
    sliced a_list_that_is_moved_by_name(u, n, k, list) {
        let mut values = vec![0; 2];
        values[1] = u[4];
        u.put(values).to(k % u.size(), 9)
    }
    sliced a_list_is_pushed_an_element_and_an_iterator_advances(u, n, k, list) {
        let mut rest = list.iter();
        let mut values = vec![1];
        values.push(*rest.next().unwrap_or(&3) as u64);
        u.put(&values).to(rest.next().unwrap_or(&1) % u.size(), 9)
    }
    sliced swaps(u, n, k, list) {
        let mut order = [0, 1, 2];
        order.swap(n % 3, k % 3);
        u.put([1]).to(order[0], 1)
    }
    sliced two_are_exchanged(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        (a, b) = (b, a + b);
        u.put([1]).to(a % u.size(), b % 20)
    }
    dynamic a_borrow_is_changed(u, n, k, list) {
        let mut at = n;
        let other = &mut at;
        *other += 1;
        u.put([1]).to(at % u.size(), 1)
    }
    dynamic a_function_changes(u, n, k, list) {
        let mut at = n;
        bump(&mut at);
        u.put([1]).to(at % u.size(), 1)
    }
    dynamic mem_replace(u, n, k, list) {
        let mut at = n;
        let _ = std::mem::replace(&mut at, 2);
        u.put([1]).to(at % u.size(), 1)
    }
    dynamic a_method_of_a_trait_changes(u, n, k, list) {
        let mut spot = Spot { at: n, by: 1 };
        spot.next_place();
        u.put([1]).to(spot.at % u.size(), 1)
    }
    dynamic a_reference_to_an_element_changes(u, n, k, list) {
        let mut all = vec![n, k];
        if let Some(last) = all.last_mut() { *last += 1; }
        u.put([1]).to(all[1] % u.size(), 1)
    }
    dynamic an_entry_of_a_map_changes(u, n, k, list) {
        let mut counts = BTreeMap::new();
        for x in list { *counts.entry(x % 3).or_insert(0usize) += 1; }
        for (to, count) in &counts { u.put([1]).to(*to, *count)?; }
        Ok(())
    }
    sliced a_map_is_filled(u, n, k, list) {
        let mut last = BTreeMap::new();
        for (i, x) in list.iter().enumerate() { last.insert(x % 3, i); }
        for (to, at) in &last { u.put([1]).to(*to, *at)?; }
        Ok(())
    }
    dynamic a_hash_map_has_an_order_of_its_own(u, n, k, list) {
        let mut last = HashMap::new();
        for (i, x) in list.iter().enumerate() { last.insert(i, x % 20); }
        for (at, value) in &last { u.put([*value as u64]).to(n % u.size(), *at)?; }
        Ok(())
    }
    sliced a_hash_set_is_asked(u, n, k, list) {
        let mut seen = HashSet::new();
        for &x in list {
            if !seen.insert(x % 3) { continue; }
            u.put([x as u64]).to(x % u.size(), x)?;
        }
        Ok(())
    }
    sliced a_deque(u, n, k, list) {
        let mut line: VecDeque<usize> = list.iter().copied().collect();
        while let Some(at) = line.pop_front() {
            if at > 8 { line.push_back(at - 5); continue; }
            u.put([at as u64]).to(at % u.size(), at)?;
        }
        Ok(())
    }
    sliced an_option_is_taken(u, n, k, list) {
        let mut once = Some(n);
        for i in 0..2 { if let Some(at) = once.take() { u.put([i]).to(at % u.size(), 1)?; } }
        Ok(())
    }
    sliced an_assignment_under_conditions(u, n, k, list) {
        let to;
        if n > 3 { to = k; } else if n > 1 { to = 2; } else { to = 1; }
        u.put([1]).to(to % u.size(), to)
    }
    dynamic an_assignment_by_an_element(u, n, k, list) {
        let mut to = n;
        if u[0] == 100 { to += 1; }
        u.put([1]).to(to % u.size(), 1)
    }
    sliced a_loop_with_several_variables(u, n, k, list) {
        let (mut low, mut high) = (0, list.len());
        while low < high {
            let middle = (low + high) / 2;
            if list[middle] < 4 { low = middle + 1; } else { high = middle; }
        }
        u.put([1]).to(low % u.size(), high)
    }
    sliced compound_operators(u, n, k, list) {
        let mut x = n;
        x <<= 2; x |= 1; x ^= k; x %= 17; x -= x / 2; x *= 3;
        u.put([1]).to(x % u.size(), x % 20)
    }
    sliced a_nested_list(u, n, k, list) {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); 3];
        for &x in list { rows[x % 3].push(x); }
        for (to, row) in rows.iter().enumerate() { for at in row { u.put([1]).to(to, *at)?; } }
        Ok(())
    }
    sliced a_string_grows(u, n, k, list) {
        let mut text = String::new();
        for _ in 0..n { text.push_str("ab"); }
        u.put([1]).to(text.len() % u.size(), text.len() % 20)
    }

    // Values that change without being assigned.

    dynamic cell_set(u, n, k, list) {
        let at = Cell::new(n);
        at.set(at.get() + 1);
        u.put([1]).to(at.get() % u.size(), 1)
    }
    dynamic cell_replace(u, n, k, list) {
        let at = Cell::new(0usize);
        for _ in 0..2 { u.put([7]).to(n % u.size(), at.get())?; at.replace(at.get() + 1); }
        Ok(())
    }
    dynamic cell_take(u, n, k, list) {
        let at = Cell::new(n);
        at.take();
        u.put([1]).to(at.get() % u.size(), 1)
    }
    dynamic cell_swap(u, n, k, list) {
        let (at, other) = (Cell::new(n), Cell::new(2));
        at.swap(&other);
        u.put([1]).to(at.get() % u.size(), 1)
    }
    dynamic ref_cell_borrow_mut(u, n, k, list) {
        let at = RefCell::new(n);
        *at.borrow_mut() += 1;
        u.put([1]).to(*at.borrow() % u.size(), 1)
    }
    dynamic ref_cell_replace(u, n, k, list) {
        let at = RefCell::new(n);
        at.replace(2);
        u.put([1]).to(*at.borrow() % u.size(), 1)
    }
    dynamic shared_cell(u, n, k, list) {
        let at = Rc::new(Cell::new(n));
        let other = at.clone();
        other.set(1);
        u.put([1]).to(at.get() % u.size(), 1)
    }
    dynamic fetch_update(u, n, k, list) {
        let at = AtomicUsize::new(n);
        let _ = at.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |x| Some(x + 1));
        u.put([1]).to(at.load(Ordering::SeqCst) % u.size(), 1)
    }
    dynamic compare_exchange_weak(u, n, k, list) {
        let at = AtomicUsize::new(n);
        while at.compare_exchange_weak(n, 1, Ordering::SeqCst, Ordering::SeqCst).is_err() && n != 1 {}
        u.put([1]).to(at.into_inner() % u.size(), 1)
    }
    dynamic a_mutex(u, n, k, list) {
        let at = Mutex::new(n);
        *at.lock().unwrap() += 1;
        u.put([1]).to(*at.lock().unwrap() % u.size(), 1)
    }
    dynamic a_once_cell(u, n, k, list) {
        let at = OnceCell::new();
        at.get_or_init(|| n);
        u.put([1]).to(at.get().copied().unwrap_or(0) % u.size(), 1)
    }
    dynamic a_channel(u, n, k, list) {
        let (send, receive) = mpsc::channel();
        for &x in list { send.send(x).unwrap(); }
        drop(send);
        while let Ok(at) = receive.try_recv() { u.put([1]).to(at % u.size(), at)?; }
        Ok(())
    }
    dynamic a_cell_behind_a_name(u, n, k, list) {
        let hidden = Hidden(Cell::new(n));
        hidden.0.set(n + 1);
        u.put([1]).to(hidden.value() % u.size(), 1)
    }

    // Statics and thread-locals.

    sliced a_const(u, n, k, list) { u.put([1]).to((n + FIVE) % u.size(), FIVE) }
    sliced a_const_table(u, n, k, list) { u.put([1]).to(TABLE[n % 4], TABLE.len()) }
    sliced a_const_table_that_is_iterated(u, n, k, list) {
        for (i, to) in TABLE.iter().enumerate() { u.put([1]).to(*to, i)?; }
        Ok(())
    }
    sliced an_associated_const(u, n, k, list) { u.put([1]).to(n % u.size(), u8::BITS as usize) }
    sliced a_static_that_never_changes(u, n, k, list) { u.put([1]).to((n + STEADY) % u.size(), STEADY) }
    dynamic a_static_counter(u, n, k, list) { u.put([1]).to((n + COUNTER.load(Ordering::SeqCst)) % u.size(), 1) }
    dynamic a_static_counter_by_path(u, n, k, list) {
        u.put([1]).to((n + super::bodies::COUNTER.load(Ordering::SeqCst)) % u.size(), 1)
    }
    dynamic a_static_in_lower_case(u, n, k, list) {
        u.put([1]).to((n + lower_counter.load(Ordering::SeqCst)) % u.size(), 1)
    }
    dynamic a_static_in_a_local(u, n, k, list) {
        let by = COUNTER.load(Ordering::SeqCst);
        u.put([1]).to((n + by) % u.size(), 1)
    }
    dynamic a_static_that_is_handed_on(u, n, k, list) { u.put([1]).to((n + of_counter(&COUNTER)) % u.size(), 1) }
    dynamic a_static_of_several(u, n, k, list) { u.put([1]).to((n + SLOTS[n % 2].load(Ordering::SeqCst)) % u.size(), 1) }
    dynamic a_static_once_lock(u, n, k, list) { u.put([1]).to((n + ONCE.get().copied().unwrap_or(1)) % u.size(), 1) }
    dynamic a_static_once_lock_that_is_made(u, n, k, list) { u.put([1]).to((n + ONCE.get_or_init(|| 2)) % u.size(), 1) }
    sliced a_static_lazy_lock(u, n, k, list) { u.put([1]).to((n + *LAZY) % u.size(), 1) }
    dynamic a_static_mutex(u, n, k, list) { u.put([1]).to((n + *LOCKED.lock().unwrap()) % u.size(), 1) }
    dynamic a_static_lock_that_is_read(u, n, k, list) { u.put([1]).to((n + *READ.read().unwrap()) % u.size(), 1) }
    dynamic a_thread_local(u, n, k, list) { u.put([1]).to((n + CALLS.with(|calls| calls.get())) % u.size(), 1) }
    dynamic a_thread_local_that_is_got(u, n, k, list) { u.put([1]).to((n + CALLS.get()) % u.size(), 1) }
    dynamic a_function_that_counts(u, n, k, list) { u.put([1]).to((n + steps().min(0)) % u.size(), 1) }
    dynamic a_clock(u, n, k, list) {
        let nanos = std::time::Instant::now().elapsed().subsec_nanos().min(0) as usize;
        u.put([1]).to((n + nanos) % u.size(), 1)
    }
    sliced a_static_for_something_else(u, n, k, list) {
        u[3] = COUNTER.load(Ordering::SeqCst) as u64;
        u.put(3..4).to(n % u.size(), 1)
    }

    // Unsafe code.

    dynamic unsafe_code_behind_a_check(u, n, k, list) {
        if list.len() < 3 { return Err(bad("too few")); }
        if u[0] == 99 { return Err(bad("element 0")); }
        // SAFETY: the list has at least three elements, by the check above.
        u.put([1]).to(unsafe { *list.get_unchecked(2) } % u.size(), 1)
    }
    dynamic unsafe_code_around_an_operation(u, n, k, list) {
        // SAFETY: nothing in the block is unsafe.
        unsafe { u.put([1]).to(n % u.size(), 1)?; }
        Ok(())
    }
    sliced unsafe_code_for_something_else(u, n, k, list) {
        if !list.is_empty() {
            // SAFETY: the list has an element.
            u[4] = unsafe { *list.get_unchecked(0) } as u64;
        }
        u.put(4..5).to(n % u.size(), 1)
    }

    // Traits and generics.

    sliced a_trait_method(u, n, k, list) {
        let spot = Spot { at: n, by: k };
        u.put([1]).to(spot.place() % u.size(), 1)
    }
    sliced a_trait_object(u, n, k, list) {
        let spot: &dyn Located = &Spot { at: n, by: k };
        u.put([1]).to(spot.place() % u.size(), 1)
    }
    sliced a_generic_function(u, n, k, list) { u.put([1]).to(generic(n) % u.size(), generic::<usize>(k)) }
    sliced a_default(u, n, k, list) {
        let spot = Spot { at: n, ..Spot::default() };
        u.put([1]).to(spot.at % u.size(), spot.by)
    }
    sliced an_operator(u, n, k, list) {
        let n = std::num::Wrapping(n) + std::num::Wrapping(k);
        u.put([1]).to(n.0 % u.size(), 1)
    }
    sliced a_qualified_call(u, n, k, list) {
        let spot = Spot { at: n, by: 1 };
        u.put([1]).to(<Spot as Located>::place(&spot) % u.size(), 1)
    }

    // Macros.

    sliced a_macro_that_returns(u, n, k, list) {
        if list.len() < 2 { bail!("short"); }
        u.put([1]).to(list[1] % u.size(), 1)
    }
    sliced a_macro_that_checks(u, n, k, list) {
        ensure!(list.len() > 1, "short");
        u.put([1]).to(list[1] % u.size(), 1)
    }
    sliced a_macro_that_computes(u, n, k, list) { u.put([1]).to(twice!(n) % u.size(), twice!(k)) }
    dynamic a_macro_that_changes(u, n, k, list) {
        let mut at = n;
        add!(at, k);
        u.put([1]).to(at % u.size(), 1)
    }
    sliced a_macro_that_is_known(u, n, k, list) {
        let text = format!("{n}{k}");
        u.put([1]).to(text.len() % u.size(), 1)
    }
    dynamic a_macro_that_advances(u, n, k, list) {
        let mut rest = list.iter();
        assert!(rest.next().is_some() || n < 99);
        for at in rest { u.put([1]).to(at % u.size(), *at)?; }
        Ok(())
    }
    sliced matches_as_a_condition(u, n, k, list) {
        if matches!(heading(n), Heading::Left(at) if at > 2) { u.put([1]).to(n % u.size(), 1)?; }
        Ok(())
    }
    dynamic a_macro_over_the_window(u, n, k, list) {
        debug_assert!(u.put([1]).to(n % u.size(), 1).is_ok());
        Ok(())
    }

    // Operations.

    sliced gets_and_accumulates(u, n, k, list) {
        u.get(20..22).from(n % u.size(), 0)?;
        u.accumulate([1, 2], Op::Sum).to(k % u.size(), 4)?;
        u.accumulate(&u[0..2].to_vec(), Op::Max).to(n % u.size(), 8)
    }
    replay modes_and_nobody(u, n, k, list) {
        let to = if n > 2 { Some(n % u.size()) } else { None };
        u.put(0..2).mode(Mode::Aggregated).to(to, 4)
    }
    replay several_epochs(u, n, k, list) {
        u.put(0..1).to((u.rank() + 1) % u.size(), 1)?;
        u.fence()?;
        u.put(1..2).to((u.rank() + 1) % u.size(), 2)?;
        u.fence()
    }
    sliced epochs_with_an_element_between(u, n, k, list) {
        let ticket = u.fetch((u.rank() + 1) % u.size(), 3)?;
        u.fence()?;
        u[4] = ticket.take()?[0];
        u.put(4..5).to(n % u.size(), 6)?;
        u.fence()
    }
    dynamic a_target_that_was_fetched(u, n, k, list) {
        let ticket = u.fetch((u.rank() + 1) % u.size(), 3)?;
        u.fence()?;
        let to = ticket.take()?[0] as usize;
        u.put(4..5).to(to % u.size(), 6)?;
        u.fence()
    }
    dynamic an_operation_whose_result_is_looked_at(u, n, k, list) {
        if u.put([1]).to(n, 1).is_err() { u[1] = 4; }
        Ok(())
    }
    dynamic an_operation_whose_error_is_changed(u, n, k, list) {
        u.put([1]).to(n, 1).map_err(|_| bad("no such rank"))
    }
    sliced a_target_that_is_no_rank(u, n, k, list) { u.put([1]).to(n, 1) }
    sliced a_place_that_is_outside(u, n, k, list) { u.put([1]).to(n % u.size(), 3 * n) }
    dynamic a_helper_has_the_window(u, n, k, list) {
        fn send(u: &mut Window<u64>, n: usize) -> Result<()> { let p = u.size(); u.put([1]).to(n % p, 1) }
        send(u, n)
    }
    dynamic another_name_for_the_window(u, n, k, list) {
        let w = &mut *u;
        w.put([1]).to(n % w.size(), 1)
    }
    sliced a_shared_name_for_the_window(u, n, k, list) {
        let w = &u;
        w.put([1]).to(n % w.size(), 1)
    }
    sliced the_value_of_a_match_is_an_operation(u, n, k, list) {
        match list { [] => Ok(()), [a] => u.put([1]).to(a % u.size(), 1), [a, .., z] => u.put([2]).to((a + z) % u.size(), 2) }
    }
    sliced the_value_of_an_if_is_an_operation(u, n, k, list) {
        if n > 3 { u.put([1]).to(n % u.size(), 1) } else { Ok(()) }
    }
    replay only_operations(u, n, k, list) {
        for &at in list { u.put(0..1).to(at % u.size(), at)?; }
        Ok(())
    }
    replay only_operations_with_a_check(u, n, k, list) {
        if list.len() > 6 { return Ok(()); }
        u.put(n..n + 1).to(k % u.size(), 20)
    }
}
