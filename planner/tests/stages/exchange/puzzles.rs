//! The examples and puzzles about posts and starts in the texts on which Fencepost is based.

use super::*;

/// MPI-2, example 6.4: start, put and complete. The post comes before or after them, or the ranks
/// take turns in another order.
#[test]
fn mpi_2_example_6_4_a_put_is_applied_by_the_wait_whenever_the_post_comes() {
    let (mut w, mut ranks) = (world(2, 1), programs::<2>());
    let a = &mut ranks[0];
    let start = a.start(&[1]);
    a.put(start, 1, 0, &[5]);
    let complete = a.complete(start);
    // No rank has posted when the origin completes. The value is buffered, and the origin has
    // finished.
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][complete], ints(&w, 1)), (&Outcome::Done, vec![100]));
    let b = &mut ranks[1];
    b.store(0, 7);
    b.post(&[0]);
    b.wait();
    let load = b.load(0);
    let all = run(&mut w, &ranks);
    assert_eq!(all[1][load], got(&[5]), "what is put comes after what was stored before the post");
}

/// MPI-2, figure 6.4. Rank 0 puts into ranks 1 and 2, and rank 3 puts into rank 2.
#[test]
fn mpi_2_figure_6_4_groups_differ_and_strong_or_weak_synchronisation_is_the_same() {
    let (mut w, mut ranks) = (world(4, 2), programs::<4>());
    let [zero, one, two, three] = &mut ranks;
    let start = zero.start(&[1, 2]);
    zero.put(start, 1, 0, &[10]);
    zero.put(start, 2, 0, &[20]);
    zero.complete(start);
    one.post(&[0]);
    one.wait();
    two.post(&[0, 3]);
    two.wait();
    let start = three.start(&[2]);
    three.put(start, 2, 0, &[30]);
    three.put(start, 2, 1, &[31]);
    three.complete(start);
    run(&mut w, &ranks);
    assert_eq!((ints(&w, 1), ints(&w, 2)), (vec![10, 101], vec![30, 31]));
}

/// MPI-2, 6.4.2, advice: a directed graph. Each rank posts to its predecessors in the graph and
/// starts on its successors. Calls with an empty group may be left out.
#[test]
fn mpi_2_a_sparse_graph_is_exchanged_with_and_without_the_empty_calls() {
    let edges = [(0_u32, 1_u32), (0, 3), (1, 3), (3, 0), (2, 2)];
    for empty in [true, false] {
        let (mut w, mut ranks) = (world(5, 5), programs::<5>());
        for (rank, program) in ranks.iter_mut().enumerate() {
            let rank = rank as u32;
            let sources: Vec<u32> = edges.iter().filter(|edge| edge.1 == rank).map(|edge| edge.0).collect();
            let targets: Vec<u32> = edges.iter().filter(|edge| edge.0 == rank).map(|edge| edge.1).collect();
            if empty || !sources.is_empty() {
                program.post(&sources);
            }
            if empty || !targets.is_empty() {
                let start = program.start(&targets);
                for target in targets {
                    program.put(start, target, rank as usize, &[1000 + rank as i32]);
                }
                program.complete(start);
            }
            if empty || !sources.is_empty() {
                program.wait();
            }
        }
        let mut expected = world(5, 5);
        for (from, to) in edges {
            let value = (1000 + from as i32).to_ne_bytes();
            expected.memory[to as usize][W][4 * from as usize..][..4].copy_from_slice(&value);
        }
        let all = run(&mut w, &ranks);
        assert!(all.iter().flatten().all(|outcome| *outcome == Outcome::Done));
        assert_eq!(w, expected);
    }
}

/// MPI-2.2, 11.5: two windows. The rank computes on one window while the other is posted.
#[test]
fn mpi_2_2_two_windows_are_posted_in_turn_and_every_start_finds_its_post() {
    let (mut w, mut ranks) = (world(2, 1), programs::<2>());
    let mut tickets = Vec::new();
    for (rank, program) in ranks.iter_mut().enumerate() {
        let other = group(&[1 - rank as u32]);
        program.call(Call::Post { window: W, sources: other.clone(), lent: Lent::Read });
        for step in 0..4 {
            let (open, next) = if step % 2 == 0 { (W, V) } else { (V, W) };
            let access = program.call(Call::Start { window: open, targets: other.clone() });
            let mut operation = program.operation(Kind::Get, 1 - rank as u32, 0, 1);
            operation.window = open;
            tickets.push((rank, program.call(Call::Access { access, operation, source: Vec::new() })));
            let value = bytes(&[1000 * (rank as i32 + 1) + step]);
            program.call(Call::Store { window: next, elements: Datatype::run(0..1), bytes: value });
            program.complete(access);
            program.call(Call::Post { window: next, sources: other.clone(), lent: Lent::Read });
            program.call(Call::Wait { window: open });
        }
        program.call(Call::Wait { window: W });
    }
    let all = run(&mut w, &ranks);
    let found: Vec<_> = tickets.iter().map(|(rank, at)| all[*rank][*at].clone()).collect();
    let expected = [100, 2000, 2001, 2002, 0, 1000, 1001, 1002].map(|value| got(&[value]));
    assert_eq!(found, expected);
    // The last post has no start. Its wait names the origin that does not arrive.
    assert_eq!(all[0].last(), Some(&stalled(&[1])));
}

