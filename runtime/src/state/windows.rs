//! [`Windows`]: windows that are fenced together.

use crate::kernel::element::Element;
use crate::state::window::{Window, WindowCore};
use fencepost_planner::{Error, ErrorClass, Result};
use smallvec::SmallVec;
use std::rc::Rc;

/// A window of any element type: what several windows that are fenced together have in common.
pub trait AnyWindow: sealed::Sealed {}
impl<T: Element> AnyWindow for Window<T> {}

mod sealed {
    use crate::kernel::element::Element;
    use crate::state::window::{Window, WindowCore};
    use std::rc::Rc;

    pub trait Sealed {
        fn core(&self) -> &Rc<WindowCore>;
    }
    impl<T: Element> Sealed for Window<T> {
        fn core(&self) -> &Rc<WindowCore> {
            Window::core(self)
        }
    }

    pub trait Fenced {
        fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R;
        fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R;
    }
}
use sealed::Fenced;

/// The most windows of one fence for which nothing is allocated.
pub(crate) const FEW: usize = 6;

/// A list that allocates nothing for a few windows.
pub(crate) type Few<T> = SmallVec<[T; FEW]>;

/// Windows that are kept alive.
pub(crate) type Held = Few<Rc<WindowCore>>;

/// Returns these windows, kept alive.
pub(crate) fn held<'w>(windows: impl IntoIterator<Item = &'w Rc<WindowCore>>) -> Held {
    windows.into_iter().cloned().collect()
}

/// Calls `act` with `windows` in the form that a fence takes.
pub(crate) fn with<R>(windows: &Held, act: impl FnOnce(&[&WindowCore]) -> Result<R>) -> Result<R> {
    if windows.is_empty() {
        return Err(Error::new(ErrorClass::Intern, "a superstep without windows"));
    }
    let all: Few<&WindowCore> = windows.iter().map(|window| &**window).collect();
    act(&all)
}

/// Windows that are fenced together: `&mut u`, `(&mut u, &mut v)` and so on to six, an array, a
/// slice or a vector of windows of one type, or a list of `&mut dyn AnyWindow`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be fenced",
    label = "not a `&mut` window, and no list of windows",
    note = "hand over `&mut u`, `(&mut u, &mut v)` and so on to six, `&mut windows` for a `Vec<Window<_>>`, or a `Vec<&mut dyn AnyWindow>`"
)]
pub trait Windows<'w>: Fenced {}

impl<T: Element> Fenced for &mut Window<T> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        f(&[&**self.core()])
    }
    fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
        f(&[self.core()])
    }
}
impl<'w, T: Element> Windows<'w> for &'w mut Window<T> {}

impl<T: Element> Fenced for &mut [Window<T>] {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        let cores: Vec<&WindowCore> = self.iter().map(|window| &**window.core()).collect();
        f(&cores)
    }
    fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
        let cores: Vec<&Rc<WindowCore>> = self.iter().map(Window::core).collect();
        f(&cores)
    }
}
impl<'w, T: Element> Windows<'w> for &'w mut [Window<T>] {}

impl<T: Element, const N: usize> Fenced for &mut [Window<T>; N] {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        f(&self.each_ref().map(|window| &**window.core()))
    }
    fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
        f(&self.each_ref().map(Window::core))
    }
}
impl<'w, T: Element, const N: usize> Windows<'w> for &'w mut [Window<T>; N] {}

impl<T: Element> Fenced for &mut Vec<Window<T>> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        self.as_mut_slice().with(f)
    }
    fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
        self.as_mut_slice().shared(f)
    }
}
impl<'w, T: Element> Windows<'w> for &'w mut Vec<Window<T>> {}

impl Fenced for Vec<&mut dyn AnyWindow> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        let cores: Vec<&WindowCore> = self.iter().map(|window| &**window.core()).collect();
        f(&cores)
    }
    fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
        let cores: Vec<&Rc<WindowCore>> = self.iter().map(|window| window.core()).collect();
        f(&cores)
    }
}
impl<'w> Windows<'w> for Vec<&'w mut dyn AnyWindow> {}

impl<const N: usize> Fenced for [&mut dyn AnyWindow; N] {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        f(&self.each_ref().map(|window| &**window.core()))
    }
    fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
        f(&self.each_ref().map(|window| window.core()))
    }
}
impl<'w, const N: usize> Windows<'w> for [&'w mut dyn AnyWindow; N] {}

macro_rules! windows {
    ($($name:ident)*) => {
        #[expect(non_snake_case, reason = "type names name values too")]
        impl<$($name: Element),*> Fenced for ($(&mut Window<$name>,)*) {
            fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
                let ($($name,)*) = self;
                f(&[$(&**$name.core()),*])
            }
            fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R {
                let ($($name,)*) = self;
                f(&[$($name.core()),*])
            }
        }
        impl<'w, $($name: Element),*> Windows<'w> for ($(&'w mut Window<$name>,)*) {}
    };
}
windows!(A);
windows!(A B);
windows!(A B C);
windows!(A B C D);
windows!(A B C D E);
windows!(A B C D E F);
