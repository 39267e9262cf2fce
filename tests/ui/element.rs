use fencepost::prelude::*;

#[derive(Clone, Copy, Element)]
#[repr(u8)]
enum Kind {
    Water,
    Land,
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
union Either {
    whole: u32,
    part: f32,
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Pair<T>(T, T);

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Nothing;

#[derive(Clone, Copy, Element)]
struct AnyOrder {
    a: f64,
    b: f64,
}

#[derive(Clone, Copy, Element)]
#[repr(align(16))]
struct Wide(u64);

fn main() {}
