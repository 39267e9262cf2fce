//! Scoped epochs. A get lands only in those elements of a borrowed buffer that a datatype names.

use fencepost::prelude::*;
use fencepost::{TransportKind, ranks};
use fencepost_tests_worlds::transports::transports;

/// Returns parts of a buffer of 17 elements, with four elements each: a column, two dimensions with
/// descending steps, a list that names one element twice, and a run.
fn parts() -> [Datatype; 4] {
    [
        Datatype::nest(1, &[(4, 3)], 1).unwrap(),
        Datatype::nest(11, &[(2, -6), (2, 3)], 1).unwrap(),
        Datatype::elements([7, 0, 7, 3]).unwrap(),
        Datatype::run(2..6),
    ]
}

#[test]
fn a_get_lands_in_a_part_of_a_buffer_as_if_it_were_unpacked_after() -> Result<()> {
    for transport in transports([0, 1]).into_iter().chain([TransportKind::TcpThreads]) {
        for mode in [Mode::Auto, Mode::Direct, Mode::Pipelined] {
            ranks(3).transport(transport.clone()).mode(mode).run(|world| {
                let (me, next) = (world.rank(), (world.rank() + 1) % 3);
                let mut u = world.window::<u32>(17)?;
                for (remote, part) in parts().iter().flat_map(|a| parts().map(|b| (a.clone(), b))) {
                    for target in [me, next] {
                        u.iter_mut().enumerate().for_each(|(i, one)| *one = (100 * me + i) as u32);
                        let (mut values, mut array) = (vec![1; 17], [1; 17]);
                        u.epoch(|epoch| {
                            epoch.fetch_into(target, &remote, (&mut values, &part))?;
                            epoch.fetch_into(target, &remote, (&mut array[2..], 3..7))?;
                            epoch.put([5]).to(target, 7)
                        })?;
                        let got: Vec<u32> =
                            remote.element_iter().map(|at| (100 * target) as u32 + at as u32).collect();
                        let mut wanted = [1; 17];
                        part.element_iter().zip(&got).for_each(|(at, value)| wanted[at as usize] = *value);
                        assert_eq!(values, wanted, "{remote} into {part}");
                        let mut wanted = [1; 17];
                        wanted[5..9].copy_from_slice(&got);
                        assert_eq!(array, wanted, "{remote}");
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn parts_that_are_not_in_their_buffer_or_have_another_size_are_refused_at_the_call() -> Result<()> {
    ranks(2).run(|world| {
        let next = 1 - world.rank();
        let mut u = world.window::<u32>(8)?;
        let mut refused = |part: Datatype, remote: std::ops::Range<usize>| {
            let mut values = [1; 4];
            let error = u.epoch(|epoch| epoch.fetch_into(next, remote, (&mut values, part)));
            assert_eq!(values, [1; 4]);
            error.expect_err("it is refused")
        };
        let error = refused(Datatype::run(3..5), 0..2);
        assert_eq!(error.class(), ErrorClass::Disp);
        assert!(
            error.to_string().contains("elements 3..5 are not all in the slice of 4 elements"),
            "{error}"
        );
        assert_eq!(refused(Datatype::nest(0, &[(2, -1)], 1).unwrap(), 0..2).class(), ErrorClass::Disp);
        assert_eq!(refused(Datatype::nest(0, &[(1 << 60, 1)], 1).unwrap(), 0..2).class(), ErrorClass::Disp);
        assert_eq!(refused(Datatype::nest(0, &[(1 << 60, 0)], 1).unwrap(), 0..2).class(), ErrorClass::Size);
        assert_eq!(refused(Datatype::run(0..4), 0..2).class(), ErrorClass::Size);
        // A refused call has no effect.
        let mut seen = [0; 2];
        u[0] = 7;
        u.epoch(|epoch| {
            assert!(epoch.fetch_into(next, 0, (&mut seen, 2..3)).is_err());
            Ok(())
        })?;
        assert_eq!(seen, [0; 2]);
        u.epoch(|epoch| epoch.fetch_into(next, 0, (&mut seen, 1..2)))?;
        assert_eq!(seen, [0, 7]);
        Ok(())
    })
}
