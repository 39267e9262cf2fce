//! Tests of expansions: which functions are refused, which functions are dynamic and why, and the
//! slices of all others.

use crate::slice::Outcome;
use crate::{attribute, understand};
use proc_macro2::TokenStream;

fn tokens(source: &str) -> TokenStream {
    source.parse().expect("tokens of a test")
}

/// Returns the message that refuses a function.
#[track_caller]
fn refusal(source: &str) -> String {
    match understand(TokenStream::new(), tokens(source)) {
        Ok(_) => panic!("not refused: {source}"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn outcome(source: &str) -> Outcome {
    match understand(TokenStream::new(), tokens(source)) {
        Ok((_, _, outcome)) => outcome,
        Err(error) => panic!("refused: {error}\n{source}"),
    }
}

/// Returns why a function is dynamic: the line, its text and the reason.
#[track_caller]
fn dynamic(source: &str) -> String {
    match outcome(source) {
        Outcome::Dynamic(reason) => {
            format!("{}: `{}` {}", reason.span.start().line, reason.text, reason.why)
        }
        Outcome::Described(slice) => panic!("not dynamic:\n{}", pretty(slice.statements)),
    }
}

/// Returns the body of a function's pattern, printed.
#[track_caller]
fn pattern(source: &str) -> String {
    match outcome(source) {
        Outcome::Described(slice) => pretty(slice.statements),
        Outcome::Dynamic(reason) => panic!("dynamic: `{}` {}\n{source}", reason.text, reason.why),
    }
}

#[track_caller]
fn replays(source: &str) -> bool {
    match outcome(source) {
        Outcome::Described(slice) => slice.replays,
        Outcome::Dynamic(reason) => panic!("dynamic: `{}` {}", reason.text, reason.why),
    }
}

fn pretty(statements: TokenStream) -> String {
    let file: syn::File = syn::parse2(quote::quote!(fn f() { #statements }))
        .unwrap_or_else(|error| panic!("{error}: {statements}"));
    let text = prettyplease::unparse(&file);
    let body: Vec<&str> = text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    body[1..body.len() - 1].join("\n")
}

/// Returns a function with one window, a block and a list.
fn with_body(body: &str) -> String {
    format!(
        "fn f(u: &mut Window<f64>, block: &Block<2>, list: &[usize], n: usize) -> Result<()> {{\n{body}\n}}"
    )
}

#[track_caller]
fn assert_dynamic(body: &str, line: usize, text: &str, why: &str) {
    let said = dynamic(&with_body(body));
    assert!(said.starts_with(&format!("{line}: `{text}")), "{said}");
    assert!(said.contains(why), "{said}");
}

#[track_caller]
fn assert_slice(body: &str, expected: &str) {
    let slice = pattern(&with_body(body));
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    // Another test checks that loops are counted.
    let lines: Vec<&str> = slice.lines().map(str::trim).filter(|line| *line != "u.turn()?;").collect();
    assert_eq!(lines, expected, "\n{slice}");
}

const HALO: &str = "
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())";

// Slices.

#[test]
fn a_body_of_operations_is_its_own_pattern() {
    assert_slice(
        HALO,
        "for n in block.neighbours() {
             u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
         }",
    );
    assert!(replays(&with_body(HALO)));
}

/// The caller chooses the type of the source. If it is a section, the plan contains it. If it is
/// values, the plan does not.
#[test]
fn a_generic_source_is_replayed_and_begun_with_its_arguments() {
    let body = "(u: &mut Window<f64>, from: S, to: usize) -> Result<()> { u.put(from).to(to, 0) }";
    let generic = |source: &str| match outcome(source) {
        Outcome::Described(slice) => (slice.replays, slice.generic),
        Outcome::Dynamic(reason) => panic!("dynamic: `{}` {}", reason.text, reason.why),
    };
    assert_eq!(generic(&format!("fn f<S: Source<f64>>{body}")), (true, true));
    assert_eq!(generic(&format!("fn f{}", body.replace("from: S", "from: Datatype"))), (true, false));
    assert_eq!(generic(&format!("fn f{}", body.replace("from: S", "from: &[f64]"))), (false, false));
}

#[test]
fn what_no_target_needs_is_left_out() {
    let body = "
        let sum: f64 = u.iter().sum();
        let right = (u.rank() + 1) % u.size();
        println!(\"{sum}\");
        u[0] = sum;
        u.put(0..4).to(right, 4)?;
        relax(&mut u[1..3]);
        Ok(())";
    assert_slice(
        body,
        "let right = (u.rank() + 1) % u.size();
         u.put(0..4).to(right, 4)?;",
    );
    assert!(!replays(&with_body(body)));
}

#[test]
fn of_values_that_are_put_only_their_number_stays() {
    assert_slice(
        "u.put([u[3], 2.0]).to(0, 0)?;
         u.put(&u[n..2 * n]).to(1, 4)?;
         u.put(&vec![u[0]; n]).to(n, 0)?;
         Ok(())",
        "u.put([::fencepost::__private::zero(), ::fencepost::__private::zero()]).to(0, 0)?;
         u.put(&::fencepost::__private::zeros((n)..(2 * n))[..]).to(1, 4)?;
         u.put(&::fencepost::__private::zeros(0..(n))).to(n, 0)?;",
    );
}

#[test]
fn code_that_fills_a_buffer_is_dropped_and_code_that_sizes_it_stays() {
    assert_slice(
        "let mut edge = vec![0.0; n];
         for (i, x) in edge.iter_mut().enumerate() {
             *x = u[i * n];
         }
         edge[0] = u[1];
         edge.push(u[2]);
         u.put(&edge).to(n, 0)?;
         Ok(())",
        "let mut edge = ::fencepost::__private::zeros(0..(n));
         edge.push(::fencepost::__private::zero());
         u.put(&edge).to(n, 0)?;",
    );
}

#[test]
fn conditions_and_loops_around_operations_stay() {
    assert_slice(
        "let mut i = 0;
         while i < list.len() {
             if list[i] > n {
                 u.accumulate([u[i]], Op::Sum).to(list[i], i)?;
             } else {
                 count += 1;
             }
             i += 1;
         }
         Ok(())",
        "let mut i = 0;
         while i < list.len() {
         if list[i] > n {
         u.accumulate([::fencepost::__private::zero()], Op::Sum).to(list[i], i)?;
         } else {}
         i += 1;
         }",
    );
}

#[test]
fn exits_that_leave_out_operations_stay() {
    assert_slice(
        "for &i in list {
             if i == n { continue; }
             let Some(to) = block.find(i) else { break };
             u.get(0..1).from(to, i)?;
         }
         if n > 3 { return Ok(()); }
         u.put(0..1).to(0, 1)?;
         Ok(())",
        "for &i in list {
         if i == n {
         continue;
         }
         let Some(to) = block.find(i) else {
         break;
         ::core::unreachable!()
         };
         u.get(0..1).from(to, i)?;
         }
         if n > 3 {
         return ::core::result::Result::Ok(());
         }
         u.put(0..1).to(0, 1)?;",
    );
}

#[test]
fn a_check_stays_where_it_can_and_is_dropped_where_it_reads_the_window() {
    assert_slice(
        "if list.len() < n { return Err(Error::new(ErrorClass::Arg, \"short\")); }
         u.put(0..1).to(list[n - 1], 0)?;
         Ok(())",
        "if list.len() < n {
         return Err(Error::new(ErrorClass::Arg, \"short\"));
         }
         u.put(0..1).to(list[n - 1], 0)?;",
    );
    assert_slice(
        "if u[0].is_nan() { return Err(Error::new(ErrorClass::Arg, \"NaN\")); }
         u.put(0..1).to(n, 0)?;
         Ok(())",
        "u.put(0..1).to(n, 0)?;",
    );
}

#[test]
fn each_check_stays_where_it_can_by_itself() {
    assert_slice(
        "let mut i = n;
         while i != 10 {
             if i > 10 { return Err(Error::new(ErrorClass::Arg, \"far\")); }
             i += 4;
         }
         if u[0].is_nan() { return Err(Error::new(ErrorClass::Arg, \"NaN\")); }
         u.put(0..1).to(n, i)?;
         Ok(())",
        "let mut i = n;
         while i != 10 {
         if i > 10 {
         return Err(Error::new(ErrorClass::Arg, \"far\"));
         }
         i += 4;
         }
         u.put(0..1).to(n, i)?;",
    );
}

#[test]
fn a_check_of_what_decides_targets_stays_and_any_other_is_dropped() {
    let body = "validate(list)?;
         log.write(n)?;
         other(u.rank())?;
         judge(&u[..], list)?;
         let _unused = parse(list)?;
         heat += small(n)? as f64 * u[0];
         u.put(0..1).to(list[2], n)?;
         Ok(())";
    assert_slice(
        body,
        "validate(list)?;
         let _unused = parse(list)?;
         small(n)?;
         u.put(0..1).to(list[2], n)?;",
    );
    assert!(!replays(&with_body(body)), "a check may be more than a check: the body runs");
    assert!(!replays(&with_body("checked?;\nu.put(0..1).to(n, n)")));
}

#[test]
fn loops_are_counted() {
    let slice = pattern(&with_body(
        "let at = loop { if n > 3 { break 2; } };
         while n > 3 { u.put(0..1).to(n, at)?; }
         for i in list { u.put(0..1).to(*i, at)?; }
         Ok(())",
    ));
    assert_eq!(slice.matches("u.turn()?;").count(), 3, "{slice}");
}

#[test]
fn what_is_put_by_name_keeps_its_changes_unless_it_is_a_list() {
    assert_slice(
        "let mut part = 0..2usize;
         part.start += 1;
         u.put(part.clone()).to(n, 0)?;
         let mut values = [0.0; 3];
         values[1] = u[2];
         u.put(values).to(n, 4)?;
         Ok(())",
        "let mut part = 0..2usize;
         part.start += 1;
         u.put(part.clone()).to(n, 0)?;
         let mut values = [::fencepost::__private::zero(); 3];
         u.put(values).to(n, 4)?;",
    );
}

#[test]
fn changes_in_what_is_dropped_stay() {
    assert_slice(
        "let mut rest = list.iter();
         let mut order = [0, 1];
         order.swap(0, 1);
         u[*rest.next().unwrap()] = 3.0;
         n > 1 && rest.next().is_some();
         n > 2 || rest.next().is_some();
         u.put([*rest.next().unwrap() as f64]).to(order[0], *rest.next().unwrap())?;
         Ok(())",
        "let mut rest = list.iter();
         let mut order = [0, 1];
         order.swap(0, 1);
         rest.next();
         if (n > 1) {
         rest.next();
         }
         if !(n > 2) {
         rest.next();
         }
         u.put([*rest.next().unwrap() as f64]).to(order[0], *rest.next().unwrap())?;",
    );
}

#[test]
fn a_loop_that_only_reads_is_dropped_with_its_break() {
    assert_slice(
        "let mut hot = false;
         for x in u.iter() {
             if *x > 3.0 { hot = true; break; }
         }
         u.put(0..1).to(n, 0)?;
         Ok(())",
        "u.put(0..1).to(n, 0)?;",
    );
}

#[test]
fn another_name_for_a_window_is_followed() {
    assert_slice(
        "let w = &u;
         w.put(0..w.len()).to(w.rank(), 0)
        ",
        "let w = &u;
         w.put(0..w.length()?).to(w.rank(), 0)?;",
    );
}

#[test]
fn a_match_passes_its_operations_on() {
    assert_slice(
        "match n {
             0 => u.put(0..1).to(1, 0),
             1 if list.is_empty() => Ok(()),
             _ => u.put(0..2).mode(Mode::Direct).to(None, 0),
         }",
        "match n {
         0 => {
         u.put(0..1).to(1, 0)?;
         }
         1 if list.is_empty() => {}
         _ => {
         u.put(0..2).mode(Mode::Direct).to(None, 0)?;
         }
         }",
    );
}

#[test]
fn a_fetch_is_a_get_without_its_ticket() {
    assert_slice(
        "let t = u.fetch(n, 0)?;
         u.fence()?;
         u[0] = t.take().unwrap()[0];
         Ok(())",
        "u.fetch(n, 0)?;
         u.fence_with_others(&[])?;",
    );
}

#[test]
fn a_fence_that_orders_nothing_is_left_out_of_both() {
    let source = with_body("u.fence()?; u.put(0..1).to(n, 1)?; u.fence()?; Ok(())");
    assert_eq!(pattern(&source).matches("fence_with_others").count(), 1);
    let whole = attribute(TokenStream::new(), tokens(&source)).to_string();
    assert_eq!(whole.matches("orders_nothing").count(), 1, "{whole}");
}

#[test]
fn assigned_names_that_feed_targets_are_followed() {
    assert_slice(
        "let mut to = n;
         let mut places = Vec::new();
         for i in 0..n {
             to += i;
             places.push(to);
             heat += u[i];
         }
         u.put(0..1).to(to, places[0])?;
         Ok(())",
        "let mut to = n;
         let mut places = Vec::new();
         for i in 0..n {
         to += i;
         places.push(to);
         }
         u.put(0..1).to(to, places[0])?;",
    );
}

// Dynamic functions of each form, and the line that the reason names.

#[test]
fn a_helper_that_is_handed_the_window_makes_it_dynamic() {
    assert_dynamic("u.put(0..1).to(1, 1)?;\nhelper(u, n)?;\nOk(())", 3, "helper(u, n)", "hands the window");
    assert_dynamic("helper(&mut *u)?;\nOk(())", 2, "helper(&mut *u)", "hands the window");
    assert_dynamic("n.helper(&u)?;\nOk(())", 2, "n.helper(&u)", "hands the window");
    assert_dynamic("u.put_all(n)?;\nOk(())", 2, "u.put_all(n)", "may communicate");
    assert_dynamic("let s = Pair { a: u, b: n };\nOk(())", 2, "u", "whole");
}

#[test]
fn a_window_in_the_tokens_of_a_macro_makes_it_dynamic() {
    assert_dynamic("\nsend!(u, n);\nOk(())", 3, "send!(u, n)", "tokens of a macro");
    assert_dynamic("println!(\"{:?}\", u);\nOk(())", 2, "println!", "tokens of a macro");
    assert_dynamic("assert!(u.put([1.0]).to(0, 0).is_ok());\nOk(())", 2, "u.put([1.0])", "tokens of a macro");
    assert_dynamic(
        "macro_rules! left { () => { u.put([1.0]).to(0, 0)? } }\nleft!();\nOk(())",
        2,
        "macro_rules",
        "macro",
    );
}

#[test]
fn a_builder_that_is_kept_makes_it_dynamic() {
    assert_dynamic("let p = u.put(0..1);\np.to(n, 1)?;\nOk(())", 2, "u.put(0..1)", "unfinished");
    assert_dynamic("let s = u.section(0..1);\nu.put(s).to(n, 1)?;\nOk(())", 2, "u.section(0..1)", "section");
}

#[test]
fn a_path_call_makes_it_dynamic() {
    assert_dynamic("Window::put(&u, 0..1).to(n, 1)?;\nOk(())", 2, "Window::put(&u, 0..1)", "by path");
    assert_dynamic("Put::to(u.put(0..1), n, 1)?;\nOk(())", 2, "Put::to", "by path");
}

#[test]
fn another_name_that_may_change_the_window_makes_it_dynamic() {
    for alias in ["let w = &mut *u;", "let w = u;", "let mut w = &u;", "let w: &mut Window<f64> = &mut *u;"] {
        assert_dynamic(&format!("{alias}\nw.put(0..1).to(n, 1)?;\nOk(())"), 2, alias, "another name");
    }
    assert_dynamic("for u in list {\nv.put(u);\n}\nOk(())", 2, "this name", "given to something else");
}

#[test]
fn an_unknown_change_of_what_feeds_a_target_makes_it_dynamic() {
    let why = "may change `to`";
    assert_dynamic("let mut to = n;\nbump(&mut to);\nu.put(0..1).to(to, 1)?;\nOk(())", 3, "&mut to", why);
    assert_dynamic(
        "let mut to = Vec::new();\nto.shuffle();\nu.put(0..1).to(to[0], 1)?;\nOk(())",
        3,
        "to.shuffle()",
        why,
    );
    assert_dynamic("let mut to = n;\nbump!(to);\nu.put(0..1).to(to, 1)?;\nOk(())", 3, "bump!(to)", why);
    assert_dynamic(
        "let mut to = n;\nlist.iter().for_each(|i| to += i);\nu.put(0..1).to(to, 1)?;\nOk(())",
        3,
        "to += i",
        why,
    );
    assert_dynamic(
        "let to = Cell::new(n);\nto.set(3);\nu.put(0..1).to(to.get(), 1)?;\nOk(())",
        3,
        "to.set(3)",
        why,
    );
}

#[test]
fn assignments_that_take_a_value_apart_are_followed() {
    assert_slice(
        "let (mut a, mut b) = (n, 0);
         (a, b) = (b, a);
         [places[0], _] = [a, 1];
         Pair { x: a } = pair;
         u.put(0..1).to(a, places[0])?;
         Ok(())",
        "let (mut a, mut b) = (n, 0);
         (a, b) = (b, a);
         [places[0], _] = [a, 1];
         Pair { x: a } = pair;
         u.put(0..1).to(a, places[0])?;",
    );
    assert_dynamic(
        "let (mut a, mut x) = (n, 0.0);\n(a, x) = (1, u[0]);\nu.put(0..1).to(a, 0)?;\nOk(())",
        3,
        "u[0]",
        "reads a window's elements",
    );
    assert_dynamic(
        "let mut a = n;\nlist.iter().for_each(|i| (a, _) = (*i, 0));\nu.put(0..1).to(a, 0)?;\nOk(())",
        3,
        "(a, _) = (*i, 0)",
        "may change `a`",
    );
}

#[test]
fn methods_that_take_a_value_out_are_followed() {
    assert_slice(
        "let mut to = Some(n);
         to.take();
         let mut rest = list.iter();
         let seen = rest.any(|place| *place == 3);
         if let Some(to) = to {
             for at in rest {
                 u.put(0..1).to(to, *at)?;
             }
         }
         Ok(())",
        "let mut to = Some(n);
         to.take();
         let mut rest = list.iter();
         let seen = rest.any(|place| *place == 3);
         if let Some(to) = to {
         for at in rest {
         u.put(0..1).to(to, *at)?;
         }
         }",
    );
}

#[test]
fn a_name_for_a_part_of_what_feeds_a_target_makes_it_dynamic() {
    let why = "may change `to`";
    for body in [
        "let mut to = Some(n);\nif let Some(ref mut at) = to { *at += 1; }\nu.put(0..1).to(to, 0)?;\nOk(())",
        "let mut to = Some(n);\nmatch to { Some(ref mut at) => *at += 1, None => {} }\nu.put(0..1).to(to, 0)?;\nOk(())",
        "let mut to = (n, 0);\nlet (ref mut at, _) = to;\n*at += 1;\nu.put(0..1).to(to.0, 0)?;\nOk(())",
    ] {
        let said = dynamic(&with_body(body));
        assert!(said.contains(why), "{said}");
    }
    for body in [
        "let Field { at, .. } = to; *at += 1; u.put(0..1).to(to.at, 0)?; Ok(())",
        "if let Field { at: Some(at), .. } = to { *at += 1; } u.put(0..1).to(to.at, 0)?; Ok(())",
        "match to { Field { at, .. } => *at += 1 } u.put(0..1).to(to.at, 0)?; Ok(())",
        "let other: &mut Field = to; other.at += 1; u.put(0..1).to(to.at, 0)?; Ok(())",
        "unsafe { *(&raw mut to.at) += 1; } u.put(0..1).to(to.at, 0)?; Ok(())",
    ] {
        let said = dynamic(&format!("fn f(u: &mut Window<f64>, to: &mut Field) -> Result<()> {{ {body} }}"));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_read_of_window_data_that_feeds_a_target_makes_it_dynamic() {
    let why = "reads a window's elements";
    assert_dynamic("u.put(0..1).to(u[0] as usize, 1)?;\nOk(())", 2, "u[0]", why);
    assert_dynamic("let to = u[0] as usize;\nu.put(0..1).to(to, 1)?;\nOk(())", 2, "u[0]", why);
    assert_dynamic("if u.iter().any(|x| *x > 1.0) {\nu.put(0..1).to(n, 1)?;\n}\nOk(())", 2, "u.iter()", why);
    assert_dynamic("let mut to = n;\nto += u[3] as usize;\nu.put(0..1).to(to, 1)?;\nOk(())", 3, "u[3]", why);
    assert_dynamic(
        "for x in &u[..] {\nif *x > 0.0 { continue; }\nu.put(0..1).to(n, 1)?;\n}\nOk(())",
        2,
        "u[..]",
        why,
    );
    assert_dynamic(
        "let t = u.fetch(n, 0)?;\nu.fence()?;\nlet to = t.take()?[0];\nu.put(0..1).to(to, 1)?;\nu.fence()?;\nOk(())",
        2,
        "let t",
        "is fetched",
    );
}

#[test]
fn an_operation_in_a_closure_makes_it_dynamic() {
    assert_dynamic(
        "list.iter().try_for_each(|&i| u.put(0..1).to(i, 1))",
        2,
        "u.put(0..1).to(i, 1)",
        "closure",
    );
}

#[test]
fn an_operation_whose_result_is_used_makes_it_dynamic() {
    assert_dynamic("let _ = u.put(0..1).to(n, 1);\nOk(())", 2, "u.put(0..1).to(n, 1)", "`Result` used");
    assert_dynamic("if u.put(0..1).to(n, 1).is_err() { stop(); }\nOk(())", 2, "u.put", "in a condition");
    assert_dynamic("let ok = n > 1 && u.put(0..1).to(n, 1).is_ok();\nOk(())", 2, "n > 1", "may be left out");
}

#[test]
fn the_world_is_not_in_a_pattern() {
    let source =
        "fn f(u: &mut Window<f64>, world: &World) -> Result<()> {\nu.put(0..1).to(world.rank(), 1)\n}";
    assert!(dynamic(source).contains("ask the window"));
}

#[test]
fn arguments_without_an_owned_form_make_it_dynamic() {
    for (ty, why) in [
        ("&[&str]", "holds a reference"),
        ("impl Fn(usize) -> usize", "no name"),
        ("&dyn Fn(usize) -> usize", "without a size"),
        ("Cow<'_, str>", "borrows"),
    ] {
        let said = dynamic(&format!("fn f(u: &mut Window<f64>, a: {ty}) -> Result<()> {{ Ok(()) }}"));
        assert!(said.contains(why), "{ty}: {said}");
    }
}

#[test]
fn a_dynamic_superstep_has_no_pattern_at_all() {
    let source = with_body("helper(u)?;\nOk(())");
    let whole = attribute(TokenStream::new(), tokens(&source)).to_string();
    assert!(whole.contains("cannot be compiled ahead: line 2: `helper(u)`"), "{whole}");
    assert!(!whole.contains("Recording"), "{whole}");
}

#[test]
fn what_changes_without_being_assigned_makes_it_dynamic() {
    for (body, text, why) in [
        ("let to = COUNTER.load(SeqCst);\nu.put(0..1).to(to, 0)", "COUNTER.load(SeqCst)", "may be a static"),
        ("let to = counter.value();\nu.put(0..1).to(to, 0)", "counter.value()", "may be a static"),
        ("let to = deep::CELL.get();\nu.put(0..1).to(to, 0)", "deep::CELL.get()", "may be a static"),
        ("let to = value(&COUNTER);\nu.put(0..1).to(to, 0)", "&COUNTER", "may be a static"),
        ("let to = next();\nu.put(0..1).to(to, 0)", "next()", "no arguments"),
        ("let to = unsafe { *list.get_unchecked(0) };\nu.put(0..1).to(to, 0)", "unsafe", "unsafe code"),
        ("let to = raw!(unsafe { *list });\nu.put(0..1).to(to, 0)", "raw!", "unsafe code"),
        ("let to = Cell::new(n);\nu.put(0..1).to(to.get(), 0)", "let to", "changes without being assigned"),
        ("let to = list.state.lock();\nu.put(0..1).to(to.0, 0)", "list.state.lock()", "between two calls"),
    ] {
        assert_dynamic(&format!("{body}?;\nOk(())"), 2, text, why);
    }
    assert_dynamic(
        "let mut all = HashMap::new();\nfor (to, at) in &all { u.put(0..1).to(*to, *at)?; }\nOk(())",
        3,
        "&all",
        "whose order differs",
    );
    assert_dynamic(
        "static AT: usize = 1;\nfn at() -> usize { AT }\nu.put(0..1).to(at(), 0)?;\nOk(())",
        4,
        "at",
        "is or has a static",
    );
    assert_dynamic(
        "impl Located for Outer {}\nu.put(0..1).to(n, 0)?;\nOk(())",
        2,
        "Outer",
        "from outside of the body",
    );
}

#[test]
fn constants_are_no_statics() {
    for target in
        ["MOST", "MOST.min(n)", "usize::BITS as usize", "TABLE[n]", "Vec::<usize>::new().len()", "two()"]
    {
        let body = format!("fn two() -> usize {{ 2 }}\nu.put(0..1).to({target}, 0)?;\nOk(())");
        assert!(pattern(&with_body(&body)).contains("u.put(0..1)"), "{target}");
    }
}

#[test]
fn the_last_fence_is_not_known_where_calls_may_hide() {
    let whole = |body: &str| attribute(TokenStream::new(), tokens(&with_body(body))).to_string();
    assert!(!whole("u.fence()?; helper(u)?; u[0] += 0.0; Ok(())").contains("ended"));
    assert!(whole("u.put(0..1).to(n, 0)?; u.fence()?; u[0] += 0.0; Ok(())").contains("ended"));
}

#[test]
fn what_is_compiled_conditionally_makes_it_dynamic() {
    assert_dynamic(
        "#[cfg(feature = \"x\")]\nu.put(0..1).to(n, 1)?;\nOk(())",
        2,
        "#[cfg(feature = \"x\")]",
        "condition",
    );
}

#[test]
fn a_macro_that_may_return_makes_it_dynamic_where_a_value_is_returned() {
    let source = "fn f(u: &mut Window<f64>, n: usize) -> Result<usize> {\nmaybe_return!(n);\nu.put(0..1).to(n, 1)?;\nOk(n)\n}";
    assert!(dynamic(source).contains("may return"));
    assert_slice(
        "maybe_return!(n);
         u.put(0..1).to(n, 1)?;
         Ok(())",
        "maybe_return!(n);
         u.put(0..1).to(n, 1)?;",
    );
}

#[test]
fn no_fence_is_left_out_where_calls_may_hide() {
    let source = with_body("helper(u)?; u.fence()?; u.put(0..1).to(n, 1)?; u.fence()?; Ok(())");
    let whole = attribute(TokenStream::new(), tokens(&source)).to_string();
    assert!(!whole.contains("orders_nothing"), "{whole}");
}

// Refusals.

#[test]
fn signatures_that_cannot_be_supersteps_are_refused() {
    for (source, says) in [
        ("struct S;", "belongs on a function"),
        ("impl S { fn f() {} }", "belongs on a function"),
        ("trait T { fn f(); }", "belongs on a function"),
        ("fn f(&mut self, u: &mut Window<f64>) -> Result<()> { Ok(()) }", "cannot be a method"),
        ("fn f(u: &mut Window<f64>, s: Self) -> Result<()> { Ok(()) }", "`Self`"),
        ("async fn f(u: &mut Window<f64>) -> Result<()> { Ok(()) }", "`async`"),
        ("const fn f(u: &mut Window<f64>) -> Result<()> { Ok(()) }", "`const`"),
        ("unsafe fn f(u: &mut Window<f64>) -> Result<()> { Ok(()) }", "`unsafe`"),
        ("extern \"C\" fn f(u: &mut Window<f64>) -> Result<()> { Ok(()) }", "`extern`"),
        ("fn f(u: &mut Window<f64>) {}", "returns a `Result`"),
        ("fn f(u: &mut Window<f64>) -> Option<()> { None }", "returns a `Result`"),
        ("fn f(u: &mut Window<f64>) -> Result<impl Sized> { Ok(()) }", "`impl Trait`"),
        ("fn f(n: usize) -> Result<()> { Ok(()) }", "needs a window"),
        (
            "fn f(a: &mut Window<u8>, b: &mut Window<u8>, c: &mut Window<u8>, d: &mut Window<u8>, e: &mut Window<u8>, f: &mut Window<u8>, g: &mut Window<u8>) -> Result<()> { Ok(()) }",
            "at most six parameters are windows",
        ),
        ("fn f(u: Window<f64>) -> Result<()> { Ok(()) }", "as `&mut Window<T>` only"),
        (
            "fn f(u: &mut Window<f64>, v: &mut [Window<f64>]) -> Result<()> { Ok(()) }",
            "has its length in its type",
        ),
        ("fn f(&mut u: &mut Window<f64>) -> Result<()> { Ok(()) }", "plain name"),
        ("fn f(#[uniform] u: &mut Window<f64>) -> Result<()> { Ok(()) }", "never has"),
    ] {
        let said = refusal(source);
        assert!(said.contains(says), "{source}: {said}");
    }
}

#[test]
fn unknown_options_are_refused() {
    let said = understand(tokens("fast"), tokens(&with_body("Ok(())"))).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("`prepared = TypeName`"), "{said}");
    let said =
        understand(tokens("mode = fast"), tokens(&with_body("Ok(())"))).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("unknown mode: use aggressive"), "{said}");
}

#[track_caller]
fn refused(body: &str, says: &str) {
    let source = format!(
        "fn f(u: &mut Window<f64>, v: &mut Window<f64>, old: &Window<f64>, mine: &mut Field, world: &World, #[uniform] steps: usize, n: usize) -> Result<()> {{ {body} }}"
    );
    let said = refusal(&source);
    assert!(said.contains(says), "{body}: {said}");
}

#[track_caller]
fn accepted(body: &str) {
    let source = format!(
        "fn f(u: &mut Window<f64>, v: &mut Window<f64>, world: &World, #[uniform] steps: usize, n: usize) -> Result<()> {{ {body} }}"
    );
    let _ = outcome(&source);
}

#[test]
fn a_fence_that_some_ranks_may_not_reach_is_refused() {
    for body in [
        "if n > 3 { u.fence()?; } u.fence()?; Ok(())",
        "for i in 0..n { u.fence()?; } u.fence()?; Ok(())",
        "while u[0] > 0.0 { u.fence()?; } u.fence()?; Ok(())",
        "match u.rank() { 0 => u.fence()?, _ => {} } u.fence()?; Ok(())",
        "let half = n / 2; if half > 1 { u.fence()?; } u.fence()?; Ok(())",
        "let mut i = 0; if n > 1 { i = 2; } while i < 3 { i += 1; u.fence()?; } u.fence()?; Ok(())",
        "if helper() { u.fence()?; } u.fence()?; Ok(())",
        "let (mut i, mut k) = (0, 3); (k, _) = (n, 0); while i < k { i += 1; u.fence()?; } u.fence()?; Ok(())",
        "let mut k = Some(3); if n > 1 { k.take(); } if k.is_some() { u.fence()?; } u.fence()?; Ok(())",
        "n > 1 && u.fence().is_ok(); u.fence()?; Ok(())",
    ] {
        refused(body, "may not be reached by all ranks");
    }
    refused("loop { u.fence()?; if n > 3 { break; } } u.fence()?; Ok(())", "may skip a fence");
    refused("for i in 0..steps { if n == i { continue; } u.fence()?; } Ok(())", "may skip a fence");
}

#[test]
fn a_fence_under_what_all_ranks_know_is_accepted() {
    for body in [
        "if steps > 3 { u.fence()?; } u.fence()?; Ok(())",
        "for i in 0..steps { u.put(0..1).to(n, i)?; if i % 2 == 0 { u.fence()?; } } u.fence()?; Ok(())",
        "let mut d = 1; while d < u.size() { u.put(0..1).to(n, d)?; u.fence()?; d *= 2; } u.fence()?; Ok(())",
        "const ROUNDS: usize = 4; for _ in 0..ROUNDS { u.fence()?; } Ok(())",
        "for _ in 0..steps.min(3) { u.fence()?; if steps > 2 { break; } } u.fence()?; Ok(())",
        "let (a, half) = (n, steps / 2); if half == 0 { u.fence()?; } u.fence()?; Ok(())",
        "let mut i = 0; loop { i += 1; u.fence()?; if i == steps { break; } } Ok(())",
        "for _ in (0..steps).take(2) { u.fence()?; } Ok(())",
        "let mut k = Some(steps); k.take(); if k.is_some() { u.fence()?; } u.fence()?; Ok(())",
    ] {
        accepted(body);
    }
}

#[test]
fn an_operation_after_the_last_fence_is_refused() {
    for body in [
        "u.fence()?; u.put(0..1).to(n, 0)?; Ok(())",
        "for i in 0..steps { u.fence()?; u.put(0..1).to(n, 0)?; } Ok(())",
        "u.put(0..1).to(n, 0)?; if steps > 1 { u.fence()?; } Ok(())",
        "u.put(0..1).to(n, 0)?; v.put(0..1).to(n, 0)?; u.fence()?; Ok(())",
        "loop { u.fence()?; u.put(0..1).to(n, 0)?; if steps > 1 { break; } u.fence()?; } Ok(())",
    ] {
        refused(body, "comes after the last fence of the superstep and would never complete");
    }
    accepted("u.put(0..1).to(n, 0)?; if n > 3 { return Err(stop()); } u.fence()?; Ok(())");
    accepted("u.put(0..1).to(n, 0)?; v.put(0..1).to(n, 0)?; world.fence((u, v))?; Ok(())");
}

#[test]
fn returning_before_a_fence_is_refused() {
    refused("if n > 3 { return Ok(()); } u.fence()?; Ok(())", "leaves out a fence");
    refused("for i in 0..steps { if n > 3 { return Ok(()); } u.fence()?; } Ok(())", "leaves out a fence");
    accepted("u.put(0..1).to(n, 0)?; u.fence()?; if n > 3 { return Ok(()); } u[0] = 1.0; Ok(())");
    accepted("if n > 3 { return Ok(()); } u.put(0..1).to(n, 0)?; Ok(())");
}

#[test]
fn uses_of_windows_that_cannot_work_are_refused() {
    refused("let f = || u.fence(); f()?; Ok(())", "fence in a closure");
    refused("u.lock(0)?; Ok(())", "another synchronisation mode");
    refused("u.post(n)?; Ok(())", "another synchronisation mode");
    refused("u.epoch(|e| e.put([1.0]).to(0, 0))?; Ok(())", "an epoch already");
    refused("old.put(0..1).to(n, 0)?; Ok(())", "only as `&mut Window<T>`");
    refused("mine.put(0..1).to(n, 0)?; Ok(())", "not seen to be a window");
    refused("mine.cells.put(0..1).to(n, 0)?; Ok(())", "not seen to be a window");
    refused("u.put(0..1); Ok(())", "does nothing without a target: add `.to");
    refused("u.get(0..1); Ok(())", "does nothing without a target: add `.from");
    refused(
        "u.put(v.section(0..1)).to(n, 0)?; u.fence()?; v.fence()?; Ok(())",
        "a fence that it is not part of",
    );
    accepted("u.put(v.section(0..1)).to(n, 0)?; world.fence((u, v))?; Ok(())");
}

#[test]
fn a_conflict_that_can_be_seen_is_refused() {
    for body in [
        "u.put([1.0]).to(0, 3)?; u.put([2.0]).to(0, 3)?; Ok(())",
        "u.put([1.0, 2.0]).to(0, 3)?; u.put([2.0]).to(0, 4)?; Ok(())",
        "u.put(0..4).to(n, 0..4)?; u.accumulate([2.0], Op::Sum).to(n, 3)?; Ok(())",
        "u.accumulate([1.0], Op::Max).to(n, 3)?; u.accumulate([2.0], Op::Sum).to(n, 3)?; Ok(())",
        "u.put([1.0]).to(n, 3)?; u.get(0..1).from(n, 3)?; Ok(())",
        "let to = n + 1; u.put(a).to(to, n)?; u.put(b).to(to, n)?; Ok(())",
    ] {
        refused(body, "same elements as an earlier call");
    }
    for body in [
        "u.put([1.0]).to(0, 3)?; u.put([2.0]).to(0, 4)?; Ok(())",
        "u.put([1.0]).to(0, 3)?; v.put([2.0]).to(0, 3)?; Ok(())",
        "u.put([1.0]).to(0, 3)?; u.put([2.0]).to(n, 3)?; Ok(())",
        "u.put([1.0]).to(0, 3)?; u.fence()?; u.put([2.0]).to(0, 3)?; u.fence()?; Ok(())",
        "u.accumulate([1.0], Op::Sum).to(n, 3)?; u.accumulate([2.0], Op::Sum).to(n, 3)?; Ok(())",
        "u.get(0..1).from(n, 3)?; u.get(1..2).from(n, 3)?; Ok(())",
        "u.put([1.0]).to(None, 3)?; u.put([2.0]).to(None, 3)?; Ok(())",
        "let to = n; u.put([1.0]).to(to, 3)?; let to = n + 1; u.put([1.0]).to(to, 3)?; Ok(())",
        "let mut to = n; u.put([1.0]).to(to, 3)?; to += 1; u.put([1.0]).to(to, 3)?; Ok(())",
        "if n > 1 { u.put([1.0]).to(0, 3)?; } else { u.put([2.0]).to(0, 3)?; } Ok(())",
    ] {
        accepted(body);
    }
}

// Expansions.

#[test]
fn an_error_leaves_the_function_and_one_message() {
    let whole = attribute(TokenStream::new(), tokens(&with_body("u.put(0..1);\nOk(())")));
    let file: syn::File = syn::parse2(whole).unwrap();
    assert_eq!(file.items.len(), 2);
    assert!(matches!(&file.items[0], syn::Item::Fn(function) if function.sig.ident == "f"));
}

#[test]
fn every_expansion_parses() {
    for source in [
        with_body(HALO),
        with_body("helper(u)?; Ok(())"),
        "/// Docs.\n#[cfg(all())]\n#[inline]\npub(crate) fn f<'a, T: Element, const N: usize>(mut u: &'a mut Window<T>, (a, b): (usize, usize), v: &'a mut Window<T>, names: &'a [String], path: &Path, text: &str, own: Vec<usize>, out: &mut usize, old: &Window<T>, world: &World, #[uniform] steps: usize) -> std::result::Result<usize, Mine> where T: Copy { u.put(v.section(a..b)).to(own[N], names.len())?; Ok(3) }".to_owned(),
    ] {
        let whole = attribute(TokenStream::new(), tokens(&source));
        let text = whole.to_string();
        syn::parse2::<syn::File>(whole).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn the_facade_is_where_the_option_says() {
    let whole =
        attribute(tokens("crate = other::place, prepared = Halo"), tokens(&with_body(HALO))).to_string();
    assert!(!whole.contains("fencepost"), "{whole}");
    assert!(whole.contains("struct Halo"), "{whole}");
}

/// Returns a function with a list of two windows.
fn with_list(body: &str) -> String {
    format!("fn f(fields: &mut [Window<f64>; 2], n: usize) -> Result<()> {{\n{body}\n}}")
}

#[test]
fn a_loop_over_a_list_of_windows_is_a_block_for_each() {
    let body = "
        for (i, field) in fields.iter_mut().enumerate() {
            field.put(0..n).to(i, 0)?;
        }
        fields[1].put(0..fields.len()).to(0, n)?;
        Ok(())";
    let expected = "
        {
            {
                let i = 0usize;
                __fields_0.put(0..n).to(i, 0)?;
            }
            {
                let i = 1usize;
                __fields_1.put(0..n).to(i, 0)?;
            }
        }
        __fields_1.put(0..2usize).to(0, n)?;";
    let slice = pattern(&with_list(body));
    let lines =
        |text: &str| -> Vec<String> { text.trim().lines().map(|line| line.trim().to_owned()).collect() };
    assert_eq!(lines(&slice), lines(expected), "\n{slice}");
    assert!(replays(&with_list(body)));
}

#[test]
fn a_list_of_windows_is_refused_where_it_cannot_be_written_out() {
    let refused = |body: &str, words: &str| {
        let said = refusal(&with_list(body));
        assert!(said.contains(words), "{said}");
    };
    refused("hand_on(fields); Ok(())", "a list of windows is used in a superstep by");
    refused(
        "fields.iter().for_each(|field| drop(field)); Ok(())",
        "a list of windows is used in a superstep by",
    );
    refused("assert!(fields[0].len() > 1); Ok(())", "a list of windows is used in a superstep by");
    refused("fields[n].put(0..1).to(0, 1)", "an index into a list of windows is a number below its length");
    refused("fields[2].put(0..1).to(0, 1)", "an index into a list of windows is a number below its length");
    refused("for field in fields { if n > 1 { break; } } Ok(())", "goes over all of them");
    refused("'a: for field in fields { loop { continue 'a; } } Ok(())", "goes over all of them");
    refused("for Some(field) in fields {} Ok(())", "names each of them");
    refused("for field in fields { let field = 1; } Ok(())", "gets the name of a window");
    refused("for field in fields { field.fence()?; } Ok(())", "a fence in a loop over a list");
    refused("for field in fields { skip!(n, { continue }); } Ok(())", "goes over all of them");
    refused(
        "for field in fields { let w = &field; w.put(0..1).to(0, 1)?; } Ok(())",
        "has the name of its loop",
    );
    refused("for field in fields { println!(\"{field:?}\"); } Ok(())", "hand the window over as an argument");
    refused("for field in fields { println!(\"{f}\", field = n); } Ok(())", "gets the name of a window");
    refused("for mut field in fields {} Ok(())", "names each of them");
    refused(
        "for (i, field) in fields.iter().enumerate().enumerate() {} Ok(())",
        "a list of windows is used in a superstep by",
    );
    let many = "for a in f { for b in f { for c in f {} } } Ok(())";
    let said = refusal(&format!("fn f(f: &mut [Window<f64>; 20]) -> Result<()> {{ {many} }}"));
    assert!(said.contains("more than 4096 blocks"), "{said}");
    let said = refusal("fn f(#[uniform] fields: &mut [Window<f64>; 2]) -> Result<()> { Ok(()) }");
    assert!(said.contains("`#[uniform]`"), "{said}");
    let lists: Vec<String> = (0..7).map(|n| format!("l{n}: &mut [Window<f64>; 1]")).collect();
    assert!(
        refusal(&format!("fn f({}) -> Result<()> {{ Ok(()) }}", lists.join(", ")))
            .contains("at most six parameters")
    );
    let two = "fn f(a: &mut [Window<f64>; 40], b: &mut [Window<f64>; 25]) -> Result<()> { Ok(()) }";
    assert!(refusal(two).contains("no more than 64 windows in all"));
    let configured = "#[cfg(feature = \"x\")] for field in fields { field.put(0..1).to(0, 1)?; } Ok(())";
    assert!(dynamic(&with_list(configured)).contains("leaves out a part of the body by a condition"));
    for ty in ["[Window<f64>]", "[Window<f64>; N]", "[Window<f64>; 0]", "[Window<f64>; 65]"] {
        let said = refusal(&format!("fn f(fields: &mut {ty}) -> Result<()> {{ Ok(()) }}"));
        assert!(said.contains("a list of windows has its length in its type"), "{said}");
    }
    let said = dynamic(&with_list("for field in fields { see!(0..field.len(), n.field); } Ok(())"));
    assert!(said.contains("see!(0..__fields_0.len(), n.field)"), "{said}");
    let both = "fn f(world: &World, fields: &mut [Window<f64>; 2]) -> Result<()> {
        fields[0].put(0..1).to(0, 1)?;
        world.fence((&mut fields[0], &mut fields[1]))
    }";
    assert!(pattern(both).contains("__fields_0.fence_with_others(&[__fields_1.id()])"), "{}", pattern(both));
    // A `break` may leave an inner loop, and a member may have the same name as the loop's binding.
    let body = "for field in fields { loop { break; } field.put(n.field..2).to(0, 1)?; } Ok(())";
    assert!(pattern(&with_list(body)).contains("__fields_1.put(n.field..2)"));
}
