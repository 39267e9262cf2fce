//! Plan files. They are opened without a world, loaded from every kind of source, and saved by the
//! ranks of a world.

use fencepost::explain::{ExplainedShare, Route};
use fencepost::prelude::*;
use fencepost::{Compiled, Machine, Mode, Options, Placement, World, ranks};
use fencepost_tests_worlds::transports::transports;
use std::path::PathBuf;

/// Fills this block's halo from the blocks around it.
#[superstep(prepared = Halo)]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Two epochs: the second epoch sends the elements that arrive in the first.
#[superstep]
fn hand_on(u: &mut Window<u32>, next: usize) -> Result<()> {
    u.put(0..2).to(next, 2)?;
    u.fence()?;
    u.put(2..4).to(next, 0)?;
    u.fence()
}

fn compiled() -> Compiled {
    exchange::compile(6, |rank| Block::at(rank, 6, [12, 9])?.halo(1)).unwrap()
}

/// Creates a folder that only one test uses.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fencepost-plans-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Replays a prepared exchange, and compares the window with the result of the plain call.
fn leaves_the_same(world: &World, load: impl FnOnce(&Block<2>) -> Result<Halo>) -> Result<()> {
    let block = Block::new(world, [12, 9])?.halo(1)?;
    let cells = |u: &mut Window<f64>| {
        u.iter_mut().enumerate().for_each(|(i, cell)| *cell = (world.rank() * 10_000 + i) as f64);
    };
    let (mut plain, mut again) = (world.window(block.len())?, world.window(block.len())?);
    cells(&mut plain);
    cells(&mut again);
    exchange(&mut plain, &block)?;
    load(&block)?.replay(&mut again)?;
    assert_eq!(&plain[..], &again[..]);
    Ok(())
}

