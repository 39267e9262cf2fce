//! Documents, reports and measurements of plans.

#![cfg(feature = "command")]

use fencepost::prelude::*;
use fencepost::{AnyWindow, Compiled, Machine, Mode, Options, Placement, TransportKind, ValueAt};
use fencepost_planner::element::ElementType;
use fencepost_runtime::__private::{Superstep, adopt, untyped};
use fencepost_tool::compare::{best, candidates, measure};
use fencepost_tool::difference::{ChangeKind, Comparison};
use fencepost_tool::documents::{Content, DifferenceDocument, MeasurementDocument, PlanDocument, schema};
use fencepost_tool::report::Report;
use fencepost_tool::show::{Part, Shown, explained};
use std::sync::Arc;
use std::time::Duration;

/// Fills the halos of blocks.
#[superstep]
fn exchange<const D: usize>(u: &mut Window<f64>, block: &Block<D>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Reads an element of the next rank, and puts one back.
#[superstep]
fn both_ways(u: &mut Window<u32>, next: usize) -> Result<()> {
    u.get(1..2).from(next, 0..1)?;
    u.fence()?;
    u.put(1..2).to(next, 2)?;
    u.fence()
}

fn halo(ranks: usize, cells: [usize; 2]) -> Compiled {
    exchange::compile(ranks, |rank| Block::at(rank, ranks, cells)?.halo(1)).unwrap()
}

fn cube(side: usize) -> Compiled {
    let ranks = side * side * side;
    exchange::compile(ranks, |rank| Block::at(rank, ranks, [side * 16; 3])?.grid([side; 3])?.halo(1)).unwrap()
}

#[test]
fn the_schema_is_that_of_the_documents() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("documents.schema.json");
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        std::fs::write(&path, schema()).unwrap();
    }
    let is = std::fs::read_to_string(&path).unwrap();
    assert!(is == schema(), "{}: FENCEPOST_BLESS=1 writes it again", path.display());
}

#[test]
fn documents_have_the_values_of_the_plan() {
    let plan = halo(6, [12, 30]);
    let text = Content::Plan(PlanDocument::new(&plan, &Part::default())).to_json();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["format"], &value["kind"]), (&1.into(), &"plan".into()));
    assert_eq!(value["digest"], plan.digest().as_str());
    // A parser of JSON may be wrong by the last bit.
    let predicted = value["epochs"][0]["predicted"].as_f64().unwrap();
    assert!((predicted / plan.predicted().0 - 1.0).abs() < 1e-12, "{predicted}");
    let machine: Vec<String> =
        value["machine"].as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}")).collect();
    assert_eq!(machine.join("\n").parse::<Machine>().unwrap(), Machine::default());
    let ranks: u64 = value["epochs"][0]["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["ranks"].as_u64().unwrap())
        .sum();
    assert_eq!(ranks, 6);
    let one = Part { rank: Some(4), ..Part::default() };
    let text = Content::Plan(PlanDocument::new(&plan, &one)).to_json();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["epochs"][0]["classes"][0]["rank"], 4);
}

#[test]
fn a_part_of_a_plan_has_its_operations_only() {
    let plan = both_ways::compile(3, |rank| Ok((rank + 1) % 3)).unwrap();
    let whole = Shown { compiled: &plan, part: &Part::default(), has_lines: true }.to_string();
    assert!(whole.contains("epoch 0 of 2") && whole.contains(" get ") && whole.contains(" put "), "{whole}");
    let line = Part { line: Some(("documents.rs".into(), 31)), ..Part::default() };
    line.within(&plan).unwrap();
    let put = Shown { compiled: &plan, part: &line, has_lines: true }.to_string();
    assert!(!put.contains(" get ") && put.contains(" put "), "{put}");
    let put = explained(&plan, &line);
    assert!(!put.contains(" get ") && put.contains(" put "), "{put}");
    let nowhere = Part { line: Some(("documents.rs".into(), 1)), ..Part::default() };
    assert!(nowhere.within(&plan).unwrap_err().contains("documents.rs:29, "));
}

