//! Lists everything in the facade that a program can reach, with the declaration of each item from
//! its source. `fencepost-surface FOLDER` reads the files that rustdoc wrote for each crate
//! (`--output-format json`) in FOLDER, and prints the list. `.ci/run surface` compares the list
//! with `src/surface.txt`, so that a review sees every change of the interface.
//!
//! An item is listed once, under the first path that reaches it. Items of the prelude have other
//! paths too. Items that rustdoc hides are listed last, by name. Macros and other crates of the
//! workspace use them, and they may change in any release.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{env, fs, process};

/// The crate from which the list starts.
const FACADE: &str = "fencepost";

/// An item: the crate whose description contains it, and its number in this description.
type Item = (String, String);

/// The descriptions of all crates, and the items that are already listed.
struct Surface {
    crates: BTreeMap<String, Value>,
    /// All items by path. A crate refers to items of other crates by path.
    by_path: BTreeMap<Vec<String>, Item>,
    listed: BTreeSet<Item>,
    /// The listed items with their members, by path.
    lines: BTreeMap<String, Vec<String>>,
    hidden: BTreeSet<String>,
    count: usize,
}

/// Returns the only key of an object, and its value. rustdoc distinguishes kinds of items by this
/// key.
fn kind(item: &Value) -> (&str, &Value) {
    let inner = item["inner"].as_object().and_then(|inner| inner.iter().next());
    inner.map_or(("", &Value::Null), |(kind, value)| (kind.as_str(), value))
}

fn ids(list: &Value) -> impl Iterator<Item = String> + '_ {
    list.as_array().into_iter().flatten().filter(|id| !id.is_null()).map(Value::to_string)
}

fn is_hidden(item: &Value) -> bool {
    item["attrs"].to_string().contains("hidden")
}

fn is_public(item: &Value) -> bool {
    // Variants, and the items of traits, are as public as the item to which they belong.
    matches!(item["visibility"].as_str(), Some("public" | "default"))
}

/// Returns the declaration of an item from its source, without its body.
fn declaration(item: &Value) -> String {
    let name = item["name"].as_str().unwrap_or_default();
    let (kind, ends): (&str, &[char]) = match kind(item).0 {
        "function" | "proc_macro" => ("fn", &['{', ';']),
        "trait" | "enum" | "union" => (kind(item).0, &['{', ';']),
        "struct" => ("struct", &['{', ';', '(']),
        "assoc_const" | "constant" => ("const", &['=']),
        "type_alias" | "assoc_type" => ("type", &[';']),
        _ => ("", &[]),
    };
    // An item that a macro wrote has the span of the macro's call.
    let declares = format!("{kind} {name}");
    let text = written(&item["span"]).filter(|text| text.contains(declares.trim()) && !text.contains("! {"));
    let text = text.unwrap_or(declares);
    // Text between brackets, such as the default of a parameter, does not end a declaration. The
    // `>` of an arrow is not a bracket.
    let (mut depth, mut before) = (0, ' ');
    let end = text.find(|c| {
        let closes = c == ']' || c == '>' && before != '-';
        depth += i32::from(c == '[' || c == '<') - i32::from(closes);
        before = c;
        depth == 0 && ends.contains(&c)
    });
    let words: Vec<&str> = text[..end.unwrap_or(text.len())].split_whitespace().collect();
    let line = words.join(" ").replace("( ", "(").replace(", )", ")");
    line.trim_start_matches("pub ").trim_end_matches([',', ' ']).to_owned()
}

/// Returns the text of a span without comments and attributes.
fn written(span: &Value) -> Option<String> {
    let text = fs::read_to_string(span["filename"].as_str()?).ok()?;
    let place = |end: &str, part: usize| span[end][part].as_u64().map(|number| number as usize - 1);
    let (first, last) = (place("begin", 0)?, place("end", 0)?);
    let lines = text.lines().skip(first).take(last - first + 1).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("//") && !line.starts_with("#[")).collect();
    Some(lines.join("\n"))
}