#[test]
fn a_plan_is_opened_as_it_was_saved() {
    let (folder, machine) =
        (folder("opened"), Machine { shared: Machine::default().network, ..Machine::default() });
    let path = folder.join("exchange.plan");
    for placement in [Placement::Together, Placement::Hosts { ranks_each: 2 }] {
        let options = Options { cap: Some(fencepost::Bytes(1 << 20)), ..Options::default() };
        let saved = compiled().with(placement, &machine, &options).unwrap();
        saved.save(&path).unwrap();
        let opened = Compiled::open(&path).unwrap();
        assert_eq!((opened.name(), opened.ranks(), opened.digest()), ("exchange", 6, saved.digest()));
        assert_eq!(opened.explain(), saved.explain());
        assert_eq!(opened.predicted().0, saved.predicted().0, "by the machine of the file");
        // For another mode or placement, the plan is compiled again from the calls in its file.
        for mode in [Mode::Aggressive, Mode::Direct] {
            assert_eq!(opened.in_mode(mode).unwrap().digest(), saved.in_mode(mode).unwrap().digest());
        }
        let apart = |plan: &Compiled| plan.with(Placement::Apart, &Machine::default(), &options).unwrap();
        assert_eq!(apart(&opened).digest(), apart(&saved).digest());
        assert_ne!(apart(&opened).digest(), opened.digest());
    }
    let several = hand_on::compile(3, |rank| Ok((rank + 1) % 3)).unwrap();
    several.save(&path).unwrap();
    let opened = Compiled::open(&path).unwrap();
    assert_eq!((opened.digest(), opened.explain()), (several.digest(), several.explain()));
    assert_eq!(Compiled::open(folder.join("none.plan")).unwrap_err().class(), ErrorClass::Io);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_of_plans_that_do_not_belong_together_is_refused() {
    let folder = folder("mixed");
    let (one, other, both) = (folder.join("one"), folder.join("other"), folder.join("both"));
    compiled().save(&one).unwrap();
    hand_on::compile(3, |rank| Ok((rank + 1) % 3)).unwrap().save(&other).unwrap();
    let bytes = [std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap()].concat();
    std::fs::write(&both, bytes).unwrap();
    let error = Compiled::open(&both).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Plan);
    assert!(error.message().contains("exchange on 6 ranks, and plan 1 is of another"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_plan_is_loaded_from_a_file_its_bytes_or_its_folder() {
    let folder = folder("loaded");
    let path = folder.join("exchange-6.plan");
    compiled().save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for transport in transports([0]) {
        ranks(6)
            .transport(transport)
            .run(|world| {
                leaves_the_same(world, |block| exchange::load(world, &path, block))?;
                leaves_the_same(world, |block| exchange::load(world, path.to_str().unwrap(), block))?;
                leaves_the_same(world, |block| exchange::load(world, &bytes, block))?;
                leaves_the_same(world, |block| exchange::load(world, &folder, block))?;
                let block = Block::new(world, [12, 9])?.halo(1)?;
                let text = exchange::load(world, &folder, &block)?.explain().to_string();
                assert!(text.starts_with(&format!("loaded from {}\n", path.display())), "{text}");
                let cut = exchange::load(world, &bytes[..bytes.len() / 2], &block).unwrap_err();
                assert_eq!(cut.class(), ErrorClass::File);
                assert!(cut.message().contains("bytes: the plan file is truncated"), "{cut}");
                Ok(())
            })
            .unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_without_the_plan_has_the_superstep_prepared_on_all_ranks() {
    let (folder, other) = (folder("missing"), folder("missing-on-one"));
    compiled().save(folder.join("exchange-6.plan")).unwrap();
    ranks(4)
        .run(|world| {
            leaves_the_same(world, |block| exchange::load(world, &folder, block))?;
            let block = Block::new(world, [12, 9])?.halo(1)?;
            let text = exchange::load(world, &folder, &block)?.explain().to_string();
            assert!(
                text.starts_with("there is no ") && text.contains("exchange-4.plan on rank 0: prepared"),
                "{text}"
            );
            Ok(())
        })
        .unwrap();
    ranks(6)
        .run(|world| {
            let own = if world.rank() == 2 { &other } else { &folder };
            leaves_the_same(world, |block| exchange::load(world, own, block))?;
            let block = Block::new(world, [12, 9])?.halo(1)?;
            let text = exchange::load(world, own, &block)?.explain().to_string();
            assert!(text.contains(" on rank 2: prepared\n"), "{text}");
            Ok(())
        })
        .unwrap();
    for folder in [folder, other] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_prepared_superstep_is_saved_by_its_world() {
    let folder = folder("saved");
    for (number, transport) in transports([0]).into_iter().enumerate() {
        let path = folder.join(format!("{number}.plan"));
        ranks(6)
            .transport(transport)
            .run(|world| {
                let block = Block::new(world, [12, 9])?.halo(1)?;
                let mut prepared = exchange::prepare(world, &block)?;
                prepared.save(&path)?;
                // The file exists when the call returns, and the prepared superstep is still
                // usable.
                leaves_the_same(world, |block| exchange::load(world, &path, block))?;
                let mut u = world.window(block.len())?;
                prepared.replay(&mut u)?;
                let opened = Compiled::open(&path)?;
                assert_eq!((opened.name(), opened.ranks()), ("exchange", 6));
                let here = opened.with(world.placement(), world.machine(), &Options::default())?;
                assert_eq!(here.digest(), opened.digest(), "made for this world");

                let error = prepared.save(path.join("none/x.plan")).unwrap_err();
                let class = if world.rank() == 0 { ErrorClass::Io } else { ErrorClass::RmaSync };
                assert_eq!(error.class(), class, "{error}");
                prepared.replay(&mut u)
            })
            .unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The values of an explanation are those that its text shows.
#[test]
fn an_explanation_has_values_and_prints_them() {
    let compiled = compiled();
    let explained = compiled.explain();
    let [epoch] = &explained.epochs[..] else { panic!("one epoch: {explained}") };
    let ExplainedShare::Whole(plan) = &epoch.share else { panic!("of all ranks: {explained}") };
    assert_eq!(
        (&plan.name[..], plan.ranks, plan.members.iter().map(|member| member.ranks).sum()),
        ("exchange", 6, 6)
    );
    assert_eq!(plan.cost.predicted.0, compiled.predicted().0);
    assert_eq!(plan.at_fence.0, compiled.predicted_at_fence().0);
    let text = explained.to_string();
    for member in &plan.members {
        assert_eq!(
            member.rows.len() as u64,
            Block::at(member.rank as usize, 6, [12, 9]).unwrap().halo(1).unwrap().neighbours().count() as u64
        );
        for row in &member.rows {
            assert!(text.contains(&format!("  {row}\n")), "{row} is not in {text}");
            assert!(
                row.site.file.ends_with("files.rs") && row.target.is_some() && row.bytes.0 > 0,
                "{row:?}"
            );
            let Route::Sent { mode, shared: true, costs, .. } = row.route else { panic!("{row:?}") };
            let (packed, direct) =
                (costs.pack.0 + costs.message.0 + costs.unpack.0, costs.copy.0 + costs.entry_and_done.0);
            assert!(mode != Mode::Auto && packed > 0.0 && direct > 0.0, "{row:?}");
        }
    }
    assert!(epoch.conflicts.is_empty() && explained.origin.is_empty());
}
