//! Random bodies of supersteps, which are only sliced here. `tests/supersteps/slicer.rs` also runs
//! the first ones of these bodies.

#[path = "../../../tests/drawn/src/body.rs"]
mod body;

use crate::slice::Outcome;
use crate::understand;
use body::body;
use proc_macro2::TokenStream;
use std::collections::BTreeMap;

fn outcome(body: &str) -> Outcome {
    let source =
        format!("fn f(u: &mut Window<u64>, n: usize, k: usize, list: &[usize]) -> Result<()> {{\n{body}}}");
    let tokens: TokenStream = source.parse().unwrap_or_else(|error| panic!("{error}\n{source}"));
    understand(TokenStream::new(), tokens).unwrap_or_else(|error| panic!("refused: {error}\n{source}")).2
}

#[test]
fn a_thousand_drawn_bodies_are_sliced_to_what_parses() {
    let mut reasons = BTreeMap::new();
    let mut described = 0;
    for seed in 0..1_000 {
        let body = body(seed);
        match outcome(&body) {
            Outcome::Described(slice) => {
                described += 1;
                let statements = slice.statements;
                syn::parse2::<syn::Block>(quote::quote!({ #statements }))
                    .unwrap_or_else(|error| panic!("{error}\n{body}"));
            }
            Outcome::Dynamic(reason) => {
                let why = reason.why.split(" `").next().unwrap_or_default().to_owned();
                *reasons.entry(why).or_insert(0) += 1;
            }
        }
    }
    assert!(described > 300, "{described} have a pattern, and of the others {reasons:#?}");
}
