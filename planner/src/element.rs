//! The types of windows' elements, and the operators that combine elements.

/// An arithmetic type, on which accumulates are defined.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names are the types' own")]
#[repr(u8)]
pub enum Scalar {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Scalar {
    /// Every scalar, in order of its code.
    pub const ALL: [Scalar; 10] = {
        use Scalar::*;
        [I8, I16, I32, I64, U8, U16, U32, U64, F32, F64]
    };

    /// Returns the size of this type in bytes.
    pub const fn size(self) -> u32 {
        match self {
            Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Returns whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }
}

/// The kind of a window's elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ElementKind {
    /// An arithmetic type.
    Scalar(Scalar),
    /// A value and the index at which it was found: `ValueAt<V, I>`, with the value first, then the
    /// index, without padding. The operators MINLOC and MAXLOC take such elements.
    ValueAt(Scalar, Scalar),
    /// Plain old data, on which only put, get and REPLACE are defined.
    Opaque,
}

/// The size and kind of a window's elements. It is the same on all ranks of a window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ElementType {
    /// The bytes of one element; at least 1.
    pub size: u32,
    /// The kind, which determines whether and how operators combine elements.
    pub kind: ElementKind,
}

impl ElementType {
    /// Returns the element type of a scalar.
    pub const fn scalar(scalar: Scalar) -> Self {
        Self { size: scalar.size(), kind: ElementKind::Scalar(scalar) }
    }

    /// Returns the element type of plain old data of `size` bytes.
    pub const fn opaque(size: u32) -> Self {
        Self { size, kind: ElementKind::Opaque }
    }
}

/// An accumulate's operator, named as MPI names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    /// Addition; integers wrap.
    Sum,
    /// Multiplication; integers wrap.
    Prod,
    /// Minimum; for floats IEEE 754-2019 `minimum`.
    Min,
    /// Maximum; for floats IEEE 754-2019 `maximum`.
    Max,
    /// Bitwise and; integers only.
    Band,
    /// Bitwise or; integers only.
    Bor,
    /// Bitwise exclusive or; integers only.
    Bxor,
    /// Logical and of integers; the result is 0 or 1.
    Land,
    /// Logical or of integers; the result is 0 or 1.
    Lor,
    /// Logical exclusive or of integers; the result is 0 or 1.
    Lxor,
    /// The later value; any element type.
    Replace,
    /// The smaller value and its index, or the smaller index if values are equal; `ValueAt` only.
    MinLoc,
    /// The larger value and its index, or the smaller index if values are equal; `ValueAt` only.
    MaxLoc,
    /// No operation, as MPI_NO_OP: the element is unchanged. Only operations that return the
    /// previous value accept it: `fetch_and` and `get_accumulate` under a lock, for any element
    /// type. Such operations read the element. Unlike a get, they do not conflict with any
    /// accumulate.
    NoOp,
}

impl Op {
    /// Every operator that changes elements, in order of its code: all but `NoOp`.
    #[doc(hidden)]
    pub const ALL: [Op; 13] = {
        use Op::*;
        [Sum, Prod, Min, Max, Band, Bor, Bxor, Land, Lor, Lxor, Replace, MinLoc, MaxLoc]
    };

    /// Returns whether elements of this type may be combined with this operator.
    #[doc(hidden)]
    pub fn takes(self, element: ElementType) -> bool {
        match (self, element.kind) {
            (Op::Replace, _) => true,
            (Op::NoOp, _) => false,
            (Op::MinLoc | Op::MaxLoc, kind) => matches!(kind, ElementKind::ValueAt(..)),
            (Op::Sum | Op::Prod | Op::Min | Op::Max, kind) => matches!(kind, ElementKind::Scalar(_)),
            (_, ElementKind::Scalar(scalar)) => !scalar.is_float(),
            _ => false,
        }
    }

    /// Returns whether this operator is accepted by operations that return the previous value.
    #[doc(hidden)]
    pub fn may_fetch(self, element: ElementType) -> bool {
        self == Op::NoOp || self.takes(element)
    }

    /// Returns the message of an error: this operator is not defined for `element`. The message
    /// names the types that the operator takes.
    #[doc(hidden)]
    pub fn undefined_for(self, element: ElementType) -> String {
        let takes = match self {
            Op::NoOp => {
                return format!(
                    "{self} changes nothing, so only `fetch_and` and `get_accumulate` under a lock take it"
                );
            }
            Op::MinLoc | Op::MaxLoc => "a `ValueAt`, which is a number and its index",
            Op::Sum | Op::Prod | Op::Min | Op::Max => "integers and floating-point numbers",
            _ => "integers",
        };
        match element.kind {
            ElementKind::Opaque => format!(
                "{self} is not defined for elements of {} bytes that are not one number, such as arrays and structs: it takes {takes}, so use a window of numbers",
                element.size
            ),
            _ => format!("{self} is not defined for {element}: it takes {takes}"),
        }
    }

    /// Returns whether the result depends on the order in which the operator is applied: always for
    /// REPLACE, and for SUM and PROD of floats.
    #[doc(hidden)]
    pub fn order_shows(self, element: ElementType) -> bool {
        match self {
            Op::Replace => true,
            Op::Sum | Op::Prod => matches!(element.kind, ElementKind::Scalar(s) if s.is_float()),
            _ => false,
        }
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Op::Sum => "SUM",
            Op::Prod => "PROD",
            Op::Min => "MIN",
            Op::Max => "MAX",
            Op::Band => "BAND",
            Op::Bor => "BOR",
            Op::Bxor => "BXOR",
            Op::Land => "LAND",
            Op::Lor => "LOR",
            Op::Lxor => "LXOR",
            Op::Replace => "REPLACE",
            Op::MinLoc => "MINLOC",
            Op::MaxLoc => "MAXLOC",
            Op::NoOp => "NO_OP",
        })
    }
}
