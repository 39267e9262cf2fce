//! [`Windows`]: those that are fenced together.

use crate::kernel::element::Element;
use crate::state::window::{Window, WindowCore};

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
        /// The first six of them, kept alive.
        fn held(&self) -> Held;
    }

    /// Up to six windows.
    pub type Held = [Option<Rc<WindowCore>>; 6];
}
use sealed::Fenced;
pub(crate) use sealed::Held;

/// Windows that are fenced together: `&mut u`, `(&mut u, &mut v)` and so on to six, or a list of `&mut dyn AnyWindow`.
pub trait Windows<'w>: Fenced {}

impl<T: Element> Fenced for &mut Window<T> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        f(&[&**self.core()])
    }
    fn held(&self) -> Held {
        let mut held = Held::default();
        held[0] = Some(self.core().clone());
        held
    }
}
impl<'w, T: Element> Windows<'w> for &'w mut Window<T> {}

impl Fenced for Vec<&mut dyn AnyWindow> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        let cores: Vec<&WindowCore> = self.iter().map(|window| &**window.core()).collect();
        f(&cores)
    }
    fn held(&self) -> Held {
        let mut held = Held::default();
        held.iter_mut().zip(self).for_each(|(held, window)| *held = Some(window.core().clone()));
        held
    }
}
impl<'w> Windows<'w> for Vec<&'w mut dyn AnyWindow> {}

macro_rules! windows {
    ($($name:ident)*) => {
        #[expect(non_snake_case, reason = "type names name values too")]
        impl<$($name: Element),*> Fenced for ($(&mut Window<$name>,)*) {
            fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
                let ($($name,)*) = self;
                f(&[$(&**$name.core()),*])
            }
            fn held(&self) -> Held {
                let ($($name,)*) = self;
                let mut held = Held::default();
                let mut next = held.iter_mut();
                $(if let Some(held) = next.next() { *held = Some($name.core().clone()); })*
                held
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
