//! The committed plans equal those that the program compiles.

use heat as _; // so that the plans of the library are linked

#[test]
fn the_committed_plans_are_those_of_the_program() {
    fencepost_tool::plans::check("plans");
}
