//! [`Recipes`]: the file `plans.toml`, which has a table for each plan of its folder.

pub use crate::stencil::superstep;
use crate::{files, stencil};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::RANKS_MAX;
use fencepost_planner::units::Bytes;
use fencepost_runtime::recipe::Recipe;
use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys of a recipe.
const KEYS: [&str; 8] = ["plan", "stencil", "ranks", "placement", "machine", "mode", "cap", "values"];

/// The recipes of a folder of plans.
#[derive(Clone, PartialEq, Debug)]
pub struct Recipes {
    /// The folder.
    pub folder: PathBuf,
    /// The recipes, in the order of their names.
    pub all: Vec<Recipe>,
    /// The file, line and column of each recipe.
    places: Vec<String>,
}

impl Recipes {
    /// Reads the file `plans.toml` of `folder`. Paths of machine models in this file are relative
    /// to `folder`.
    ///
    /// # Errors
    /// If a file cannot be read, the error names the file. If a recipe is invalid, the error has
    /// its line and column, the reason, and the values that are allowed.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, String> {
        let folder = folder.as_ref().to_path_buf();
        let file = folder.join("plans.toml");
        let text = files::text(&file).map_err(|why| {
            format!("{why}; a folder of plans has a file plans.toml with a table for each plan")
        })?;
        let all = Reading { file: &file, text: &text, folder: &folder, machines: RefCell::default() };
        let (all, places) = all.recipes()?;
        Ok(Self { folder, all, places })
    }

    /// Returns the file, line and column of a recipe.
    pub(crate) fn place(&self, recipe: &Recipe) -> &str {
        let found = self.all.iter().zip(&self.places).find(|(known, _)| known.name == recipe.name);
        found.map_or("", |(_, place)| place)
    }

    /// Returns the path of the plan of a recipe.
    #[must_use]
    pub fn plan(&self, recipe: &Recipe) -> PathBuf {
        self.folder.join(format!("{}.plan", recipe.name))
    }

    /// Returns the path of the text of a recipe's plan.
    #[must_use]
    pub fn text(&self, recipe: &Recipe) -> PathBuf {
        self.folder.join(format!("{}.txt", recipe.name))
    }
}

/// A file of recipes that is being read.
struct Reading<'f> {
    file: &'f Path,
    text: &'f str,
    folder: &'f Path,
    /// The files of machine models that recipes name.
    machines: RefCell<Vec<PathBuf>>,
}

type Entry<'e, 'f> = (&'e Spanned<std::borrow::Cow<'f, str>>, &'e Spanned<DeValue<'f>>);

