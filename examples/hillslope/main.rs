mod serial;
use fencepost_examples_support::{digest, npy, picture::*};
fn main() {
    let g = npy::load(std::path::Path::new("data/jacksboro-dem.npy")).unwrap();
    let sp = Spacing { north_south: 92.6, east_west: 74.4 };
    let mut a = g.clone();
    let t = std::time::Instant::now();
    serial::JACKSBORO.steps(1e7).run(&mut a.cells, g.rows, g.columns);
    println!("{:?} {}", t.elapsed(), digest(&a.cells));
    let h = Heights::of(&g);
    std::fs::create_dir_all("out").unwrap();
    let t = std::time::Instant::now();
    relief(&g, sp, h).save("out/before.png".as_ref()).unwrap();
    relief(&a, sp, h).save("out/after.png".as_ref()).unwrap();
    change(&g, &a, sp).save("out/change.png".as_ref()).unwrap();
    println!("{:?}", t.elapsed());
}
