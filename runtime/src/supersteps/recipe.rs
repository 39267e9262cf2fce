//! Plans that a program compiles on request. `plan!` registers a plan ([`Registered`]), a
//! [`Recipe`] requests one, and the plan's expression reads the recipe's values from an [`Ask`].

use crate::supersteps::compiled::Compiled;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::MadeFor;
use fencepost_planner::units::Bytes;
use fencepost_planner::{Error, ErrorClass, Options, Result};
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::panic::Location;

/// The request for a plan: its number of ranks, and its values by name. `plan!` passes the request
/// to the expression that compiles the plan.
#[derive(Debug)]
pub struct Ask {
    ranks: usize,
    values: Vec<(String, String)>,
    /// The values that the expression has read, as text, in the order of the first reads.
    asked: RefCell<Vec<(String, String)>>,
}

impl Ask {
    fn new(ranks: usize, values: &[(String, String)]) -> Self {
        Self { ranks, values: values.to_vec(), asked: RefCell::default() }
    }

    /// Returns the number of ranks that the recipe requests.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the value that the recipe has under this name, or `default` if it has none.
    ///
    /// The compiled plan keeps the value, so that a reader of the plan can see it.
    ///
    /// # Errors
    /// `ARG` if the recipe's value is not of this type.
    #[track_caller]
    pub fn value<T: PlanValue>(&self, name: &str, default: T) -> Result<T> {
        let caller = Location::caller(); // not in the closure, which has a caller of its own
        let value = match self.values.iter().find(|(known, _)| known == name) {
            None => default,
            Some((_, text)) => T::from_text(text).ok_or_else(|| {
                let wanted = T::described();
                let message = format!("the recipe sets `{name}` to `{text}`, but {caller} needs {wanted}");
                Error::new(ErrorClass::Arg, message)
            })?,
        };
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|(known, _)| known == name) {
            asked.push((name.to_owned(), value.to_text()));
        }
        Ok(value)
    }

    /// Returns the values that the plan has read, if it has read every value of the recipe. `plan`
    /// names the plan in the error.
    fn finish(self, plan: &str) -> Result<Vec<(String, String)>> {
        let asked = self.asked.into_inner();
        let names = || asked.iter().map(|(name, _)| name.as_str());
        let Some((unread, _)) = self.values.iter().find(|(name, _)| !names().any(|asked| asked == name))
        else {
            return Ok(asked);
        };
        let hint = match fencepost_job::variables::nearest(unread, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if asked.is_empty() => "it reads no values".into(),
            None => format!("it reads {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("{plan} does not read a value `{unread}`: {hint}");
        Err(Error::new(ErrorClass::Arg, message))
    }
}

/// A type of value that [`Ask::value`] can return: a number, `bool`, `String`, or an array or a
/// `Vec` of them.
pub trait PlanValue: Sized {
    /// Reads a value. Returns `None` if the text is not a value of this type.
    #[doc(hidden)]
    fn from_text(text: &str) -> Option<Self>;

    /// Writes the value, so that it can be read again.
    #[doc(hidden)]
    fn to_text(&self) -> String;

    /// Describes the type, for errors.
    #[doc(hidden)]
    fn described() -> String;
}

macro_rules! plan_values {
    ($($type:ty)*) => {
        $(impl PlanValue for $type {
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn to_text(&self) -> String {
                self.to_string()
            }

            fn described() -> String {
                stringify!($type).into()
            }
        })*
    };
}
plan_values!(bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 String);

impl<T: PlanValue> PlanValue for Vec<T> {
    fn from_text(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Self::new());
        }
        text.split(',').map(|item| T::from_text(item.trim())).collect()
    }

    fn to_text(&self) -> String {
        self.iter().map(T::to_text).collect::<Vec<_>>().join(", ")
    }

    fn described() -> String {
        format!("a list of {}", T::described())
    }
}

impl<T: PlanValue, const N: usize> PlanValue for [T; N] {
    /// Reads `N` values, or one value that is used for all `N`.
    fn from_text(text: &str) -> Option<Self> {
        if let Ok(all) = Vec::from_text(text)?.try_into() {
            return Some(all);
        }
        let all: Option<Vec<T>> = (0..N).map(|_| T::from_text(text)).collect();
        all?.try_into().ok()
    }

    fn to_text(&self) -> String {
        self.iter().map(T::to_text).collect::<Vec<_>>().join(", ")
    }

    fn described() -> String {
        format!("{N} x {}, separated by commas, or one for all", T::described())
    }
}

