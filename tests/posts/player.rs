//! Plays a program of posts, starts and fences in a world, call by call.

use fencepost::{
    Access, AnyWindow, Datatype, Element, Exposed, Group, Refused, Result, Ticket, Window, World, lends,
};
use fencepost_planner::ErrorClass;
use fencepost_planner::element::{ElementKind, ElementType, Scalar};
use fencepost_planner::ids::Id;
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use fencepost_tests_reference::{Call, Lent};
use std::collections::BTreeMap;

/// The result of a call.
#[derive(Debug)]
pub enum Found {
    Done,
    /// The elements that a load returned.
    Got(Vec<u8>),
    Failed(ErrorClass, String),
    /// The types refuse this call, so no program can make it.
    Unsaid,
    /// The ticket of a get, which is read when the program is over.
    Asked(Box<dyn Tick>),
}

/// A ticket for elements of any type.
pub trait Tick: std::fmt::Debug {
    fn bytes(&self) -> Result<Vec<u8>>;
}

impl<T: Element> Tick for Ticket<T>
where
    Ticket<T>: std::fmt::Debug,
{
    fn bytes(&self) -> Result<Vec<u8>> {
        self.take().map(|elements| bytes(&elements))
    }
}

fn bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(elements).to_vec()
}

fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    let mut all = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut all).copy_from_slice(bytes);
    all
}

fn found(result: Result<Found>) -> Found {
    result.unwrap_or_else(|error| Found::Failed(error.class(), error.to_string()))
}

/// A window, in the form that it currently has on this rank.
enum Held<T: Element> {
    Free(Window<T>),
    Whole(Exposed<T>),
    Part(Exposed<T, lends::Part>),
    Read(Exposed<T, lends::ReadOnly>),
    /// The window was moved out for a moment.
    Nowhere,
}

/// A window of elements of any type.
trait Part {
    fn store(&mut self, elements: &Datatype, bytes: &[u8]) -> Found;
    fn load(&self, elements: &Datatype) -> Found;
    fn post(&mut self, sources: &Group, lent: &Lent) -> Found;
    fn wait(&mut self) -> Found;
    fn start(&self, targets: &Group) -> Result<Box<dyn Accessed>>;
    fn collect(&self, operation: &Operation, target: Option<usize>, source: &[u8]) -> Found;
    /// Returns the elements of a section of the rank's own part, if the program can name this
    /// section now.
    fn section(&self, datatype: &Datatype) -> Option<Vec<u8>>;
    fn free(&mut self) -> Option<&mut dyn AnyWindow>;
    fn bytes(&self) -> Option<Vec<u8>>;
}

/// An access to windows with elements of any type.
trait Accessed {
    fn call(&self, operation: &Operation, target: Option<usize>, source: &[u8]) -> Found;
    fn complete(self: Box<Self>) -> Result<()>;
}

impl<T: Element> Held<T>
where
    Ticket<T>: std::fmt::Debug,
{
    fn kept(&self, datatype: &Datatype) -> Option<Vec<T>> {
        let mut all = Vec::new();
        for at in datatype.element_iter() {
            let at = usize::try_from(at).ok()?;
            all.push(match self {
                Self::Free(window) => *window.get_element(at)?,
                Self::Read(exposed) => *exposed.get(at)?,
                Self::Part(exposed) => exposed.kept(at..at + 1).ok()?[0],
                Self::Whole(_) | Self::Nowhere => return None,
            });
        }
        Some(all)
    }
}

/// The method `get` of the window's slice, under another name, because `Window` has its own `get`.
trait Elements<T> {
    fn get_element(&self, at: usize) -> Option<&T>;
}

impl<T: Element> Elements<T> for Window<T> {
    fn get_element(&self, at: usize) -> Option<&T> {
        self[..].get(at)
    }
}

