//! The committed plans are those of the program.

use heat as _; // so that the plans of the library are linked

#[test]
fn the_committed_plans_are_those_of_the_program() {
    fencepost_tool::plans::check("plans");
}
