//! [`Windows`]: windows that are fenced together.

use crate::kernel::element::Element;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use std::rc::Rc;

/// A window of any element type. A list of windows with different element types contains them as
/// `&mut dyn AnyWindow`.
pub trait AnyWindow: sealed::Sealed {}
impl<T: Element> AnyWindow for Window<T> {}

/// A window whose element type is known only when the program runs. For measurements that only run
/// schedules on it.
pub struct UntypedWindow(Window<u8>);

impl UntypedWindow {
    /// Makes an untyped window from a window whose elements may have more than one byte. The length
    /// of the result is the number of bytes of this rank's part.
    pub(crate) fn new(mut window: Window<u8>) -> Self {
        // The region has all bytes of all elements, but the length of `window` counts one byte for
        // each element.
        window.len *= window.core().element.size as usize;
        Self(window)
    }

    /// Returns the bytes of this rank's elements.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes of this rank's elements.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl AnyWindow for UntypedWindow {}

mod sealed {
    use super::UntypedWindow;
    use crate::kernel::element::Element;
    use crate::state::window::Window;
    use crate::state::window_core::WindowCore;
    use std::rc::Rc;

    pub trait Sealed {
        fn core(&self) -> &Rc<WindowCore>;
    }
    impl<T: Element> Sealed for Window<T> {
        fn core(&self) -> &Rc<WindowCore> {
            Window::core(self)
        }
    }

    impl Sealed for UntypedWindow {
        fn core(&self) -> &Rc<WindowCore> {
            self.0.core()
        }
    }

    pub trait Fenced {
        fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R;
        fn shared<R>(self, f: impl FnOnce(&[&Rc<WindowCore>]) -> R) -> R;
    }
}
use sealed::Fenced;

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