impl<T: Element> Part for Held<T>
where
    Ticket<T>: std::fmt::Debug,
{
    fn store(&mut self, datatype: &Datatype, bytes: &[u8]) -> Found {
        for (at, value) in datatype.element_iter().zip(elements::<T>(bytes)) {
            let at = at as usize;
            match self {
                Self::Free(window) => window[at] = value,
                Self::Part(exposed) => {
                    // If any of the elements is exposed, nothing is stored.
                    if let Some(other) = datatype
                        .element_iter()
                        .map(|at| at as usize)
                        .find_map(|at| exposed.kept(at..at + 1).err())
                    {
                        return Found::Failed(other.class(), other.to_string());
                    }
                    exposed.kept_mut(at..at + 1).expect("it is kept")[0] = value;
                }
                _ => return Found::Unsaid,
            }
        }
        Found::Done
    }

    fn load(&self, datatype: &Datatype) -> Found {
        match (self, self.kept(datatype)) {
            (_, Some(kept)) => Found::Got(bytes(&kept)),
            (Self::Part(_), None) => Found::Failed(ErrorClass::RmaConflict, String::new()),
            _ => Found::Unsaid,
        }
    }

    fn post(&mut self, sources: &Group, lent: &Lent) -> Found {
        let Self::Free(window) = std::mem::replace(self, Self::Nowhere) else {
            return Found::Unsaid;
        };
        let posted = match lent {
            Lent::Whole => window.post(sources).map(Self::Whole),
            Lent::Part(part) => window.post_part(sources, part).map(Self::Part),
            Lent::Read => window.post_read(sources).map(Self::Read),
        };
        self.after(posted)
    }

    fn wait(&mut self) -> Found {
        let waited = match std::mem::replace(self, Self::Nowhere) {
            Self::Whole(exposed) => exposed.wait(),
            Self::Part(exposed) => exposed.wait(),
            Self::Read(exposed) => exposed.wait(),
            other => {
                *self = other;
                return Found::Unsaid;
            }
        };
        self.after(waited.map(Self::Free))
    }

    fn start(&self, targets: &Group) -> Result<Box<dyn Accessed>> {
        let access = match self {
            Self::Free(window) => window.start(targets),
            Self::Whole(exposed) => exposed.start(targets),
            Self::Part(exposed) => exposed.start(targets),
            Self::Read(exposed) => exposed.start(targets),
            Self::Nowhere => unreachable!("a window is somewhere"),
        };
        access.map(|access| Box::new(access) as Box<dyn Accessed>)
    }

    fn collect(&self, operation: &Operation, target: Option<usize>, source: &[u8]) -> Found {
        let (Self::Free(u), remote) = (self, &operation.remote) else { return Found::Unsaid };
        let values = elements::<T>(source);
        let one = remote.as_run().filter(|run| run.end - run.start == 1 && values.len() == 1);
        found((|| {
            match (operation.kind, &operation.local) {
                (Kind::Get, _) => return Ok(Found::Asked(Box::new(u.fetch(target, remote)?))),
                (Kind::Put, Local::Section { datatype, .. }) => u.put(datatype).to(target, remote)?,
                (Kind::Accumulate(op), Local::Section { datatype, .. }) => {
                    u.accumulate(datatype, op).to(target, remote)?
                }
                (Kind::Put, Local::Buffer) => match one {
                    Some(run) => u.put([values[0]]).to(target, run.start as usize)?,
                    None => u.put(&values).to(target, remote)?,
                },
                (Kind::Accumulate(op), Local::Buffer) => u.accumulate(&values, op).to(target, remote)?,
            }
            Ok(Found::Done)
        })())
    }

    fn section(&self, datatype: &Datatype) -> Option<Vec<u8>> {
        self.kept(datatype).map(|kept| bytes(&kept))
    }

    fn free(&mut self) -> Option<&mut dyn AnyWindow> {
        match self {
            Self::Free(window) => Some(window),
            _ => None,
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Free(window) => Some(bytes(window)),
            _ => None,
        }
    }
}

impl<T: Element> Held<T> {
    fn after(&mut self, result: Result<Self, Refused<Window<T>>>) -> Found {
        let (held, found) = match result {
            Ok(held) => (held, Found::Done),
            Err(refused) => {
                let (window, error) = refused.into_parts();
                (Self::Free(window), Found::Failed(error.class(), error.to_string()))
            }
        };
        *self = held;
        found
    }
}

impl<T: Element> Accessed for Access<T>
where
    Ticket<T>: std::fmt::Debug,
{
    fn call(&self, operation: &Operation, target: Option<usize>, source: &[u8]) -> Found {
        let (remote, values) = (&operation.remote, elements::<T>(source));
        let one = remote.as_run().filter(|run| run.end - run.start == 1 && values.len() == 1);
        found((|| {
            match operation.kind {
                Kind::Get => return Ok(Found::Asked(Box::new(self.fetch(target, remote)?))),
                Kind::Put => match one {
                    Some(run) => self.put([values[0]]).to(target, run.start as usize)?,
                    None => self.put(&values).to(target, remote)?,
                },
                Kind::Accumulate(op) => match one {
                    Some(run) => self.accumulate([values[0]], op).to(target, run.start as usize)?,
                    None => self.accumulate(&values, op).to(target, remote)?,
                },
            }
            Ok(Found::Done)
        })())
    }

    fn complete(self: Box<Self>) -> Result<()> {
        Access::complete(*self)
    }
}