impl Reading<'_> {
    /// Returns the recipes, and the place of each.
    fn recipes(&self) -> Result<(Vec<Recipe>, Vec<String>), String> {
        let whole = DeTable::parse(self.text)
            .map_err(|error| self.wrong(error.span().unwrap_or_default(), error.message()))?;
        let (mut all, mut places) = (Vec::new(), Vec::new());
        for (name, table) in whole.get_ref() {
            let Some(entries) = table.get_ref().as_table() else {
                let why = format!(
                    "`{}` is not a table: give each plan a table, such as [{}-64]",
                    name.get_ref(),
                    name.get_ref()
                );
                return Err(self.wrong(name.span(), why));
            };
            if !is_plain(name.get_ref()) || name.get_ref().starts_with('.') {
                let why = "a recipe names its files: use letters, digits, `-`, `_` and `.`, and do not start with `.`";
                return Err(self.wrong(name.span(), why));
            }
            all.push(self.recipe(name.get_ref(), table.span(), entries)?);
            places.push(self.place(table.span()));
        }
        for recipe in &all {
            let files = ["plan", "txt"].map(|kind| self.folder.join(format!("{}.{kind}", recipe.name)));
            if let Some(machine) = self.machines.borrow().iter().find(|machine| files.contains(machine)) {
                return Err(format!(
                    "{}: the recipe `{}` would overwrite the machine model {}: give one of them another name",
                    self.file.display(),
                    recipe.name,
                    machine.display()
                ));
            }
        }
        if all.is_empty() {
            return Err(format!("{}: no recipes: add a table for each plan", self.file.display()));
        }
        Ok((all, places))
    }

    fn recipe(&self, name: &str, span: Range<usize>, entries: &DeTable<'_>) -> Result<Recipe, String> {
        let mut recipe = Recipe { name: name.to_owned(), ..Recipe::default() };
        let (mut of_stencil, mut values_at) = (None, None);
        for entry @ (key, value) in entries {
            match key.get_ref().as_ref() {
                "plan" => recipe.plan = self.name(value, self.string(entry)?)?,
                "stencil" => of_stencil = Some((value.span(), self.stencil(entry)?)),
                "ranks" => {
                    let whole = || {
                        let why = format!("`ranks` must be a whole number from 1 to {RANKS_MAX}");
                        self.wrong(value.span(), why)
                    };
                    let ranks: u64 = self.scalar(entry)?.parse().map_err(|_| whole())?;
                    if !(1..=u64::from(RANKS_MAX)).contains(&ranks) {
                        let why = format!("{ranks} ranks: a plan has 1 to {RANKS_MAX}");
                        return Err(self.wrong(value.span(), why));
                    }
                    if let Some(other) = stencil::ranks_in(name).filter(|other| other.parse() != Ok(ranks)) {
                        let why = format!(
                            "the recipe `{name}` is for {ranks} ranks, but a world of {other} ranks would load its file: \
                             name it {}-{ranks}, or change `ranks`",
                            &name[..name.len() - other.len() - 1]
                        );
                        return Err(self.wrong(value.span(), why));
                    }
                    recipe.ranks = ranks as usize;
                }
                "placement" => {
                    let text = self.scalar(entry)?;
                    let placement: Placement = text.parse().map_err(|error: fencepost_planner::Error| {
                        self.wrong(value.span(), error.message())
                    })?;
                    recipe.placement = Some(placement);
                }
                "machine" => recipe.machine = Some(self.machine(entry)?),
                "mode" => {
                    let mode = self.string(entry)?.parse();
                    recipe.mode = Some(mode.map_err(|error: fencepost_planner::Error| {
                        self.wrong(value.span(), error.message())
                    })?);
                }
                "cap" => recipe.cap = Some(Bytes(self.count(entry)?)),
                "values" => {
                    values_at = Some(key.span());
                    let Some(values) = value.get_ref().as_table() else {
                        return Err(self.wrong(
                            value.span(),
                            "`values` must be a table, such as values.cells = [512, 512]",
                        ));
                    };
                    for entry @ (name, _) in values {
                        recipe.values.push((self.name(name, name.get_ref())?, self.value(entry)?));
                    }
                }
                other => {
                    let more =
                        format!("; values that the plan reads belong in `values`, such as values.{other}");
                    return Err(self.unknown(key, "recipe", &KEYS, &more));
                }
            }
        }
        let of_stencil = match (of_stencil, values_at) {
            (Some((at, _)), _) if !recipe.plan.is_empty() => {
                let why = format!("the recipe `{name}` has a plan and a stencil: give one of them");
                return Err(self.wrong(at, why));
            }
            (Some(_), Some(at)) => {
                let why =
                    format!("the recipe `{name}` is for a stencil, which reads no values: remove `values`");
                return Err(self.wrong(at, why));
            }
            (of_stencil, _) => of_stencil.map(|(at, values)| {
                (recipe.is_stencil, recipe.values) = (true, values);
                at
            }),
        };
        let missing = [
            ("plan", recipe.plan.is_empty() && !recipe.is_stencil, "plan = \"exchange\", or a stencil"),
            ("ranks", recipe.ranks == 0, "ranks = 64"),
        ];
        match missing.iter().find(|(_, is_missing, _)| *is_missing) {
            Some((key, _, example)) => {
                let why = format!("the recipe `{name}` has no `{key}`: add one, such as {example}");
                Err(self.wrong(span, why))
            }
            None => match (stencil::check(&recipe), of_stencil) {
                (Err(error), Some(at)) => Err(self.wrong(at, error.message())),
                _ => Ok(recipe),
            },
        }
    }

    /// Returns the values of a stencil by its keys.
    fn stencil(&self, (_, value): Entry<'_, '_>) -> Result<Vec<(String, String)>, String> {
        let example = "stencil = { cells = [512, 512] }";
        let Some(entries) = value.get_ref().as_table() else {
            return Err(self.wrong(value.span(), format!("`stencil` must be a table, such as {example}")));
        };
        let mut values = Vec::new();
        for entry @ (key, value) in entries {
            let text = match key.get_ref().as_ref() {
                "cells" | "halo" | "grid" => self.list::<usize>(entry, "whole numbers, 0 or more")?,
                "periodic" => self.list::<bool>(entry, "true or false")?,
                "star" => match value.get_ref().as_bool() {
                    Some(star) => star.to_string(),
                    None => return Err(self.wrong(value.span(), "`star` must be true or false")),
                },
                "element" => {
                    let name = self.string(entry)?;
                    stencil::element(name).map_err(|error| self.wrong(value.span(), error.message()))?;
                    name.to_owned()
                }
                _ => return Err(self.unknown(key, "stencil", &stencil::KEYS, "")),
            };
            values.push((key.get_ref().to_string(), text));
        }
        Ok(values)
    }

    /// Returns a value, or a list of values, as text.
    fn list<T: FromStr>(&self, entry @ (key, value): Entry<'_, '_>, what: &str) -> Result<String, String> {
        let text = self.value(entry)?;
        if text.split(", ").all(|item| item.parse::<T>().is_ok()) {
            return Ok(text);
        }
        Err(self.wrong(value.span(), format!("`{}` must be {what}, one or a list", key.get_ref())))
    }

    /// Returns the error for a key that does not exist. The error suggests the nearest key. If no
    /// key is near, it lists all keys, followed by `more`.
    fn unknown<T: AsRef<str>>(&self, key: &Spanned<T>, of: &str, keys: &[&str], more: &str) -> String {
        let name = key.get_ref().as_ref();
        let hint = match fencepost_job::variables::nearest(name, keys.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}{more}", keys.join(", ")),
        };
        self.wrong(key.span(), format!("unknown key `{name}` in a {of}: {hint}"))
    }

    fn machine(&self, entry: Entry<'_, '_>) -> Result<Machine, String> {
        let path = self.folder.join(self.string(entry)?);
        let machine = files::machine(&path).map_err(|why| self.wrong(entry.1.span(), why))?;
        self.machines.borrow_mut().push(path);
        Ok(machine)
    }

    /// Checks a name that a program uses, and returns it.
    fn name<T>(&self, place: &Spanned<T>, name: &str) -> Result<String, String> {
        if is_plain(name) {
            return Ok(name.to_owned());
        }
        let why = format!("`{}` is not a name: use letters, digits, `-`, `_` and `.`", name.escape_debug());
        Err(self.wrong(place.span(), why))
    }

    fn string<'e>(&self, (key, value): Entry<'e, '_>) -> Result<&'e str, String> {
        let text = value.get_ref().as_str();
        text.ok_or_else(|| {
            self.wrong(value.span(), format!("`{}` must be a string in quotes", key.get_ref()))
        })
    }

    fn count(&self, entry @ (key, value): Entry<'_, '_>) -> Result<u64, String> {
        let whole =
            || self.wrong(value.span(), format!("`{}` must be a whole number, 0 or more", key.get_ref()));
        self.scalar(entry)?.parse().map_err(|_| whole())
    }

    /// Returns a text or a number as text.
    fn scalar(&self, (key, value): Entry<'_, '_>) -> Result<String, String> {
        let refused = |why| Err(self.wrong(value.span(), format!("`{}` {why}", key.get_ref())));
        match value.get_ref() {
            DeValue::String(text) if text.chars().any(char::is_control) => {
                refused("must not contain a line break or another control character")
            }
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Ok(number.to_string()),
                Err(_) => refused("is too large"),
            },
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            _ => refused("must be a number, true, false or a string in quotes"),
        }
    }

    /// Returns a value of `values` as text.
    fn value(&self, entry @ (key, value): Entry<'_, '_>) -> Result<String, String> {
        let DeValue::Array(items) = value.get_ref() else { return self.scalar(entry) };
        let items: Result<Vec<String>, _> = items
            .iter()
            .map(|item| match self.scalar((key, item))? {
                text if text.contains(',') => {
                    Err(self.wrong(item.span(), "an item of a list must not contain a comma"))
                }
                text => Ok(text),
            })
            .collect();
        Ok(items?.join(", "))
    }

    /// Returns an error at a place of the file.
    fn wrong(&self, span: Range<usize>, why: impl std::fmt::Display) -> String {
        format!("{}: {why}", self.place(span))
    }

    /// Returns the file, line and column of a place.
    fn place(&self, span: Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        format!("{}:{line}:{column}", self.file.display())
    }
}

