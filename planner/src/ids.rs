//! Typed ids. Each is a `u32`, typed so that an index of one kind cannot be used for another.

/// A typed index into a [`Table`](crate::table::Table).
pub trait Id: Copy {
    /// Creates the id of index `index`.
    fn new(index: usize) -> Self;
    /// Returns the index of this id.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $letter:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl Id for $name {
            fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("an id fits 32 bits: inputs are bounded before ids are made"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

ids! {
    /// A rank of the world that a schedule is for.
    Rank "r";
    /// A window, by its position among the superstep's window parameters.
    WindowId "w";
    /// An operation, by its position in its rank's program order. An operation without a target
    /// counts too.
    OperationId "op";
    /// A class of ranks that differ only by their position.
    ClassId "c";
    /// The content of everything that goes from one rank to another. Equal content has one id,
    /// wherever in the world it occurs.
    LinkId "l";
    /// A distinct datatype.
    DatatypeId "d";
    /// A round of the order in which messages are issued.
    RoundId "round";
    /// A buffer of one rank's program.
    BufferId "b";
}

/// The position of another rank relative to this one: its number minus the number of this rank.
///
/// In a row-major grid, the neighbour in a direction has the same `Delta` for all ranks at which
/// the grid does not wrap. So ranks that differ only by their position have equal programs. A
/// larger delta leads to a higher rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Delta(pub i64);

impl Delta {
    /// This rank itself.
    pub const SELF: Delta = Delta(0);

    /// Returns the delta that leads from `from` to `to`.
    pub fn between(from: Rank, to: Rank) -> Self {
        Self(i64::from(to.0) - i64::from(from.0))
    }

    /// Returns the rank to which this delta leads from the rank `from`, in a world of `ranks`
    /// ranks. Returns `None` if the world has no such rank.
    pub fn from(self, from: Rank, ranks: u32) -> Option<Rank> {
        let to = i64::from(from.0).checked_add(self.0)?;
        (0..i64::from(ranks)).contains(&to).then_some(Rank(to as u32))
    }

    /// Returns the delta that leads back.
    pub fn back(self) -> Self {
        Self(-self.0)
    }
}

impl std::fmt::Display for Delta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 { f.write_str("self") } else { write!(f, "{:+}", self.0) }
    }
}

impl std::fmt::Debug for Delta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
