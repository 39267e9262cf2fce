//! A macro that writes random bodies of supersteps into the tests that run them.

mod body;

use proc_macro::{TokenStream, TokenTree};
use std::fmt::Write as _;

/// Expands to `programs! { .. }` with the bodies that seeds determine: `drawn!(dynamic: 9, 10;
/// sliced: 0, 1)` is `programs! { dynamic drawn_9(u, n, k, list) { .. } .. }`.
///
/// # Panics
///
/// Panics unless the arguments are words and lists of seeds.
#[proc_macro]
pub fn drawn(arguments: TokenStream) -> TokenStream {
    let (mut kind, mut programs) = (String::new(), String::new());
    for argument in arguments {
        match argument {
            TokenTree::Ident(word) => kind = word.to_string(),
            TokenTree::Literal(seed) => {
                let seed = seed.to_string().parse().expect("a seed is a number");
                let body = body::body(seed);
                let _ = write!(programs, "{kind} drawn_{seed}(u, n, k, list) {{\n{body}}}\n");
            }
            separator => assert!(matches!(separator, TokenTree::Punct(_)), "no seed: {separator}"),
        }
    }
    format!("programs! {{ {programs} }}").parse().expect("a body is Rust")
}