/// Returns whether a text is a name. A name is not empty, and has only letters, digits, `-`, `_`
/// and `.`.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::ir::pattern::Mode;

    fn read(text: &str) -> Result<Vec<Recipe>, String> {
        let machines = RefCell::default();
        Reading { file: Path::new("plans.toml"), text, folder: Path::new("/none"), machines }
            .recipes()
            .map(|(all, _)| all)
    }

    #[test]
    fn a_recipe_has_every_key_that_is_described() {
        let text = "\n[exchange-64]\nplan = \"exchange\"\nranks = 0x40\nplacement = 16\nmode = \"aggregated\"\n\
                    cap = 65_536\nvalues.cells = [512, 1_024]\nvalues.name = \"a\"\nvalues.is_periodic = true\n\
                    [halo]\nplan = \"halo\"\nranks = 2\nplacement = \"apart\"\n";
        let all = read(text).unwrap();
        let values = [("cells", "512, 1024"), ("is_periodic", "true"), ("name", "a")];
        let mut found = all[0].values.clone();
        found.sort();
        assert_eq!(found, values.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let Recipe { name, plan, ranks, placement, machine, mode, cap, .. } = &all[0];
        assert_eq!((name.as_str(), plan.as_str(), *ranks), ("exchange-64", "exchange", 64));
        assert_eq!(*placement, Some(Placement::Hosts { ranks_each: 16 }));
        assert_eq!((*machine, *mode, *cap), (None, Some(Mode::Aggregated), Some(Bytes(65_536))));
        assert_eq!((all[1].placement, all[1].ranks), (Some(Placement::Apart), 2));
    }

    #[test]
    fn what_no_recipe_has_is_refused_with_its_place_and_what_is_allowed() {
        let cases = [
            ("", "no recipes: add a table"),
            ("x = 1", "plans.toml:1:1: `x` is not a table"),
            (
                "[a]\nplan = 'p'\nrank = 4",
                "plans.toml:3:1: unknown key `rank` in a recipe: did you mean `ranks`?",
            ),
            (
                "[a]\nplan = 'p'\nranks = 4\ncells = 4",
                "plans.toml:4:1: unknown key `cells` in a recipe: the keys are plan, stencil, ranks",
            ),
            ("[a]\nplan = 'p'", "plans.toml:1:1: the recipe `a` has no `ranks`"),
            ("[a]\nranks = 4", "plans.toml:1:1: the recipe `a` has no `plan`"),
            ("[a]\nstencil = 4", "plans.toml:2:11: `stencil` must be a table, such as stencil = {"),
            (
                "[a]\nranks = 4\nstencil = { cell = 4 }",
                "plans.toml:3:13: unknown key `cell` in a stencil: did you mean `cells`?",
            ),
            (
                "[a]\nranks = 4\nstencil = { width = 4 }",
                "plans.toml:3:13: unknown key `width` in a stencil: the keys are cells, halo, star",
            ),
            (
                "[a]\nranks = 4\nstencil = {}",
                "plans.toml:3:11: a stencil has `cells` in 1, 2 or 3 dimensions",
            ),
            ("[a]\nranks = 4\nstencil.cells = [1, 2, 3, 4]", "plans.toml:3:1"),
            (
                "[a]\nranks = 4\nstencil = { cells = -4 }",
                "plans.toml:3:21: `cells` must be whole numbers, 0 or more, one or a list",
            ),
            ("[a]\nranks = 0\nstencil = { cells = 4 }", "plans.toml:2:9: 0 ranks: a plan has 1 to"),
            (
                "[a]\nranks = 64\nstencil = { cells = [2, 2] }",
                "plans.toml:3:11: an array of [2, 2] cells cannot be cut into 64 blocks",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = [8, 8], grid = [3, 2] }",
                "plans.toml:3:11: a grid of [3, 2] ranks does not have 4 ranks",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = [8, 8], halo = 5 }",
                "plans.toml:3:11: a halo of 5 cells in dimension",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = [8, 8], halo = 0 }",
                "plans.toml:3:11: a halo of 0 cells is never exchanged",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = [8, 8], periodic = [true, false, true] }",
                "plans.toml:3:11: `periodic` has 3 items, where `cells` has 2: give 2, or one for all",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = [8, 8], halo = [1, 2], star = true }",
                "plans.toml:3:11: a star has one width in all dimensions",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = 8, star = 'yes' }",
                "plans.toml:3:31: `star` must be true or false",
            ),
            (
                "[a]\nranks = 4\nstencil = { cells = 8, element = 'double' }",
                "plans.toml:3:34: `double` is not a type of elements: give one of i8",
            ),
            (
                "[a]\nplan = 'p'\nranks = 4\nstencil = { cells = 8 }",
                "plans.toml:4:11: the recipe `a` has a plan and a stencil: give one of them",
            ),
            (
                "[a]\nranks = 4\nvalues.x = 1\nstencil = { cells = 8 }",
                "plans.toml:3:1: the recipe `a` is for a stencil, which reads no values",
            ),
            ("[a]\nplan = 'p'\nranks = 0", "plans.toml:3:9: 0 ranks: a plan has 1 to"),
            (
                "[a]\nplan = 'p'\nranks = -4",
                "plans.toml:3:9: `ranks` must be a whole number from 1 to 16777216",
            ),
            ("[a]\nplan = 'p'\nranks = 99999999999", "ranks: a plan has 1 to"),
            (
                "[a-5]\nplan = 'p'\nranks = 4",
                "plans.toml:3:9: the recipe `a-5` is for 4 ranks, but a world of 5 ranks would load its file: name it a-4",
            ),
            ("[a]\nplan = 4", "plans.toml:2:8: `plan` must be a string in quotes"),
            ("[a]\nplacement = 'near'", "plans.toml:2:13: `near` is not a placement"),
            ("[a]\nplacement = 0", "plans.toml:2:13: `0` is not a placement"),
            ("[a]\nmode = 'fast'", "plans.toml:2:8: `fast` is not a mode"),
            ("[a]\nmachine = 'm.txt'", "plans.toml:2:11: /none/m.txt: "),
            ("[a]\nvalues = 4", "plans.toml:2:10: `values` must be a table"),
            ("[a]\nvalues.x = 1979-05-27", "plans.toml:2:12: `x` must be a number, true, false or a string"),
            ("[a]\nvalues.x = ['a,b']", "plans.toml:2:13: an item of a list must not contain a comma"),
            ("[a]\nvalues.x = \"a\\nb\"", "plans.toml:2:12: `x` must not contain a line break"),
            ("['../a']\nplan = 'p'\nranks = 1", "plans.toml:1:2: a recipe names its files"),
            ("[a]\nplan = 'p'\nplan = 'q'", "plans.toml:3:1: duplicate key"),
            ("[a]\nplan = 'p q'\nranks = 1", "plans.toml:2:8: `p q` is not a name"),
            ("[a]\nvalues.\"x y\" = 1", "plans.toml:2:8: `x y` is not a name"),
            ("[a]\nplacement = 4294967296", "plans.toml:2:13: `4294967296` is not a placement"),
            ("[a\nplan = 'p'", "plans.toml:1:"),
        ];
        for (text, expected) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