#[test]
fn a_comparison_has_what_was_added_removed_and_sent_otherwise() {
    let plan = halo(4, [64, 64]);
    assert!(Comparison::new(&plan, &plan).is_empty());
    let direct = plan.in_mode(Mode::Direct).unwrap();
    let comparison = Comparison::new(&plan, &direct);
    let changes = || comparison.classes.iter().flat_map(|class| &class.changes);
    assert_eq!(changes().count(), 12);
    assert!(changes().all(|change| matches!(change.kind, ChangeKind::Travels { .. })));
    let text = comparison.to_string();
    assert!(text.contains("messages 12 -> 0") && text.contains("aggregated, round 0 -> direct"), "{text}");
    let text = Comparison::new(&plan, &halo(4, [64, 66])).to_string();
    assert!(text.contains("\n- put ") && text.contains("\n+ put "), "{text}");
    // The same calls on windows of other elements are other plans.
    #[superstep]
    fn of<T: Element>(u: &mut Window<T>, next: usize) -> Result<()> {
        u.put(0..1).to(next, 1)
    }
    let ring = |rank: usize| Ok((rank + 1) % 2);
    let both = [of::compile::<f64>(2, ring).unwrap(), of::compile::<u64>(2, ring).unwrap()];
    let text = Comparison::new(&both[0], &both[1]).to_string();
    assert!(text.contains("elements of the windows: Scalar(F64) -> Scalar(U64)"), "{text}");
    let apart = both[0].with(Placement::Apart, &Machine::default(), &Options::default()).unwrap();
    assert!(Comparison::new(&both[0], &apart).to_string().contains("placement: together -> apart"));
    let document = Content::Difference(DifferenceDocument::new(&comparison)).to_json();
    assert!(document.contains("\"travels\""), "{document}");
}

/// Returns the page of plans. Checks that the page has nothing that is forbidden in pages.
fn page(plans: &[Compiled], measured: &[MeasurementDocument]) -> String {
    let page = Report::new(plans, measured).unwrap().to_html().unwrap();
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "a page has a policy");
    for word in ["http:", "https:", "url(", "@import", "src=", " style=", " onclick="] {
        assert!(!page.contains(word), "a page needs nothing else: {word}");
    }
    assert_eq!(page.matches("<figure ").count(), page.matches("<details>").count());
    assert_eq!(page.matches("<svg ").count(), page.matches(" role=\"img\" aria-label=\"").count());
    page
}

#[test]
fn a_page_of_any_number_of_ranks_stays_small() {
    let few = page(&[halo(4, [64, 64])], &[]);
    assert!(few.contains("exchange on 4 ranks"));
    let many = page(&[halo(10_000, [6400, 6400])], &[]);
    assert!(many.len() < 1 << 20, "{} bytes", many.len());
    // A million ranks take a minute in a debug build.
    let all = std::env::var("FENCEPOST_CASES").is_ok_and(|cases| cases == "all");
    let most = page(&[cube(if all { 100 } else { 30 })], &[]);
    assert!(most.len() < 2_000_000, "{} bytes", most.len());
    assert!(most.contains("64 groups of consecutive ranks"));
}

#[test]
fn plans_are_measured_in_a_world_without_their_program() {
    for plan in [halo(3, [30, 30]), both_ways::compile(3, |rank| Ok((rank + 1) % 3)).unwrap()] {
        for transport in [TransportKind::Local, TransportKind::TcpThreads] {
            let world = fencepost::ranks(3).transport(transport);
            let rows = world.collect(|world| {
                let all = candidates(&plan, world.placement(), &Machine::default())?;
                measure(world, &all, "here", Duration::from_millis(5))
            });
            let rows = rows.unwrap();
            let modes = |rows: &[fencepost_tool::documents::MeasurementRow]| {
                rows.iter().map(|row| row.prediction.mode.clone()).collect::<Vec<_>>()
            };
            assert_eq!(modes(&rows[0]), modes(&rows[2]));
            assert!(rows[0].iter().all(|row| row.measured > 0.0 && row.noise >= 0.0));
            assert!(best(&rows[0]).is_some());
            let document = Content::Measurement(MeasurementDocument { rows: rows[0].clone() }).to_json();
            let read = MeasurementDocument::from_json(&document).unwrap();
            assert_eq!(read.rows.len(), rows[0].len());
            assert!(page(&[], &[read]).contains("Measured times"));
        }
    }
    for text in ["", "{}", "[]", "{\"kind\": \"measurement\"}", "{\"format\": 1, \"kind\": \"check\"}"] {
        assert!(MeasurementDocument::from_json(text).is_err(), "{text}");
    }
}