/// MPI-2.2, example 11.14, except for its locks; `locks::texts` has these.
#[test]
fn mpi_2_2_example_11_14_a_store_into_a_posted_window_is_refused_and_a_put_to_oneself_is_not() {
    let (mut w, mut ranks) = (world(2, 2), programs::<2>());
    let [a, b] = &mut ranks;
    a.store(1, 8);
    a.post(&[0, 1]);
    let own = a.start(&[0]);
    let stored = a.store(0, 7);
    a.put(own, 0, 0, &[7]);
    a.complete(own);
    a.wait();
    let load = a.load(0);
    let start = b.start(&[0]);
    let ticket = b.get(start, 0, 0, 2);
    b.complete(start);
    let all = run(&mut w, &ranks);
    assert_eq!(all[0][stored], failed(ErrorClass::RmaConflict, 0, stored));
    assert_eq!((&all[0][load], &all[1][ticket]), (&got(&[7]), &got(&[0, 8])));
}

/// MPI-2.2, example 11.15, from its post on. The window already holds the elements that were put.
#[test]
fn mpi_2_2_example_11_15_a_load_from_a_posted_window_is_refused_unless_it_is_lent_to_gets_only() {
    for (lent, seen) in [(Lent::Whole, None), (Lent::Read, Some(got(&[100])))] {
        let (mut w, mut ranks) = (world(2, 1), programs::<2>());
        let b = &mut ranks[1];
        b.lends(&[1], lent);
        let start = b.start(&[1]);
        let load = b.load(0);
        b.complete(start);
        b.wait();
        let all = run(&mut w, &ranks);
        assert_eq!(all[1][load], seen.unwrap_or(failed(ErrorClass::RmaConflict, 1, load)));
    }
}

/// Returns the first puzzle of MPICH2's design notes. The table of the puzzle may be read by
/// columns or by rows. All ranks that put to rank 3 name element 0.
fn first_puzzle(by_columns: bool) -> [Program; 4] {
    let mut ranks = programs::<4>();
    for rank in &mut ranks {
        rank.fence();
    }
    let [zero, one, two, three] = &mut ranks;
    zero.collect(1, 0, &[1]);
    one.collect(0, 0, &[2]);
    if by_columns {
        zero.collect(3, 0, &[3]);
        one.collect(2, 0, &[4]);
    }
    let start = two.start(&[3]);
    two.put(start, 3, 0, &[5]);
    two.put(start, 3, 1, &[6]);
    two.complete(start);
    three.post(&[2]);
    if !by_columns {
        three.collect(2, 0, &[7]);
    }
    three.wait();
    three.load(0);
    ranks
}

#[test]
fn the_first_puzzle_the_wait_has_the_put_of_2_and_the_fence_adds_those_of_0_and_1() {
    for by_columns in [true, false] {
        let (mut w, mut ranks) = (world(4, 2), first_puzzle(by_columns));
        let loaded = ranks[3].calls.len() - 1;
        for rank in &mut ranks {
            rank.fence();
        }
        let all = run(&mut w, &ranks);
        assert_eq!(all[3][loaded], got(&[5]), "before the fence");
        assert_eq!((ints(&w, 0), ints(&w, 1)), (vec![2, 1], vec![1, 101]));
        let (two, three) = if by_columns { ([4, 201], [3, 6]) } else { ([200, 201], [5, 6]) };
        assert_eq!((ints(&w, 2), ints(&w, 3)), (two.to_vec(), three.to_vec()));
        let refused: Vec<_> =
            all.iter().flatten().filter(|outcome| matches!(outcome, Outcome::Failed { .. })).collect();
        // If the table is read by rows, rank 3 puts while its window is posted. The error names the
        // post, and the put is not part of the fence.
        let expected = failed(ErrorClass::RmaSync, 3, 1);
        assert_eq!(refused, if by_columns { vec![] } else { vec![&expected] });
    }
}

#[test]
fn the_worse_puzzle_puts_of_2_and_3_after_their_exposure_are_the_fences() {
    for by_columns in [true, false] {
        let (mut w, mut ranks) = (world(4, 2), first_puzzle(by_columns));
        ranks[2].collect(3, 0, &[8]);
        ranks[3].collect(2, 0, &[9]);
        for rank in &mut ranks {
            rank.fence();
        }
        run(&mut w, &ranks);
        assert_eq!((ints(&w, 0), ints(&w, 1)), (vec![2, 1], vec![1, 101]));
        assert_eq!((ints(&w, 2), ints(&w, 3)), (vec![9, 201], vec![8, 6]), "2 and 3 come after 0 and 1");
    }
}

/// The notes: `complete` need not wait for the target, but `wait` waits for all origins.
#[test]
fn the_notes_a_post_for_one_origin_is_like_an_exclusive_lock() {
    let (mut w, mut ranks) = (world(2, 2), programs::<2>());
    let [a, b] = &mut ranks;
    let start = a.start(&[1]);
    let ticket = a.get(start, 1, 0, 1);
    a.add(start, 1, 1, &[5]);
    a.complete(start);
    b.post(&[0]);
    b.wait();
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][ticket], ints(&w, 1)), (&got(&[100]), vec![100, 106]));
}