/// A plan that `plan!` registers.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    name: &'static str,
    file: &'static str,
    line: u32,
    compile: Compile,
}

/// The expression of a plan.
pub type Compile = fn(&Ask) -> Result<Compiled>;

inventory::collect!(Registered);

impl Registered {
    /// Describes the plan `name`, which is registered at this file and line and compiled by
    /// `compile`.
    pub const fn new(name: &'static str, (file, line): (&'static str, u32), compile: Compile) -> Self {
        Self { name, file, line, compile }
    }

    /// Returns all plans that the program registers, sorted by name.
    fn all() -> Vec<&'static Self> {
        let mut all: Vec<&Self> = inventory::iter::<Self>().collect();
        all.sort_by_key(|one| (one.name, one.file, one.line));
        all
    }

    /// Returns the plan of this name.
    ///
    /// # Errors
    /// `ARG` if the program registers no plan of this name, or more than one.
    fn named(name: &str) -> Result<&'static Self> {
        let all = Self::all();
        let message = match &all.iter().filter(|one| one.name == name).collect::<Vec<_>>()[..] {
            [one] => return Ok(one),
            [first, second, ..] => format!(
                "two plans are registered as `{name}`, {first} and {second}: give one of them another name"
            ),
            [] if all.is_empty() => format!(
                "the program registers no plans: add `fencepost::plan!({name} = |ask| ..)`; if a library \
                 registers it, use an item of that library in the test, or it is not linked"
            ),
            [] => {
                let names = || all.iter().map(|one| one.name);
                let hint = match fencepost_job::variables::nearest(name, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it registers {}", names().collect::<Vec<_>>().join(", ")),
                };
                format!("the program registers no plan `{name}`: {hint}")
            }
        };
        Err(Error::new(ErrorClass::Arg, message))
    }
}

impl fmt::Display for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A request for a plan: which registered plan, for how many ranks, and with which settings. If a
/// setting is absent, the plan's own expression decides it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Recipe {
    /// The name of the recipe, which is also the name of the plan's file.
    pub name: String,
    /// The name under which the plan is registered; empty for a stencil.
    pub plan: String,
    /// Whether the plan is the halo exchange of a stencil, which no program registers.
    pub is_stencil: bool,
    /// The number of ranks.
    pub ranks: usize,
    /// Which ranks share memory.
    pub placement: Option<Placement>,
    /// The machine.
    pub machine: Option<Machine>,
    /// The mode of all operations.
    pub mode: Option<Mode>,
    /// The largest staging memory of a rank.
    pub cap: Option<Bytes>,
    /// The values that the plan may read, by name.
    pub values: Vec<(String, String)>,
}

impl Recipe {
    /// Compiles the plan, which must be registered in this program.
    ///
    /// # Errors
    /// `ARG` if the program registers no plan of this name, or several; if a value has another type
    /// than the plan reads, or is never read; or if the plan is compiled for another number of
    /// ranks. Otherwise the errors of the plan's expression.
    pub fn compile(&self) -> Result<Compiled> {
        let registered = Registered::named(&self.plan)?;
        self.compile_by(|ask| {
            let compiled = (registered.compile)(ask)?;
            if compiled.ranks() == self.ranks {
                return Ok(compiled);
            }
            let message = format!(
                "the plan `{}` at {registered} was compiled for {} ranks instead of {}: compile it for `ask.ranks()`",
                self.plan,
                compiled.ranks(),
                self.ranks
            );
            Err(Error::new(ErrorClass::Arg, message))
        })
    }

    /// Returns the request that the plan's expression reads.
    #[must_use]
    pub fn ask(&self) -> Ask {
        Ask::new(self.ranks, &self.values)
    }

    /// Compiles the plan by the expression `compile`, which need not be registered.
    ///
    /// # Errors
    /// `ARG` if the expression does not read every value. Otherwise the errors of the expression.
    #[track_caller]
    pub fn compile_by(&self, compile: impl FnOnce(&Ask) -> Result<Compiled>) -> Result<Compiled> {
        let ask = self.ask();
        let compiled = compile(&ask)?;
        let values = ask.finish(&if self.is_stencil {
            format!("the stencil of the recipe `{}`", self.name)
        } else {
            format!("the plan `{}`", self.plan)
        })?;
        let own = compiled.made_for();
        let made_for = MadeFor {
            machine: self.machine.unwrap_or(own.machine),
            options: Options {
                mode: self.mode.unwrap_or(own.options.mode),
                cap: self.cap.or(own.options.cap),
                ..own.options
            },
            recipe: self.name.clone(),
            values,
        };
        let placement = self.placement.unwrap_or(compiled.placement());
        compiled.made_for_another(placement, made_for)
    }
}