fn held<T: Element>(world: &World, before: &[u8]) -> Result<Box<dyn Part>>
where
    Ticket<T>: std::fmt::Debug,
{
    let mut window = world.window::<T>(before.len() / size_of::<T>())?;
    window.copy_from_slice(&elements::<T>(before));
    Ok(Box::new(Held::Free(window)))
}

/// Returns a window of this element type that initially has these bytes.
fn any(world: &World, element: ElementType, before: &[u8]) -> Result<Box<dyn Part>> {
    match element.kind {
        ElementKind::Scalar(Scalar::I32) => held::<i32>(world, before),
        ElementKind::Scalar(Scalar::F64) => held::<f64>(world, before),
        ElementKind::Scalar(Scalar::F32) => held::<f32>(world, before),
        ElementKind::Scalar(Scalar::U8) => held::<u8>(world, before),
        _ => panic!("no such window is drawn"),
    }
}

/// The results of a rank: the result of each call, and the rank's part of each window at the end. A
/// part is `None` if its window is still posted at the end.
pub type Played = (Vec<Found>, Vec<Option<Vec<u8>>>);

/// Plays this rank's program in windows that initially have these bytes.
pub fn play(world: &World, windows: &[(ElementType, &[u8])], program: &[Call]) -> Result<Played> {
    let me = world.rank() as i64;
    let mut parts =
        windows.iter().map(|(element, before)| any(world, *element, before)).collect::<Result<Vec<_>>>()?;
    let mut accesses: BTreeMap<usize, Box<dyn Accessed>> = BTreeMap::new();
    let mut all = Vec::new();
    let group = |ranks: &std::collections::BTreeSet<fencepost_planner::ids::Rank>| {
        world.group(ranks.iter().map(|rank| rank.index()))
    };
    for (at, call) in program.iter().enumerate() {
        let target = |operation: &Operation| operation.target.map(|delta| (me + delta.0) as usize);
        all.push(match call {
            Call::Store { window, elements, bytes } => parts[window.index()].store(elements, bytes),
            Call::Load { window, elements } => parts[window.index()].load(elements),
            Call::Post { window, sources, lent } => parts[window.index()].post(&group(sources)?, lent),
            Call::Wait { window } => parts[window.index()].wait(),
            Call::Start { window, targets } => {
                found(parts[window.index()].start(&group(targets)?).map(|access| {
                    accesses.insert(at, access);
                    Found::Done
                }))
            }
            Call::Access { access, operation, source } => match accesses.get(access) {
                None => Found::Unsaid,
                Some(access) => {
                    let section = match &operation.local {
                        Local::Buffer => Some(source.clone()),
                        // Elements that do not exist cannot be named.
                        Local::Section { window, datatype } => parts[window.index()].section(datatype),
                    };
                    section.map_or(Found::Unsaid, |source| access.call(operation, target(operation), &source))
                }
            },
            Call::Complete { access } => match accesses.remove(access) {
                None => Found::Unsaid,
                Some(access) => found(access.complete().map(|()| Found::Done)),
            },
            Call::Drop { access } => accesses.remove(access).map_or(Found::Unsaid, |access| {
                drop(access);
                Found::Done
            }),
            Call::Collect { operation, source } => {
                parts[operation.window.index()].collect(operation, target(operation), source)
            }
            Call::Fence { windows } => {
                let fenced = parts.iter_mut().enumerate().filter(|(at, _)| windows.contains(&Id::new(*at)));
                let fenced: Vec<&mut dyn AnyWindow> =
                    fenced.map(|(_, part)| part.free().expect("no posted window is fenced")).collect();
                found(world.fence(fenced).map(|()| Found::Done))
            }
        });
    }
    // A rank that has left could not answer the gets of other ranks.
    world.barrier()?;
    drop(accesses);
    Ok((all, parts.iter().map(|part| part.bytes()).collect()))
}
