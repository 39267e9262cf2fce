//! Random bodies of supersteps, as text.

use std::fmt::Write as _;

/// A body that is being drawn.
struct Draw {
    state: u64,
    out: String,
    depth: usize,
    /// The number of operations and names so far.
    number: usize,
    /// The labels of the loops around the current place.
    loops: Vec<String>,
}

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.state >> 33) as usize % bound
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 8 + 4 * self.depth);
    }

    fn name(&mut self) -> usize {
        self.number += 1;
        self.number
    }

    /// Returns an expression for a number below 250. `all` and `u` decide whether the expression
    /// may use the list and the window.
    fn value(&mut self, deep: usize, all: bool, u: bool) -> String {
        let most = if deep == 0 { 9 } else { 17 };
        match self.below(most) {
            0 => "n".into(),
            1 => "k".into(),
            2 | 3 => "a".into(),
            4 | 5 => "b".into(),
            6 => self.below(9).to_string(),
            7 => "list.len()".into(),
            8 if u => "u.rank()".into(),
            8 => "3".into(),
            9 | 10 => {
                let (x, y) = (self.value(deep - 1, all, u), self.value(deep - 1, all, u));
                format!("(({x} + {y}) % 13)")
            }
            11 => format!("pick(list, {})", self.value(deep - 1, all, u)),
            12 => format!("rest.next().unwrap_or({})", self.below(5)),
            13 if all => format!("all.pop().unwrap_or({})", self.below(5)),
            13 => format!("by({})", self.value(deep - 1, all, u)),
            14 => format!("({{ a = (a + {}) % 9; a }})", 1 + self.below(3)),
            15 => format!("small({})?", self.value(deep - 1, all, u)),
            // The expression is only rarely an element of the window, since most bodies should have
            // a pattern.
            _ if u && self.below(12) == 0 => format!("u[{}] as usize", self.below(24)),
            _ => format!("by({})", self.value(deep - 1, all, u)),
        }
    }

    fn condition(&mut self, deep: usize) -> String {
        match self.below(if deep == 0 { 4 } else { 8 }) {
            0 | 1 => format!("{} > {}", self.value(1, true, true), self.below(8)),
            2 => format!("{} % 2 == 0", self.value(1, true, true)),
            3 => "rest.next().is_some()".into(),
            4 => format!("({} && {})", self.condition(deep - 1), self.condition(deep - 1)),
            5 => format!("({} || {})", self.condition(deep - 1), self.condition(deep - 1)),
            6 => format!("matches!({} % 3, 0 | 2)", self.value(0, false, false)),
            _ if self.below(6) == 0 => format!("u[{}] > 150", self.below(24)),
            _ => format!("all.contains(&{})", self.below(9)),
        }
    }

    fn block(&mut self, head: &str, end: &str) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        for _ in 0..1 + self.below(2) {
            self.statement();
        }
        self.depth -= 1;
        self.line(&format!("}}{end}"));
    }

    fn operation(&mut self) {
        let id = self.name();
        let source = match self.below(6) {
            0 => "0..2".into(),
            1 => format!("[u[{}], {}]", self.below(24), id),
            2 => "part.clone()".into(),
            3 => format!("[{} as u64]", self.value(2, true, true)),
            4 => "&values".into(),
            _ => format!("[{id}]"),
        };
        let (to, at) = (self.value(2, true, true), self.value(1, true, true));
        let call = match self.below(5) {
            0 => format!("u.accumulate({source}, Op::Sum)"),
            _ => format!("u.put({source})"),
        };
        self.line(&format!("{call}.to({to} % u.size(), ({at} + {id}) % 20)?;"));
    }

    fn statement(&mut self) {
        let most = if self.depth > 2 { 13 } else { 22 };
        match self.below(most) {
            0..=3 => self.operation(),
            4 => {
                let (name, value) = (["a", "b"][self.below(2)], self.value(2, true, true));
                self.line(&format!("{name} = {value} % 13;"));
            }
            5 => {
                let (name, value) = (["a", "b"][self.below(2)], self.value(2, true, true));
                self.line(&format!("{name} ^= {value} % 4;"));
            }
            6 => {
                let (at, value) = (self.value(2, true, false), self.value(2, true, false));
                self.line(&format!("u[{at} % 24] += {value} as u64;"));
            }
            7 => {
                let value = self.value(1, false, true);
                let call = [
                    &format!("all.push({value});"),
                    "all.sort();",
                    "all.reverse();",
                    &format!("all.truncate({value});"),
                    "rest.next();",
                    "part.end += 1;",
                    "part.start = (part.start + 1) % part.end;",
                    "values[0] = u[5];",
                    "values.push(u[6]);",
                ][self.below(9)]
                .to_owned();
                self.line(&call);
            }
            8 => {
                let check = [
                    "validate(list)?;".to_owned(),
                    format!("small({})?;", self.value(1, true, true)),
                    format!("let _checked = small({})?;", self.value(1, true, true)),
                    "validated(list, &u[..])?;".to_owned(),
                    format!("ensure!({} < 12, \"great\");", self.value(0, false, false)),
                ];
                let check = &check[self.below(5)];
                self.line(check);
            }
            9 => {
                let condition = self.condition(1);
                let out = match self.below(5) {
                    0 => "return Ok(())",
                    1 => "Err(bad(\"drawn\"))?",
                    _ => "return Err(bad(\"drawn\"))",
                };
                self.line(&format!("if {condition} {{ {out}; }}"));
            }
            10 => {
                let condition = [self.condition(1), self.condition(1)].join([" && ", " || "][self.below(2)]);
                self.line(&format!("let _ = {condition};"));
            }
            11 => {
                let (name, value) = (["a", "b"][self.below(2)], self.value(2, true, true));
                self.line(&format!("let mut {name} = {value};"));
            }
            12 => match self.loops.last().cloned() {
                Some(label) => {
                    let condition = self.condition(1);
                    let jump = ["break", "continue"][self.below(2)];
                    self.line(&format!("if {condition} {{ {jump} {label}; }}"));
                }
                None => self.operation(),
            },
            13 | 14 => {
                let condition = self.condition(2);
                self.block(&format!("if {condition}"), "");
            }
            15 => {
                let condition = self.condition(1);
                self.block(&format!("if {condition}"), " else {");
                self.depth += 1;
                self.statement();
                self.depth -= 1;
                self.line("}");
            }
            16 | 17 => {
                let (label, value) = (format!("'l{}", self.name()), self.value(1, true, true));
                self.loops.push(label.clone());
                self.block(&format!("{label}: for i in 0..{value} % 4"), "");
                self.loops.pop();
            }
            18 => {
                let (name, value) = (self.name(), self.value(1, true, true));
                let label = format!("'l{name}");
                self.line(&format!("let mut w{name} = 0;"));
                self.line(&format!("{label}: while w{name} < {value} % 4 {{"));
                self.loops.push(label);
                self.depth += 1;
                self.line(&format!("w{name} += 1;"));
                self.statement();
                self.depth -= 1;
                self.loops.pop();
                self.line("}");
            }
            19 => {
                let value = self.value(1, true, true);
                self.line(&format!("match {value} % 3 {{"));
                self.depth += 1;
                self.block("0 =>", "");
                let guard = self.condition(0);
                self.block(&format!("1 if {guard} =>"), "");
                self.block("_ =>", "");
                self.depth -= 1;
                self.line("}");
            }
            20 => {
                let value = self.value(1, true, true);
                let out = ["return Err(bad(\"none\"))", "return Ok(())", "panic!(\"none\")"][self.below(3)];
                self.line(&format!("let Some(&b) = list.get({value}) else {{ {out} }};"));
                self.line("let mut b = b;");
            }
            _ => {
                let value = self.value(1, true, true);
                self.block(&format!("if let Some(&(mut a)) = list.get({value})"), "");
            }
        }
    }
}

/// Returns the statements of the body that a seed determines.
pub fn body(seed: u64) -> String {
    let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut draw = Draw { state, out: String::new(), depth: 0, number: 0, loops: Vec::new() };
    draw.line("let (mut a, mut b) = (n, k);");
    draw.line("let (mut rest, mut all) = (list.iter().copied(), list.to_vec());");
    draw.line("let (mut part, mut values) = (1..2usize, vec![7u64; 2]);");
    draw.line("let by = |x: usize| (x + n) % 5;");
    for _ in 0..3 + draw.below(4) {
        draw.statement();
    }
    draw.operation();
    draw.line("Ok(())");
    draw.out
}