impl Surface {
    fn read(folder: &str) -> Result<Self, String> {
        let mut crates = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))? {
            let path = entry.map_err(|error| format!("{folder}: {error}"))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let described: Value =
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            crates.insert(name.unwrap_or_default(), described);
        }
        let mut by_path = BTreeMap::new();
        for (name, described) in &crates {
            for (id, summary) in described["paths"].as_object().into_iter().flatten() {
                if summary["crate_id"] == 0 && !described["index"][id].is_null() {
                    let path = summary["path"].as_array().into_iter().flatten();
                    let path = path.filter_map(Value::as_str).map(str::to_owned).collect();
                    by_path.insert(path, (name.clone(), id.clone()));
                }
            }
        }
        let (listed, lines, hidden) = Default::default();
        Ok(Self { crates, by_path, listed, lines, hidden, count: 0 })
    }

    fn item(&self, (of, id): &Item) -> &Value {
        &self.crates[of]["index"][id]
    }

    /// Returns the item that crate `of` refers to as `id`, or the path of an item of another crate.
    fn target(&self, of: &str, id: &str) -> Result<Item, String> {
        if !self.crates[of]["index"][id].is_null() {
            return Ok((of.to_owned(), id.to_owned()));
        }
        let path = self.crates[of]["paths"][id]["path"].as_array().into_iter().flatten();
        let path: Vec<String> = path.filter_map(Value::as_str).map(str::to_owned).collect();
        self.by_path.get(&path).cloned().ok_or_else(|| path.join("::"))
    }

    /// Lists the items of the module `module` under `path`.
    fn module(&mut self, module: &Item, path: &str) {
        let item = self.item(module).clone();
        let (_, inner) = kind(&item);
        // Modules come last, so that an item is listed under its shortest path.
        let mut children: Vec<Item> = ids(&inner["items"]).map(|id| (module.0.clone(), id)).collect();
        children.sort_by_key(|child| {
            let child = self.item(child);
            (kind(child).0 == "module", child["inner"]["use"]["name"].to_string(), child["name"].to_string())
        });
        for child in children {
            let item = self.item(&child).clone();
            let (what, inner) = kind(&item);
            if !is_public(&item) {
                continue;
            }
            let (name, target) = match what {
                "use" => {
                    assert!(inner["is_glob"] != true, "{path} exports {} by `*`", inner["source"]);
                    (&inner["name"], self.target(&child.0, &inner["id"].to_string()))
                }
                _ => (&item["name"], Ok(child)),
            };
            let path = format!("{path}::{}", name.as_str().unwrap_or_default());
            match target {
                Ok(_) if is_hidden(&item) => drop(self.hidden.insert(path)),
                Ok(target) => self.reached(&target, &path),
                Err(elsewhere) => drop(self.lines.insert(format!("use {path} = {elsewhere}"), Vec::new())),
            }
        }
    }

    fn reached(&mut self, target: &Item, path: &str) {
        let item = self.item(target).clone();
        if is_hidden(&item) {
            self.hidden.insert(path.to_owned());
            return;
        }
        let (what, _) = kind(&item);
        let parent = path.rsplit_once("::").map_or(path, |(parent, _)| parent);
        if !self.listed.insert(target.clone()) {
            let again = format!("mod {parent}");
            self.lines.entry(again).or_default().push(format!("use {}", &path[parent.len() + 2..]));
            return;
        }
        if what == "module" {
            self.lines.entry(format!("mod {path}")).or_default();
            self.module(target, path);
            return;
        }
        self.count += 1;
        let mut members = Vec::new();
        self.members(target, path, &mut members);
        members.sort();
        self.lines.insert(format!("{path}: {}", declaration(&item)), members);
    }

    /// Adds everything of an item that can be named: fields, variants, methods, and the traits that
    /// it implements.
    fn members(&mut self, target: &Item, path: &str, members: &mut Vec<String>) {
        let item = self.item(target).clone();
        let (what, inner) = kind(&item);
        let of = |id: String| (target.0.clone(), id);
        let mut parts: Vec<Item> = Vec::new();
        for list in [&inner["variants"], &inner["kind"]["plain"]["fields"], &inner["kind"]["tuple"]] {
            parts.extend(ids(list).map(of));
        }
        if what == "trait" {
            parts.extend(ids(&inner["items"]).map(of));
        }
        let mut traits = BTreeSet::new();
        for implementation in ids(&inner["impls"]).map(of) {
            let implementation = self.item(&implementation);
            let implementation = &implementation["inner"]["impl"];
            if implementation["trait"].is_null() {
                parts.extend(ids(&implementation["items"]).map(of));
            } else if implementation["blanket_impl"].is_null()
                && implementation["is_synthetic"] == false
                && what != "trait"
            {
                let name = implementation["trait"]["path"].as_str().unwrap_or_default();
                let name = name.rsplit("::").next().unwrap_or_default();
                // Derives add these traits for the compiler only.
                if !matches!(name, "StructuralPartialEq" | "TrivialClone") {
                    traits.insert(name.to_owned());
                }
            }
        }
        for part in parts {
            let part = self.item(&part).clone();
            if part.is_null() || !is_public(&part) {
                continue;
            }
            if is_hidden(&part) {
                self.hidden.insert(format!("{path}::{}", part["name"].as_str().unwrap_or_default()));
                continue;
            }
            self.count += 1;
            members.push(declaration(&part));
        }
        if !traits.is_empty() {
            members.push(format!("impl {}", traits.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} items, {} hidden\n", self.count, self.hidden.len());
        for (line, members) in &self.lines {
            let _ = writeln!(text, "\n{line}");
            for member in members {
                let _ = writeln!(text, "    {member}");
            }
        }
        let _ = writeln!(text, "\nhidden");
        for path in &self.hidden {
            let _ = writeln!(text, "    {path}");
        }
        text
    }
}

fn list(folder: &str) -> Result<String, String> {
    let mut surface = Surface::read(folder)?;
    let facade = surface.crates.get(FACADE).ok_or_else(|| format!("{folder} has no {FACADE}.json"))?;
    let root = (FACADE.to_owned(), facade["root"].to_string());
    surface.module(&root, FACADE);
    Ok(surface.text())
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]
fn main() {
    let Some(folder) = env::args().nth(1) else {
        eprintln!("usage: fencepost-surface FOLDER, which holds what rustdoc wrote of each crate");
        process::exit(2);
    };
    match list(&folder) {
        Ok(text) => print!("{text}"),
        Err(message) => {
            eprintln!("{message}");
            process::exit(1);
        }
    }
}