/// Writes recipes as text that [`read_written`] reads again.
#[must_use]
pub fn written(recipes: &[Recipe]) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &dyn fmt::Display| {
        // Writing to a `String` cannot fail.
        let _: fmt::Result = writeln!(text, "{key} {value}");
    };
    for Recipe { name, plan, is_stencil: _, ranks, placement, machine, mode, cap, values } in recipes {
        line("recipe", name);
        line("plan", plan);
        line("ranks", ranks);
        placement.iter().for_each(|placement| line("placement", placement));
        mode.iter().for_each(|mode| line("mode", mode));
        cap.iter().for_each(|cap| line("cap", &cap.0));
        let machine = machine.map(|machine| machine.to_string()).unwrap_or_default();
        machine.lines().for_each(|entry| line("machine", &entry));
        values.iter().for_each(|(name, value)| line("value", &format_args!("{name} {value}")));
    }
    text
}

/// Reads recipes from text that [`written`] wrote.
///
/// # Errors
/// `ARG`, with the line, for any other text.
pub fn read_written(text: &str) -> Result<Vec<Recipe>> {
    let mut recipes: Vec<(Recipe, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let refused = || {
            let message = format!("line {} of the recipes is not valid: `{line}`", number + 1);
            Error::new(ErrorClass::Arg, message)
        };
        let (key, value) = line.split_once(' ').ok_or_else(refused)?;
        if key == "recipe" {
            recipes.push((Recipe { name: value.into(), ..Recipe::default() }, String::new()));
            continue;
        }
        let (recipe, machine) = recipes.last_mut().ok_or_else(refused)?;
        match key {
            "plan" => recipe.plan = value.into(),
            "ranks" => recipe.ranks = value.parse().map_err(|_| refused())?,
            "placement" => recipe.placement = Some(value.parse()?),
            "mode" => recipe.mode = Some(value.parse()?),
            "cap" => recipe.cap = Some(Bytes(value.parse().map_err(|_| refused())?)),
            "machine" => *machine += &format!("{value}\n"),
            "value" => {
                let (name, value) = value.split_once(' ').ok_or_else(refused)?;
                recipe.values.push((name.into(), value.into()));
            }
            _ => return Err(refused()),
        }
    }
    let whole = |(recipe, machine): (Recipe, String)| {
        let machine = (!machine.is_empty()).then(|| machine.parse()).transpose()?;
        Ok(Recipe { machine, ..recipe })
    };
    recipes.into_iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_read_as_they_were_written() {
        let values = vec![("cells".to_owned(), "512, 512".to_owned()), ("empty".to_owned(), String::new())];
        let full = Recipe {
            name: "exchange-64".into(),
            plan: "exchange".into(),
            is_stencil: false,
            ranks: 64,
            placement: Some(Placement::Hosts { ranks_each: 4 }),
            machine: Some(Machine::default()),
            mode: Some(Mode::Aggregated),
            cap: Some(Bytes(4096)),
            values,
        };
        let least = Recipe { name: "a b".into(), plan: "x".into(), ranks: 1, ..Recipe::default() };
        let recipes = [full, least];
        assert_eq!(read_written(&written(&recipes)).unwrap(), recipes);
        assert!(read_written("plan x\n").is_err() && read_written("recipe a\nranks many\n").is_err());
    }

    #[test]
    fn values_are_read_as_their_types_and_kept() {
        let given = [("cells", "4,5"), ("name", "a, b"), ("weight", "0.50")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ask = Ask::new(3, &given);
        assert_eq!((ask.ranks(), ask.value("cells", [1, 2]).unwrap()), (3, [4, 5]));
        assert_eq!(ask.value("name", String::new()).unwrap(), "a, b");
        assert_eq!(ask.value("steps", vec![1u8]).unwrap(), [1]);
        assert_eq!(ask.value("weight", 1.0).unwrap(), 0.5);
        assert_eq!(ask.value("weight", [0.0; 3]).unwrap(), [0.5; 3]);
        assert!(ask.value("cells", [0u8; 3]).is_err() && ask.value("name", true).is_err());
        let kept = ask.finish("p").unwrap();
        let kept: Vec<_> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(kept, [("cells", "4, 5"), ("name", "a, b"), ("steps", "1"), ("weight", "0.5")]);
        let ask = Ask::new(3, &given);
        ask.value("cell", 0).unwrap();
        assert!(ask.finish("p").unwrap_err().message().contains("did you mean `cell`?"));
    }
}