/// Puts elements of any type into the next rank's window, and gets some back.
#[superstep]
fn around<T: Element>(u: &mut Window<T>, next: usize) -> Result<()> {
    u.put(0..20).to(next, 20..40)?;
    u.get(40..50).from(next, 0..10)
}

/// Keeps the least value, and where it was found.
#[superstep]
fn least(u: &mut Window<ValueAt<f64, i64>>, next: usize) -> Result<()> {
    u.accumulate(0..10, Op::MinLoc).to(next, 10..20)
}

/// Compiles `around` for elements of this type, in a ring of 3 ranks.
fn ring_of<T: Element>() -> Compiled {
    around::compile::<T>(3, |rank| Ok((rank + 1) % 3)).unwrap()
}

#[test]
fn plans_of_elements_that_are_not_numbers_are_measured() {
    let least = least::compile(3, |rank| Ok((rank + 1) % 3)).unwrap();
    for plan in [ring_of::<[u8; 3]>(), ring_of::<[f64; 2]>(), ring_of::<[u64; 100]>(), least] {
        for transport in [TransportKind::Local, TransportKind::TcpThreads] {
            let rows = fencepost::ranks(3).transport(transport).collect(|world| {
                let all = candidates(&plan, world.placement(), &Machine::default())?;
                measure(world, &all, "here", Duration::from_millis(1))
            });
            assert!(rows.unwrap()[0].iter().all(|row| row.measured > 0.0));
        }
    }
}

/// A plan changes bytes in the same way as its superstep changes elements.
#[test]
fn a_window_without_a_type_has_the_bytes_of_its_elements() {
    static ADOPTED: Superstep =
        Superstep::of_schedules("adopted", module_path!(), (file!(), line!(), column!()));
    const SIZE: usize = 12;
    let plan = ring_of::<[u8; SIZE]>();
    fencepost::ranks(3)
        .run(|world| {
            let schedules = plan.schedules().iter().map(|schedule| Arc::new(schedule.clone()));
            let mut adopted = adopt(&ADOPTED, world, schedules)?;
            let mut bytes = untyped(world, ElementType::opaque(SIZE as u32), 50)?;
            let mut typed = world.window::<[u8; SIZE]>(50)?;
            let value = |at: usize| (7 * at + world.rank()) as u8;
            for at in 0..50 * SIZE {
                (bytes.bytes_mut()[at], typed[at / SIZE][at % SIZE]) = (value(at), value(at));
            }
            adopted.replay(vec![&mut bytes as &mut dyn AnyWindow])?;
            around(&mut typed, (world.rank() + 1) % 3)?;
            assert_eq!(bytes.bytes(), typed.as_flattened());
            assert_ne!(bytes.bytes()[20 * SIZE], value(20 * SIZE));
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let plan = halo(4, [8, 8]);
    let error = fencepost::ranks(2)
        .run(|world| {
            let all = candidates(&plan, Placement::Together, &Machine::default())?;
            measure(world, &all, "here", Duration::ZERO).map(drop)
        })
        .unwrap_err();
    assert!(error.message().contains("a plan of 4 ranks, in a world of 2"), "{error}");
    let options = Options { cap: None, ..Options::default() };
    let plan = halo(2, [8, 8]).with(Placement::Apart, &Machine::default(), &options).unwrap();
    assert!(candidates(&plan, Placement::Apart, &Machine::default()).unwrap().len() >= 2);
}
