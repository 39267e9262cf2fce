//! 300 bodies drawn at random, 81 of them dynamic: `FENCEPOST_DRAW=write cargo test -p fencepost-macros` writes them.

#![allow(unused, clippy::all, clippy::pedantic, reason = "drawn at random")]

use super::bodies::{bad, pick, small, validate, validated};
use super::*;

macro_rules! ensure {
    ($holds:expr, $what:expr) => {
        if !$holds {
            return Err(bad($what));
        }
    };
}

programs! {
    sliced drawn_0(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = u.rank();
        a = small(rest.next().unwrap_or(4))? % 13;
        validate(list)?;
        values.push(u[6]);
        u.put(0..2).to(((({ a = (a + 2) % 9; a }) + n) % 13) % u.size(), (all.pop().unwrap_or(4) + 1) % 20)?;
        Ok(())
    }
    sliced drawn_1(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(small(by(n))? % u.size(), (rest.next().unwrap_or(3) + 1) % 20)?;
        a ^= b % 4;
        if (rest.next().is_some() && n > 7) {
            u.put(part.clone()).to(list.len() % u.size(), (a + 2) % 20)?;
        } else {
            'l3: for i in 0..a % 4 {
                if rest.next().is_some() { return Err(bad("drawn")); }
            }
        }
        let mut w4 = 0;
        'l4: while w4 < b % 4 {
            w4 += 1;
            if let Some(&(mut a)) = list.get(((u.rank() + b) % 13)) {
                u.accumulate(part.clone(), Op::Sum).to(pick(list, k) % u.size(), (({ a = (a + 1) % 9; a }) + 5) % 20)?;
                u.put([6]).to(3 % u.size(), (list.len() + 6) % 20)?;
            }
        }
        u.put(part.clone()).to(u.rank() % u.size(), (a + 7) % 20)?;
        u.put(part.clone()).to(u.rank() % u.size(), (all.pop().unwrap_or(1) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_2(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = list.len();
        u[b % 24] += ({ a = (a + 3) % 9; a }) as u64;
        let Some(&b) = list.get(((b + u.rank()) % 13)) else { return Err(bad("none")) };
        let mut b = b;
        u.accumulate(part.clone(), Op::Sum).to(((k + b) % 13) % u.size(), (1 + 1) % 20)?;
        if ((({ a = (a + 3) % 9; a }) > 3 && rest.next().is_some()) && (pick(list, a) > 5 || rest.next().unwrap_or(1) > 6)) {
            u.put([u[0], 2]).to(all.pop().unwrap_or(2) % u.size(), (pick(list, list.len()) + 2) % 20)?;
            u.put(part.clone()).to(b % u.size(), (b + 3) % 20)?;
        }
        u.put([a as u64]).to(6 % u.size(), (({ a = (a + 1) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_3(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(n % u.size(), (all.pop().unwrap_or(1) + 1) % 20)?;
        u.put(0..2).to(({ a = (a + 1) % 9; a }) % u.size(), (rest.next().unwrap_or(3) + 2) % 20)?;
        let mut w3 = 0;
        'l3: while w3 < small(5)? % 4 {
            w3 += 1;
            u.put(part.clone()).to(a % u.size(), (a + 4) % 20)?;
        }
        u.put(0..2).to(a % u.size(), (u.rank() + 5) % 20)?;
        Ok(())
    }
    sliced drawn_4(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = all.pop().unwrap_or(0) > 0 || (a > 2 && rest.next().is_some());
        match ((b + u.rank()) % 13) % 3 {
            0 => {
                'l1: for i in 0..((b + u.rank()) % 13) % 4 {
                    if 1 > 6 { Err(bad("drawn"))?; }
                }
            }
            1 if pick(list, b) > 2 => {
                part.start = (part.start + 1) % part.end;
                if rest.next().is_some() {
                    u.put([2]).to(by(((list.len() + u.rank()) % 13)) % u.size(), (3 + 2) % 20)?;
                    if rest.next().is_some() { return Err(bad("drawn")); }
                }
            }
            _ => {
                u.put([3]).to(pick(list, rest.next().unwrap_or(1)) % u.size(), (2 + 3) % 20)?;
                if ({ a = (a + 1) % 9; a }) > 7 {
                    part.start = (part.start + 1) % part.end;
                } else {
                    let _ = rest.next().is_some() && list.len() % 2 == 0;
                }
            }
        }
        let _ = all.contains(&3) && a > 3;
        all.reverse();
        all.truncate(((u.rank() + b) % 13));
        u.put([u[21], 4]).to(b % u.size(), (u.rank() + 4) % 20)?;
        Ok(())
    }
    sliced drawn_5(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..u.rank() % 4 {
            if let Some(&(mut a)) = list.get(b) {
                'l2: for i in 0..({ a = (a + 3) % 9; a }) % 4 {
                    let _ = small(list.len())? > 4 && (rest.next().is_some() && list.len() > 6);
                    let mut a = list.len();
                }
                if let Some(&(mut a)) = list.get(n) {
                    a ^= n % 4;
                    u[n % 24] += list.len() as u64;
                }
            }
            if ((b > 3 && b > 0) && rest.next().unwrap_or(2) > 6) {
                u.put(part.clone()).to(7 % u.size(), (pick(list, a) + 3) % 20)?;
            }
        }
        a = ({ a = (a + 3) % 9; a }) % 13;
        u.put(&values).to(3 % u.size(), (rest.next().unwrap_or(0) + 4) % 20)?;
        u.put([u[5], 5]).to(n % u.size(), (k + 5) % 20)?;
        Ok(())
    }
    sliced drawn_6(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[3 % 24] += b as u64;
        match all.pop().unwrap_or(4) % 3 {
            0 => {
                if rest.next().is_some() { Err(bad("drawn"))?; }
                u[rest.next().unwrap_or(4) % 24] += b as u64;
            }
            1 if ((8 + b) % 13) % 2 == 0 => {
                'l1: for i in 0..b % 4 {
                    if all.pop().unwrap_or(3) > 7 { return Ok(()); }
                    all.sort();
                }
                let mut w2 = 0;
                'l2: while w2 < u.rank() % 4 {
                    w2 += 1;
                    if (rest.next().is_some() && rest.next().unwrap_or(3) % 2 == 0) { return Ok(()); }
                }
            }
            _ => {
                let mut w3 = 0;
                'l3: while w3 < b % 4 {
                    w3 += 1;
                    let mut b = ({ a = (a + 1) % 9; a });
                }
                if rest.next().is_some() { return Ok(()); }
            }
        }
        u[rest.next().unwrap_or(2) % 24] += rest.next().unwrap_or(0) as u64;
        u.put(&values).to(({ a = (a + 1) % 9; a }) % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_7(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < a % 4 {
            w1 += 1;
            let _ = (n % 2 == 0 || ((5 + a) % 13) > 4) && ({ a = (a + 2) % 9; a }) > 4;
        }
        if (small(n)? > 7 || all.contains(&4)) {
            if (n > 1 && pick(list, b) > 1) {
                values.push(u[6]);
                'l2: for i in 0..all.pop().unwrap_or(3) % 4 {
                    u.put(0..2).to(by(b) % u.size(), (pick(list, list.len()) + 3) % 20)?;
                    u.put([u[4], 4]).to(small(b)? % u.size(), (small(a)? + 4) % 20)?;
                }
            }
            u.accumulate(0..2, Op::Sum).to(list.len() % u.size(), (k + 5) % 20)?;
        }
        all.sort();
        u.accumulate([6], Op::Sum).to(n % u.size(), (rest.next().unwrap_or(3) + 6) % 20)?;
        let _ = (small(b)? % 2 == 0 || small(a)? % 2 == 0) && n > 5;
        let Some(&b) = list.get(b) else { return Ok(()) };
        let mut b = b;
        u.put(0..2).to(b % u.size(), (a + 7) % 20)?;
        Ok(())
    }
    sliced drawn_8(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (rest.next().is_some() || pick(list, n) > 4) {
            let _ = all.contains(&7) || (k % 2 == 0 && list.len() > 4);
        } else {
            a ^= b % 4;
        }
        u.put(part.clone()).to(u.rank() % u.size(), (by(list.len()) + 1) % 20)?;
        a = k % 13;
        u.put([2]).to(b % u.size(), (({ a = (a + 1) % 9; a }) + 2) % 20)?;
        if rest.next().is_some() { return Err(bad("drawn")); }
        u.put(0..2).to(((by(n) + n) % 13) % u.size(), (n + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_9(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        ensure!(a < 12, "great");
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(0)) {
            u.put([k as u64]).to(all.pop().unwrap_or(1) % u.size(), (rest.next().unwrap_or(1) + 1) % 20)?;
        }
        'l2: for i in 0..small(a)? % 4 {
            u.put(0..2).to(a % u.size(), (k + 3) % 20)?;
        }
        if all.contains(&7) {
            u.accumulate([u[4], 4], Op::Sum).to(all.pop().unwrap_or(4) % u.size(), (a + 4) % 20)?;
            match k % 3 {
                0 => {
                    values[0] = u[5];
                }
                1 if ({ a = (a + 1) % 9; a }) > 0 => {
                    a ^= rest.next().unwrap_or(1) % 4;
                    part.start = (part.start + 1) % part.end;
                }
                _ => {
                    u.put([5]).to(4 % u.size(), (b + 5) % 20)?;
                }
            }
        }
        'l6: for i in 0..list.len() % 4 {
            if let Some(&(mut a)) = list.get(by(n)) {
                if (list.len() > 7 || b % 2 == 0) {
                    if (5 > 6 && b % 2 == 0) { break 'l6; }
                    u.accumulate([b as u64], Op::Sum).to(list.len() % u.size(), (((k + n) % 13) + 7) % 20)?;
                } else {
                    let _ = matches!(n % 3, 0 | 2) || rest.next().is_some();
                }
            }
            let mut a = pick(list, rest.next().unwrap_or(4));
        }
        u.put(&values).to(b % u.size(), (b + 8) % 20)?;
        u.put([u[20], 9]).to(rest.next().unwrap_or(3) % u.size(), (b + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_10(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if 7 % 2 == 0 {
            if ((rest.next().is_some() && b > 2) || all.contains(&1)) {
                let mut w1 = 0;
                'l1: while w1 < small(b)? % 4 {
                    w1 += 1;
                    u.accumulate([2], Op::Sum).to(list.len() % u.size(), (a + 2) % 20)?;
                }
                let mut b = b;
            }
            if matches!(a % 3, 0 | 2) {
                u.put(0..2).to(all.pop().unwrap_or(3) % u.size(), (small(a)? + 3) % 20)?;
                let mut w4 = 0;
                'l4: while w4 < n % 4 {
                    w4 += 1;
                    u.accumulate([5], Op::Sum).to(k % u.size(), (k + 5) % 20)?;
                }
            } else {
                u.accumulate(&values, Op::Sum).to(rest.next().unwrap_or(0) % u.size(), (((b + k) % 13) + 6) % 20)?;
            }
        }
        u.put(&values).to(n % u.size(), (list.len() + 7) % 20)?;
        if b > 7 {
            u.accumulate([u[9], 8], Op::Sum).to(((small(a)? + ((n + b) % 13)) % 13) % u.size(), (a + 8) % 20)?;
        } else {
            u.put([9]).to(small(({ a = (a + 1) % 9; a }))? % u.size(), (({ a = (a + 3) % 9; a }) + 9) % 20)?;
        }
        u.put([u[22], 10]).to(small(a)? % u.size(), (n + 10) % 20)?;
        Ok(())
    }
    dynamic drawn_11(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if a % 2 == 0 {
            if (rest.next().is_some() || rest.next().is_some()) { Err(bad("drawn"))?; }
            u.put(0..2).to(3 % u.size(), (u.rank() + 1) % 20)?;
        }
        let _ = b > 5 || (rest.next().is_some() && rest.next().unwrap_or(2) % 2 == 0);
        if k > 7 {
            u.put([2]).to(u.rank() % u.size(), (small(7)? + 2) % 20)?;
        } else {
            ensure!(b < 12, "great");
        }
        u.accumulate([b as u64], Op::Sum).to(pick(list, ((u.rank() + 4) % 13)) % u.size(), (list.len() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_12(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(0..2, Op::Sum).to(((by(b) + a) % 13) % u.size(), (rest.next().unwrap_or(1) + 1) % 20)?;
        small(((b + u.rank()) % 13))?;
        match u.rank() % 3 {
            0 => {
                let Some(&b) = list.get(small(0)?) else { return Ok(()) };
                let mut b = b;
                'l2: for i in 0..rest.next().unwrap_or(4) % 4 {
                    u.put(part.clone()).to(all.pop().unwrap_or(4) % u.size(), (pick(list, u.rank()) + 3) % 20)?;
                }
            }
            1 if a % 2 == 0 => {
                if ({ a = (a + 2) % 9; a }) > 1 {
                    u.put(&values).to(({ a = (a + 3) % 9; a }) % u.size(), (u.rank() + 4) % 20)?;
                    u.put([u[15], 5]).to(b % u.size(), (b + 5) % 20)?;
                }
                let _ = (u.rank() > 0 && rest.next().is_some()) || rest.next().is_some();
            }
            _ => {
                a ^= a % 4;
                'l6: for i in 0..a % 4 {
                    if all.contains(&5) { break 'l6; }
                }
            }
        }
        u.put([u[12], 7]).to(n % u.size(), (a + 7) % 20)?;
        Ok(())
    }
    dynamic drawn_13(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..all.pop().unwrap_or(2) % 4 {
            'l2: for i in 0..b % 4 {
                u.put(&values).to(u[13] as usize % u.size(), (rest.next().unwrap_or(0) + 3) % 20)?;
                'l4: for i in 0..list.len() % 4 {
                    a = b % 13;
                }
            }
        }
        u.put([({ a = (a + 2) % 9; a }) as u64]).to(small(list.len())? % u.size(), (by(b) + 5) % 20)?;
        u.accumulate(&values, Op::Sum).to(b % u.size(), (0 + 6) % 20)?;
        u.put([7]).to(n % u.size(), (({ a = (a + 1) % 9; a }) + 7) % 20)?;
        u.put([u[17], 8]).to(by(a) % u.size(), (((n + u.rank()) % 13) + 8) % 20)?;
        Ok(())
    }
    dynamic drawn_14(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < rest.next().unwrap_or(2) % 4 {
            w1 += 1;
            if b > 1 { continue 'l1; }
        }
        u.put([u[20], 2]).to(((((a + b) % 13) + rest.next().unwrap_or(1)) % 13) % u.size(), (small(a)? + 2) % 20)?;
        if matches!(b % 3, 0 | 2) {
            if u.rank() % 2 == 0 {
                u.put(0..2).to(2 % u.size(), (3 + 3) % 20)?;
                if matches!(b % 3, 0 | 2) {
                    b = by(n) % 13;
                    a ^= b % 4;
                }
            }
        }
        u.put(part.clone()).to(b % u.size(), (b + 4) % 20)?;
        Ok(())
    }
    sliced drawn_15(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _checked = small(k)?;
        u.put(&values).to(list.len() % u.size(), (list.len() + 1) % 20)?;
        let _ = (((n + a) % 13) > 7 || a % 2 == 0) || a % 2 == 0;
        u.put([u[19], 2]).to(by(rest.next().unwrap_or(3)) % u.size(), (n + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_16(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a = k % 13;
        validate(list)?;
        u.accumulate([1], Op::Sum).to(7 % u.size(), (n + 1) % 20)?;
        match ((u.rank() + n) % 13) % 3 {
            0 => {
                small(a)?;
                b = u.rank() % 13;
            }
            1 if 0 > 4 => {
                let mut w2 = 0;
                'l2: while w2 < a % 4 {
                    w2 += 1;
                    u.put(&values).to(a % u.size(), (5 + 3) % 20)?;
                }
            }
            _ => {
                a = a % 13;
            }
        }
        u.put([u[8], 4]).to(n % u.size(), (rest.next().unwrap_or(1) + 4) % 20)?;
        if by(2) > 5 {
            u.put(&values).to(by(({ a = (a + 2) % 9; a })) % u.size(), (b + 5) % 20)?;
            if let Some(&(mut a)) = list.get(n) {
                if all.contains(&8) {
                    let _ = matches!(b % 3, 0 | 2) || all.contains(&7);
                    b ^= all.pop().unwrap_or(3) % 4;
                } else {
                    u.put([u[5], 6]).to(((({ a = (a + 2) % 9; a }) + ({ a = (a + 3) % 9; a })) % 13) % u.size(), (u.rank() + 6) % 20)?;
                }
                u.put([7]).to(((rest.next().unwrap_or(2) + u.rank()) % 13) % u.size(), (n + 7) % 20)?;
            }
        }
        u.put(&values).to(({ a = (a + 1) % 9; a }) % u.size(), (((6 + b) % 13) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_17(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match list.len() % 3 {
            0 => {
                if n % 2 == 0 {
                    let mut a = small(pick(list, b))?;
                } else {
                    let _checked = small(list.len())?;
                }
                if let Some(&(mut a)) = list.get(all.pop().unwrap_or(3)) {
                    u.put([1]).to(rest.next().unwrap_or(2) % u.size(), (8 + 1) % 20)?;
                }
            }
            1 if list.len() > 1 => {
                small(small(k)?)?;
                u.put(&values).to(pick(list, by(a)) % u.size(), (((list.len() + a) % 13) + 2) % 20)?;
            }
            _ => {
                u.put(&values).to(n % u.size(), (((b + b) % 13) + 3) % 20)?;
                u.put([4]).to(n % u.size(), (((n + u.rank()) % 13) + 4) % 20)?;
            }
        }
        'l5: for i in 0..((b + list.len()) % 13) % 4 {
            a = ((all.pop().unwrap_or(2) + rest.next().unwrap_or(2)) % 13) % 13;
            if let Some(&(mut a)) = list.get(all.pop().unwrap_or(0)) {
                match b % 3 {
                    0 => {
                        let _ = pick(list, a) > 0 || (rest.next().is_some() && n > 0);
                        a = 2 % 13;
                    }
                    1 if 1 % 2 == 0 => {
                        validated(list, &u[..])?;
                        let mut b = pick(list, small(k)?);
                    }
                    _ => {
                        values[0] = u[5];
                        b ^= pick(list, small(n)?) % 4;
                    }
                }
            }
        }
        if (((list.len() + u.rank()) % 13) > 4 || ((n + b) % 13) % 2 == 0) {
            if let Some(&(mut a)) = list.get(by(a)) {
                u[((((3 + b) % 13) + 0) % 13) % 24] += small(((3 + b) % 13))? as u64;
                u.put([6]).to(b % u.size(), (0 + 6) % 20)?;
            }
        } else {
            let mut b = a;
        }
        u.put([7]).to(pick(list, list.len()) % u.size(), (b + 7) % 20)?;
        Ok(())
    }
    sliced drawn_18(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..n % 4 {
            u.accumulate(part.clone(), Op::Sum).to(b % u.size(), (u.rank() + 2) % 20)?;
        }
        u[k % 24] += b as u64;
        if rest.next().unwrap_or(0) > 4 {
            let Some(&b) = list.get(all.pop().unwrap_or(0)) else { panic!("none") };
            let mut b = b;
        }
        part.end += 1;
        validated(list, &u[..])?;
        u.put(&values).to(({ a = (a + 3) % 9; a }) % u.size(), (k + 3) % 20)?;
        u.put([u[15], 4]).to(5 % u.size(), (all.pop().unwrap_or(4) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_19(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        part.end += 1;
        let mut a = u.rank();
        if matches!(3 % 3, 0 | 2) {
            'l1: for i in 0..b % 4 {
                if (rest.next().is_some() || a % 2 == 0) { break 'l1; }
            }
            let Some(&b) = list.get(b) else { return Ok(()) };
            let mut b = b;
        }
        if ((rest.next().is_some() && pick(list, 3) > 5) || (((k + a) % 13) % 2 == 0 || rest.next().unwrap_or(0) > 3)) {
            if b > 5 {
                u[a % 24] += by(n) as u64;
                if matches!(3 % 3, 0 | 2) {
                    u.accumulate([2], Op::Sum).to(a % u.size(), (((b + list.len()) % 13) + 2) % 20)?;
                }
            }
            let mut a = list.len();
        }
        let Some(&b) = list.get(rest.next().unwrap_or(3)) else { panic!("none") };
        let mut b = b;
        u.put([({ a = (a + 3) % 9; a }) as u64]).to(((b + k) % 13) % u.size(), (5 + 3) % 20)?;
        u.put(0..2).to(u.rank() % u.size(), (u.rank() + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_20(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = rest.next().unwrap_or(2);
        if (rest.next().is_some() || pick(list, list.len()) > 5) {
            if let Some(&(mut a)) = list.get(list.len()) {
                if matches!(b % 3, 0 | 2) { Err(bad("drawn"))?; }
            }
            if list.len() % 2 == 0 {
                u.accumulate([1], Op::Sum).to(rest.next().unwrap_or(1) % u.size(), (((a + b) % 13) + 1) % 20)?;
                b = small(u.rank())? % 13;
            }
        } else {
            if ((small(b)? > 0 || pick(list, n) > 1) && by(b) > 2) {
                u.put(&values).to(b % u.size(), (small(a)? + 2) % 20)?;
            }
        }
        a ^= b % 4;
        u.put([a as u64]).to(list.len() % u.size(), (u[5] as usize + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_21(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b = 5 % 13;
        u[b % 24] += pick(list, small(b)?) as u64;
        if (matches!(b % 3, 0 | 2) && (rest.next().is_some() || ((a + k) % 13) % 2 == 0)) {
            'l1: for i in 0..list.len() % 4 {
                if ((b + a) % 13) > 4 {
                    u.put([small(({ a = (a + 2) % 9; a }))? as u64]).to(((by(5) + u.rank()) % 13) % u.size(), (n + 2) % 20)?;
                }
                'l3: for i in 0..rest.next().unwrap_or(3) % 4 {
                    a ^= pick(list, a) % 4;
                }
            }
            if n > 4 {
                if a > 1 {
                    all.push(list.len());
                }
                a = list.len() % 13;
            }
        }
        values.push(u[6]);
        u.accumulate([({ a = (a + 3) % 9; a }) as u64], Op::Sum).to(pick(list, pick(list, b)) % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    sliced drawn_22(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(u.rank()) else { return Err(bad("none")) };
        let mut b = b;
        u.accumulate(part.clone(), Op::Sum).to(a % u.size(), (small(k)? + 1) % 20)?;
        if k % 2 == 0 {
            u.put([by(a) as u64]).to(k % u.size(), (a + 2) % 20)?;
            a = ((5 + rest.next().unwrap_or(1)) % 13) % 13;
        }
        'l3: for i in 0..b % 4 {
            let Some(&b) = list.get(a) else { return Ok(()) };
            let mut b = b;
        }
        if matches!(5 % 3, 0 | 2) {
            if rest.next().is_some() { return Err(bad("drawn")); }
        }
        let _ = u[18] > 150 || by(k) > 4;
        u.put([2 as u64]).to(a % u.size(), (((a + b) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_23(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut a = ((((n + b) % 13) + a) % 13);
        u.put(part.clone()).to(k % u.size(), (((n + a) % 13) + 1) % 20)?;
        'l2: for i in 0..b % 4 {
            b = rest.next().unwrap_or(1) % 13;
        }
        if b % 2 == 0 { Err(bad("drawn"))?; }
        validate(list)?;
        u.put([by(((a + list.len()) % 13)) as u64]).to(((rest.next().unwrap_or(2) + b) % 13) % u.size(), (rest.next().unwrap_or(1) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_24(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (({ a = (a + 1) % 9; a }) > 3 || pick(list, list.len()) > 0) { return Err(bad("drawn")); }
        all.sort();
        match a % 3 {
            0 => {
                let mut w1 = 0;
                'l1: while w1 < a % 4 {
                    w1 += 1;
                    u.put([2]).to(u.rank() % u.size(), (3 + 2) % 20)?;
                }
                all.sort();
            }
            1 if rest.next().is_some() => {
                u.put([u[3], 3]).to(((small(list.len())? + ((2 + list.len()) % 13)) % 13) % u.size(), (u.rank() + 3) % 20)?;
            }
            _ => {
                a ^= 5 % 4;
                let mut a = by(({ a = (a + 2) % 9; a }));
            }
        }
        u.accumulate([u[1], 4], Op::Sum).to(n % u.size(), (by(0) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_25(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if all.contains(&3) {
            if matches!(k % 3, 0 | 2) {
                let _ = 7 > 4 || (pick(list, a) % 2 == 0 || k > 0);
            }
            u.put(0..2).to(u.rank() % u.size(), (u.rank() + 1) % 20)?;
        } else {
            if all.contains(&8) {
                'l2: for i in 0..((list.len() + u.rank()) % 13) % 4 {
                    ensure!(b < 12, "great");
                }
            } else {
                let _ = matches!(list.len() % 3, 0 | 2) && ((8 + u.rank()) % 13) > 0;
            }
        }
        u.put(&values).to(b % u.size(), (b + 3) % 20)?;
        if let Some(&(mut a)) = list.get(k) {
            let mut w4 = 0;
            'l4: while w4 < ((k + n) % 13) % 4 {
                w4 += 1;
                u.accumulate(part.clone(), Op::Sum).to(b % u.size(), (rest.next().unwrap_or(4) + 5) % 20)?;
            }
        }
        u.put([u[18], 6]).to(({ a = (a + 2) % 9; a }) % u.size(), (all.pop().unwrap_or(1) + 6) % 20)?;
        Ok(())
    }
    sliced drawn_26(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([({ a = (a + 1) % 9; a }) as u64]).to(b % u.size(), (pick(list, b) + 1) % 20)?;
        u.accumulate(0..2, Op::Sum).to(6 % u.size(), (pick(list, a) + 2) % 20)?;
        if rest.next().is_some() { return Err(bad("drawn")); }
        u.put(part.clone()).to(((by(list.len()) + k) % 13) % u.size(), (1 + 3) % 20)?;
        Ok(())
    }
    sliced drawn_27(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        all.reverse();
        'l1: for i in 0..pick(list, u.rank()) % 4 {
            let mut w2 = 0;
            'l2: while w2 < ((a + list.len()) % 13) % 4 {
                w2 += 1;
                let mut w3 = 0;
                'l3: while w3 < a % 4 {
                    w3 += 1;
                    if (all.pop().unwrap_or(3) > 2 && rest.next().is_some()) { break 'l3; }
                }
            }
        }
        let mut w4 = 0;
        'l4: while w4 < n % 4 {
            w4 += 1;
            u.put(part.clone()).to(by(rest.next().unwrap_or(1)) % u.size(), (a + 5) % 20)?;
        }
        u[small(((b + k) % 13))? % 24] += ((3 + 5) % 13) as u64;
        validated(list, &u[..])?;
        u.put([6]).to(5 % u.size(), (rest.next().unwrap_or(4) + 6) % 20)?;
        u.put([all.pop().unwrap_or(2) as u64]).to(by(n) % u.size(), (a + 7) % 20)?;
        Ok(())
    }
    sliced drawn_28(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(small(k)?) {
            u[rest.next().unwrap_or(2) % 24] += ({ a = (a + 3) % 9; a }) as u64;
            let _checked = small(small(2)?)?;
        }
        if (((b + u.rank()) % 13) > 0 || rest.next().is_some()) { return Err(bad("drawn")); }
        let _ = rest.next().is_some() && ((a + b) % 13) % 2 == 0;
        u.put([a as u64]).to(a % u.size(), (n + 1) % 20)?;
        Ok(())
    }
    dynamic drawn_29(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = b > 1 && matches!(n % 3, 0 | 2);
        let mut w1 = 0;
        'l1: while w1 < small(u.rank())? % 4 {
            w1 += 1;
            let mut b = a;
        }
        u.put(0..2).to(rest.next().unwrap_or(0) % u.size(), (u[23] as usize + 2) % 20)?;
        b = rest.next().unwrap_or(0) % 13;
        u.put(&values).to(a % u.size(), (b + 3) % 20)?;
        u.put([4]).to(a % u.size(), (2 + 4) % 20)?;
        Ok(())
    }
    sliced drawn_30(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[18], 1]).to(u.rank() % u.size(), (((u.rank() + u.rank()) % 13) + 1) % 20)?;
        u.put(part.clone()).to(all.pop().unwrap_or(3) % u.size(), (a + 2) % 20)?;
        b = k % 13;
        a = ((({ a = (a + 1) % 9; a }) + list.len()) % 13) % 13;
        u.put([k as u64]).to(by(small(n)?) % u.size(), (all.pop().unwrap_or(0) + 3) % 20)?;
        if rest.next().is_some() {
            if let Some(&(mut a)) = list.get(((b + u.rank()) % 13)) {
                b = rest.next().unwrap_or(4) % 13;
            }
        }
        u.accumulate(0..2, Op::Sum).to(b % u.size(), (small(b)? + 4) % 20)?;
        Ok(())
    }
    sliced drawn_31(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[12], 1]).to(n % u.size(), (small(n)? + 1) % 20)?;
        u[((((2 + 3) % 13) + rest.next().unwrap_or(4)) % 13) % 24] += list.len() as u64;
        let _checked = small(by(a))?;
        let mut w2 = 0;
        'l2: while w2 < n % 4 {
            w2 += 1;
            if (a > 2 || u.rank() % 2 == 0) {
                let mut a = a;
            } else {
                if rest.next().is_some() { return Err(bad("drawn")); }
            }
        }
        u.put(&values).to(({ a = (a + 1) % 9; a }) % u.size(), (5 + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_32(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(k) else { return Ok(()) };
        let mut b = b;
        if matches!(3 % 3, 0 | 2) {
            if ((((a + u.rank()) % 13) > 3 || list.len() % 2 == 0) || pick(list, a) > 5) {
                let mut b = b;
            }
        }
        if ((by(n) > 6 && all.pop().unwrap_or(1) > 0) && all.contains(&0)) {
            u.put([1]).to(all.pop().unwrap_or(3) % u.size(), (2 + 1) % 20)?;
            let Some(&b) = list.get(8) else { return Err(bad("none")) };
            let mut b = b;
        }
        u.put(0..2).to(small(u[9] as usize)? % u.size(), (a + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_33(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < b % 4 {
            w1 += 1;
            if n > 3 {
                u.put([2]).to(k % u.size(), (pick(list, b) + 2) % 20)?;
                if (rest.next().is_some() || list.len() > 0) {
                    all.sort();
                    if n > 5 { return Err(bad("drawn")); }
                } else {
                    b = small(3)? % 13;
                }
            }
        }
        if let Some(&(mut a)) = list.get(list.len()) {
            u.put([b as u64]).to(b % u.size(), (rest.next().unwrap_or(0) + 3) % 20)?;
        }
        if (matches!(a % 3, 0 | 2) && matches!(n % 3, 0 | 2)) {
            u.put(part.clone()).to(rest.next().unwrap_or(4) % u.size(), (((a + a) % 13) + 4) % 20)?;
        }
        if matches!(k % 3, 0 | 2) {
            if rest.next().unwrap_or(1) > 2 {
                let _ = (((5 + a) % 13) % 2 == 0 || 7 % 2 == 0) || b > 2;
            }
            match k % 3 {
                0 => {
                    values[0] = u[5];
                    let mut a = 8;
                }
                1 if rest.next().is_some() => {
                    ensure!(n < 12, "great");
                }
                _ => {
                    u.accumulate(0..2, Op::Sum).to(b % u.size(), (small(b)? + 5) % 20)?;
                }
            }
        }
        if ((n + k) % 13) > 4 {
            u.put(part.clone()).to(k % u.size(), (b + 6) % 20)?;
        } else {
            let _ = small(n)? > 2 && rest.next().is_some();
        }
        u.accumulate(part.clone(), Op::Sum).to(a % u.size(), (b + 7) % 20)?;
        Ok(())
    }
    dynamic drawn_34(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[n % 24] += a as u64;
        u[a % 24] += ((((k + 8) % 13) + a) % 13) as u64;
        u.put([all.pop().unwrap_or(2) as u64]).to(({ a = (a + 1) % 9; a }) % u.size(), (a + 1) % 20)?;
        let mut w2 = 0;
        'l2: while w2 < small(list.len())? % 4 {
            w2 += 1;
            u.put(part.clone()).to(pick(list, ((u.rank() + b) % 13)) % u.size(), (({ a = (a + 1) % 9; a }) + 3) % 20)?;
        }
        match b % 3 {
            0 => {
                u.put(part.clone()).to(all.pop().unwrap_or(0) % u.size(), (2 + 4) % 20)?;
                let mut w5 = 0;
                'l5: while w5 < small(b)? % 4 {
                    w5 += 1;
                    let mut a = pick(list, k);
                }
            }
            1 if 1 % 2 == 0 => {
                let mut w6 = 0;
                'l6: while w6 < all.pop().unwrap_or(4) % 4 {
                    w6 += 1;
                    u.put([b as u64]).to(small(n)? % u.size(), (small(b)? + 7) % 20)?;
                }
                let mut w8 = 0;
                'l8: while w8 < 6 % 4 {
                    w8 += 1;
                    if ((b + k) % 13) > 4 { return Err(bad("drawn")); }
                }
            }
            _ => {
                u.put([9]).to(pick(list, b) % u.size(), (b + 9) % 20)?;
            }
        }
        if matches!(a % 3, 0 | 2) {
            let _ = all.pop().unwrap_or(1) > 5 && b > 3;
        }
        u.put(part.clone()).to(k % u.size(), (b + 10) % 20)?;
        Ok(())
    }
    sliced drawn_35(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(((all.pop().unwrap_or(1) + b) % 13) % u.size(), (list.len() + 1) % 20)?;
        if ((list.len() + b) % 13) % 2 == 0 {
            let mut a = u.rank();
            u.put(&values).to(k % u.size(), (b + 2) % 20)?;
        } else {
            u[((((b + a) % 13) + all.pop().unwrap_or(0)) % 13) % 24] += pick(list, a) as u64;
        }
        if rest.next().is_some() {
            u[small(({ a = (a + 1) % 9; a }))? % 24] += b as u64;
        } else {
            a = ((a + b) % 13) % 13;
        }
        u.put(&values).to(pick(list, k) % u.size(), (n + 3) % 20)?;
        u.put([4]).to(b % u.size(), (list.len() + 4) % 20)?;
        Ok(())
    }
    sliced drawn_36(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[14], 1]).to(by(b) % u.size(), (((list.len() + k) % 13) + 1) % 20)?;
        u.put([2]).to(a % u.size(), (((list.len() + 4) % 13) + 2) % 20)?;
        u.put(0..2).to(list.len() % u.size(), (a + 3) % 20)?;
        u.put([u[18], 4]).to(b % u.size(), (b + 4) % 20)?;
        Ok(())
    }
    sliced drawn_37(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..pick(list, 5) % 4 {
            a ^= b % 4;
            u.put(0..2).to(u.rank() % u.size(), (k + 2) % 20)?;
        }
        if ((n > 0 || rest.next().is_some()) && small(7)? % 2 == 0) {
            let _ = all.contains(&2) && matches!(k % 3, 0 | 2);
            'l3: for i in 0..rest.next().unwrap_or(0) % 4 {
                ensure!(k < 12, "great");
                u.accumulate([pick(list, b) as u64], Op::Sum).to(rest.next().unwrap_or(1) % u.size(), (small(k)? + 4) % 20)?;
            }
        }
        all.reverse();
        a = ((((a + k) % 13) + small(list.len())?) % 13) % 13;
        u.put(0..2).to(pick(list, ((b + b) % 13)) % u.size(), (k + 5) % 20)?;
        Ok(())
    }
    sliced drawn_38(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[k % 24] += a as u64;
        if let Some(&(mut a)) = list.get(n) {
            small(a)?;
            'l1: for i in 0..n % 4 {
                u.put(0..2).to(({ a = (a + 1) % 9; a }) % u.size(), (b + 2) % 20)?;
            }
        }
        if all.contains(&1) {
            b = pick(list, b) % 13;
            if n % 2 == 0 {
                u.put([u[10], 3]).to(u.rank() % u.size(), (5 + 3) % 20)?;
                if a > 4 { return Err(bad("drawn")); }
            }
        }
        if (rest.next().unwrap_or(2) % 2 == 0 && b > 3) { Err(bad("drawn"))?; }
        u.accumulate([4], Op::Sum).to(by(((b + 8) % 13)) % u.size(), (k + 4) % 20)?;
        u.put([u[19], 5]).to(a % u.size(), (k + 5) % 20)?;
        Ok(())
    }
    sliced drawn_39(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < ((a + b) % 13) % 4 {
            w1 += 1;
            u.put(0..2).to(a % u.size(), (b + 2) % 20)?;
        }
        b = rest.next().unwrap_or(4) % 13;
        if ((b + a) % 13) > 2 {
            u.put(0..2).to(b % u.size(), (a + 3) % 20)?;
            u.put([b as u64]).to(b % u.size(), (rest.next().unwrap_or(3) + 4) % 20)?;
        }
        let mut w5 = 0;
        'l5: while w5 < k % 4 {
            w5 += 1;
            if u.rank() > 0 { break 'l5; }
        }
        'l6: for i in 0..a % 4 {
            if a % 2 == 0 { Err(bad("drawn"))?; }
            'l7: for i in 0..by(a) % 4 {
                if ((8 + b) % 13) % 2 == 0 {
                    if rest.next().is_some() { return Err(bad("drawn")); }
                    u.put([8]).to(5 % u.size(), (b + 8) % 20)?;
                }
            }
        }
        u.put(&values).to(by(list.len()) % u.size(), (all.pop().unwrap_or(1) + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_40(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (all.contains(&3) || rest.next().is_some()) {
            small(b)?;
        }
        u[k % 24] += pick(list, list.len()) as u64;
        let Some(&b) = list.get(b) else { panic!("none") };
        let mut b = b;
        validated(list, &u[..])?;
        'l1: for i in 0..((u.rank() + n) % 13) % 4 {
            if (rest.next().is_some() || rest.next().unwrap_or(2) > 1) {
                if (u.rank() > 5 || rest.next().is_some()) { break 'l1; }
                u.put(part.clone()).to(pick(list, u[14] as usize) % u.size(), (((b + a) % 13) + 2) % 20)?;
            }
            let mut a = a;
        }
        let _ = rest.next().is_some() || list.len() > 5;
        u.put(part.clone()).to(b % u.size(), (small(b)? + 3) % 20)?;
        Ok(())
    }
    sliced drawn_41(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b = list.len() % 13;
        u.put(0..2).to(small(all.pop().unwrap_or(4))? % u.size(), (pick(list, n) + 1) % 20)?;
        match ((b + a) % 13) % 3 {
            0 => {
                match ({ a = (a + 1) % 9; a }) % 3 {
                    0 => {
                        b = a % 13;
                        u.put([2]).to(n % u.size(), (u.rank() + 2) % 20)?;
                    }
                    1 if a > 4 => {
                        let _ = (list.len() % 2 == 0 && b % 2 == 0) || all.pop().unwrap_or(2) > 7;
                    }
                    _ => {
                        if all.contains(&4) { return Err(bad("drawn")); }
                        u.put([3]).to(b % u.size(), (0 + 3) % 20)?;
                    }
                }
                if a % 2 == 0 { return Err(bad("drawn")); }
            }
            1 if list.len() > 2 => {
                b ^= n % 4;
            }
            _ => {
                b ^= b % 4;
                u.accumulate([list.len() as u64], Op::Sum).to(rest.next().unwrap_or(3) % u.size(), (((b + a) % 13) + 4) % 20)?;
            }
        }
        'l5: for i in 0..k % 4 {
            if b > 3 {
                let mut a = k;
                if b % 2 == 0 {
                    if ((a + b) % 13) > 1 { Err(bad("drawn"))?; }
                    if 7 > 4 { Err(bad("drawn"))?; }
                } else {
                    u.accumulate(0..2, Op::Sum).to(({ a = (a + 1) % 9; a }) % u.size(), (all.pop().unwrap_or(3) + 6) % 20)?;
                }
            }
            u.put([pick(list, list.len()) as u64]).to(((n + b) % 13) % u.size(), (({ a = (a + 1) % 9; a }) + 7) % 20)?;
        }
        u.put(part.clone()).to(a % u.size(), (by(n) + 8) % 20)?;
        b = pick(list, list.len()) % 13;
        u.put([9]).to(k % u.size(), (n + 9) % 20)?;
        Ok(())
    }
    sliced drawn_42(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if u[16] > 150 {
            let mut a = 5;
        }
        u.put([u[4], 1]).to(u.rank() % u.size(), (6 + 1) % 20)?;
        u.accumulate(&values, Op::Sum).to(rest.next().unwrap_or(2) % u.size(), (((b + list.len()) % 13) + 2) % 20)?;
        u[((1 + a) % 13) % 24] += a as u64;
        u.put([b as u64]).to(a % u.size(), (b + 3) % 20)?;
        Ok(())
    }
    sliced drawn_43(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = b;
        'l1: for i in 0..((1 + u.rank()) % 13) % 4 {
            if matches!(3 % 3, 0 | 2) {
                'l2: for i in 0..rest.next().unwrap_or(4) % 4 {
                    let _ = matches!(5 % 3, 0 | 2) && (rest.next().is_some() || n % 2 == 0);
                    if by(b) > 2 { return Err(bad("drawn")); }
                }
            }
        }
        if ((n + b) % 13) > 3 {
            u.put([u[17], 3]).to(small(8)? % u.size(), (a + 3) % 20)?;
        }
        u.put([u[8], 4]).to(by(n) % u.size(), (k + 4) % 20)?;
        Ok(())
    }
    sliced drawn_44(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validated(list, &u[..])?;
        part.end += 1;
        let mut w1 = 0;
        'l1: while w1 < pick(list, a) % 4 {
            w1 += 1;
            if all.contains(&1) { return Ok(()); }
        }
        'l2: for i in 0..k % 4 {
            if n > 6 {
                if u.rank() > 6 { break 'l2; }
            }
        }
        u.put([u.rank() as u64]).to(a % u.size(), (n + 3) % 20)?;
        Ok(())
    }
    sliced drawn_45(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= b % 4;
        u.put(part.clone()).to(b % u.size(), (((b + u.rank()) % 13) + 1) % 20)?;
        part.start = (part.start + 1) % part.end;
        u.put([b as u64]).to(small(n)? % u.size(), (rest.next().unwrap_or(1) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_46(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..all.pop().unwrap_or(3) % 4 {
            validate(list)?;
            'l2: for i in 0..list.len() % 4 {
                if by(a) > 2 { return Ok(()); }
                u.put(&values).to(8 % u.size(), (list.len() + 3) % 20)?;
            }
        }
        let mut b = ((((b + a) % 13) + 7) % 13);
        if rest.next().is_some() { Err(bad("drawn"))?; }
        u.put([u[0], 4]).to(b % u.size(), (list.len() + 4) % 20)?;
        match ({ a = (a + 3) % 9; a }) % 3 {
            0 => {
                u.put(&values).to(((a + list.len()) % 13) % u.size(), (b + 5) % 20)?;
            }
            1 if a > 3 => {
                all.push(rest.next().unwrap_or(1));
                a = a % 13;
            }
            _ => {
                let _ = list.len() > 5 && u.rank() % 2 == 0;
            }
        }
        values.push(u[6]);
        u.put([6]).to(n % u.size(), (list.len() + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_47(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((({ a = (a + 2) % 9; a }) > 3 && small(a)? % 2 == 0) || pick(list, list.len()) > 5) {
            'l1: for i in 0..small(u.rank())? % 4 {
                let Some(&b) = list.get(b) else { panic!("none") };
                let mut b = b;
            }
            u.put(&values).to(({ a = (a + 1) % 9; a }) % u.size(), (b + 2) % 20)?;
        }
        let mut w3 = 0;
        'l3: while w3 < ((a + list.len()) % 13) % 4 {
            w3 += 1;
            let mut w4 = 0;
            'l4: while w4 < list.len() % 4 {
                w4 += 1;
                u[a % 24] += pick(list, a) as u64;
            }
        }
        match ({ a = (a + 3) % 9; a }) % 3 {
            0 => {
                if (rest.next().is_some() || b % 2 == 0) {
                    b = n % 13;
                    u.put([u[14], 5]).to(list.len() % u.size(), (list.len() + 5) % 20)?;
                }
                small(pick(list, k))?;
            }
            1 if ((k + a) % 13) > 7 => {
                u[b % 24] += small(list.len())? as u64;
            }
            _ => {
                u.put([((small(a)? + 4) % 13) as u64]).to(b % u.size(), (a + 6) % 20)?;
                u.put(&values).to(b % u.size(), (all.pop().unwrap_or(1) + 7) % 20)?;
            }
        }
        if matches!(a % 3, 0 | 2) { Err(bad("drawn"))?; }
        u.put(0..2).to(k % u.size(), (b + 8) % 20)?;
        Ok(())
    }
    sliced drawn_48(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(((a + u.rank()) % 13) % u.size(), (((b + list.len()) % 13) + 1) % 20)?;
        match b % 3 {
            0 => {
                u.put(&values).to(u.rank() % u.size(), (u.rank() + 2) % 20)?;
                all.push(b);
            }
            1 if 8 > 1 => {
                'l3: for i in 0..u.rank() % 4 {
                    a = n % 13;
                }
            }
            _ => {
                let mut b = list.len();
            }
        }
        values.push(u[6]);
        u.accumulate(&values, Op::Sum).to(a % u.size(), (all.pop().unwrap_or(2) + 4) % 20)?;
        u.put([5]).to(all.pop().unwrap_or(0) % u.size(), (b + 5) % 20)?;
        u.put([u[7], 6]).to(k % u.size(), (by(k) + 6) % 20)?;
        Ok(())
    }
    sliced drawn_49(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if 7 > 2 {
            values[0] = u[5];
            'l1: for i in 0..pick(list, a) % 4 {
                if ({ a = (a + 3) % 9; a }) > 0 { return Err(bad("drawn")); }
            }
        }
        u.put([2]).to(k % u.size(), (by(b) + 2) % 20)?;
        if matches!(list.len() % 3, 0 | 2) {
            u.put([((a + u[8] as usize) % 13) as u64]).to(all.pop().unwrap_or(3) % u.size(), (list.len() + 3) % 20)?;
        } else {
            u.put([u[20], 4]).to(list.len() % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
        }
        'l5: for i in 0..b % 4 {
            if k > 3 { return Ok(()); }
            a ^= b % 4;
        }
        u.put(part.clone()).to(((u.rank() + pick(list, b)) % 13) % u.size(), (a + 6) % 20)?;
        Ok(())
    }
    sliced drawn_50(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().unwrap_or(3) % 2 == 0 { Err(bad("drawn"))?; }
        match 5 % 3 {
            0 => {
                let Some(&b) = list.get(rest.next().unwrap_or(1)) else { panic!("none") };
                let mut b = b;
                u.put([u[21], 1]).to(a % u.size(), (({ a = (a + 1) % 9; a }) + 1) % 20)?;
            }
            1 if rest.next().unwrap_or(0) > 7 => {
                if all.contains(&7) {
                    let _ = (b > 6 || rest.next().is_some()) && rest.next().is_some();
                    a = k % 13;
                } else {
                    validate(list)?;
                }
                if let Some(&(mut a)) = list.get(k) {
                    u.put(part.clone()).to(a % u.size(), (b + 2) % 20)?;
                    if rest.next().is_some() { Err(bad("drawn"))?; }
                }
            }
            _ => {
                let mut a = all.pop().unwrap_or(0);
            }
        }
        if let Some(&(mut a)) = list.get(((a + k) % 13)) {
            if (by(k) % 2 == 0 || rest.next().is_some()) {
                'l3: for i in 0..all.pop().unwrap_or(4) % 4 {
                    u[all.pop().unwrap_or(1) % 24] += rest.next().unwrap_or(2) as u64;
                }
            } else {
                if (a > 0 && k > 2) { Err(bad("drawn"))?; }
            }
            u.put([4]).to(a % u.size(), (pick(list, a) + 4) % 20)?;
        }
        u.put([list.len() as u64]).to(k % u.size(), (all.pop().unwrap_or(1) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_51(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([b as u64], Op::Sum).to(u.rank() % u.size(), (b + 1) % 20)?;
        a ^= pick(list, small(a)?) % 4;
        'l2: for i in 0..rest.next().unwrap_or(3) % 4 {
            if all.contains(&0) {
                all.truncate(by(a));
                let _ = (pick(list, n) > 5 && b > 6) && ((u.rank() + a) % 13) > 1;
            }
        }
        u.accumulate([pick(list, pick(list, b)) as u64], Op::Sum).to(n % u.size(), (list.len() + 3) % 20)?;
        if (small(1)? > 1 || b > 5) { Err(bad("drawn"))?; }
        u.accumulate([k as u64], Op::Sum).to(((n + pick(list, list.len())) % 13) % u.size(), (list.len() + 4) % 20)?;
        Ok(())
    }
    sliced drawn_52(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b = rest.next().unwrap_or(4) % 13;
        if ((u.rank() + b) % 13) % 2 == 0 {
            let _ = all.contains(&8) || a > 0;
        }
        if (all.pop().unwrap_or(4) > 0 || ((k + 2) % 13) > 3) {
            u.accumulate([8 as u64], Op::Sum).to(((8 + b) % 13) % u.size(), (small(u.rank())? + 1) % 20)?;
            'l2: for i in 0..2 % 4 {
                if matches!(n % 3, 0 | 2) { return Err(bad("drawn")); }
                let mut b = n;
            }
        }
        match u.rank() % 3 {
            0 => {
                u[3 % 24] += ({ a = (a + 3) % 9; a }) as u64;
                u[b % 24] += a as u64;
            }
            1 if ({ a = (a + 3) % 9; a }) > 4 => {
                a ^= rest.next().unwrap_or(1) % 4;
            }
            _ => {
                let _ = k > 5 || (b % 2 == 0 || k % 2 == 0);
                u.put(0..2).to(b % u.size(), (u.rank() + 3) % 20)?;
            }
        }
        u.put(&values).to(((u.rank() + list.len()) % 13) % u.size(), (n + 4) % 20)?;
        Ok(())
    }
    sliced drawn_53(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(small(a)? % u.size(), (a + 1) % 20)?;
        if let Some(&(mut a)) = list.get(a) {
            if (list.len() > 6 && 1 > 5) {
                if b > 2 {
                    u.put([u[8], 2]).to(all.pop().unwrap_or(0) % u.size(), (2 + 2) % 20)?;
                    u.put([u[22], 3]).to(u.rank() % u.size(), (pick(list, u.rank()) + 3) % 20)?;
                } else {
                    u[3 % 24] += a as u64;
                }
                'l4: for i in 0..rest.next().unwrap_or(4) % 4 {
                    let mut b = b;
                    u.put([5]).to(((list.len() + ({ a = (a + 2) % 9; a })) % 13) % u.size(), (list.len() + 5) % 20)?;
                }
            } else {
                if (all.pop().unwrap_or(4) > 5 && rest.next().is_some()) {
                    u.put(0..2).to(small(({ a = (a + 3) % 9; a }))? % u.size(), (2 + 6) % 20)?;
                }
            }
            u.put([u[21], 7]).to(k % u.size(), (u.rank() + 7) % 20)?;
        }
        u[b % 24] += 3 as u64;
        if rest.next().is_some() {
            if (rest.next().is_some() || ((8 + b) % 13) % 2 == 0) {
                if all.contains(&8) {
                    u.put(0..2).to(list.len() % u.size(), (n + 8) % 20)?;
                }
                if u.rank() > 3 { return Err(bad("drawn")); }
            } else {
                u.put(part.clone()).to(n % u.size(), (n + 9) % 20)?;
            }
        }
        u.put(&values).to(pick(list, all.pop().unwrap_or(4)) % u.size(), (n + 10) % 20)?;
        if all.contains(&5) {
            let mut w11 = 0;
            'l11: while w11 < b % 4 {
                w11 += 1;
                if list.len() % 2 == 0 { return Err(bad("drawn")); }
            }
        } else {
            'l12: for i in 0..all.pop().unwrap_or(3) % 4 {
                part.end += 1;
            }
        }
        u.put([u[17], 13]).to(n % u.size(), (n + 13) % 20)?;
        Ok(())
    }
    sliced drawn_54(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        rest.next();
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        let _ = (((u.rank() + k) % 13) > 7 && small(b)? % 2 == 0) && u.rank() > 0;
        u.accumulate(&values, Op::Sum).to(5 % u.size(), (small(2)? + 1) % 20)?;
        Ok(())
    }
    sliced drawn_55(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..rest.next().unwrap_or(3) % 4 {
            values.push(u[6]);
        }
        u.accumulate([u[9], 2], Op::Sum).to(((small(b)? + list.len()) % 13) % u.size(), (u.rank() + 2) % 20)?;
        if (rest.next().is_some() || ({ a = (a + 3) % 9; a }) > 1) {
            if ((rest.next().is_some() || u.rank() > 2) || a % 2 == 0) {
                u.put([3]).to(1 % u.size(), (a + 3) % 20)?;
            }
        } else {
            u[small(({ a = (a + 3) % 9; a }))? % 24] += b as u64;
        }
        u.put(0..2).to(list.len() % u.size(), (u.rank() + 4) % 20)?;
        u.put(&values).to(2 % u.size(), (rest.next().unwrap_or(4) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_56(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match ((u.rank() + u.rank()) % 13) % 3 {
            0 => {
                match u.rank() % 3 {
                    0 => {
                        u.put(part.clone()).to(b % u.size(), (pick(list, u.rank()) + 1) % 20)?;
                    }
                    1 if rest.next().is_some() => {
                        b = ((k + small(2)?) % 13) % 13;
                        u[b % 24] += b as u64;
                    }
                    _ => {
                        ensure!(1 < 12, "great");
                        u[pick(list, ((n + b) % 13)) % 24] += pick(list, b) as u64;
                    }
                }
            }
            1 if a > 0 => {
                b ^= all.pop().unwrap_or(2) % 4;
                u.put([all.pop().unwrap_or(3) as u64]).to(a % u.size(), (u.rank() + 2) % 20)?;
            }
            _ => {
                if all.contains(&7) {
                    u.accumulate(&values, Op::Sum).to(rest.next().unwrap_or(2) % u.size(), (((b + a) % 13) + 3) % 20)?;
                }
            }
        }
        if let Some(&(mut a)) = list.get(n) {
            if rest.next().unwrap_or(2) > 7 {
                u.put(0..2).to(b % u.size(), (small(list.len())? + 4) % 20)?;
            } else {
                let mut a = n;
            }
        }
        if let Some(&(mut a)) = list.get(list.len()) {
            'l5: for i in 0..((k + list.len()) % 13) % 4 {
                a = ((b + a) % 13) % 13;
                match pick(list, list.len()) % 3 {
                    0 => {
                        validated(list, &u[..])?;
                        let mut b = 6;
                    }
                    1 if rest.next().is_some() => {
                        if (n > 3 && list.len() > 3) { break 'l5; }
                        u.put([b as u64]).to(list.len() % u.size(), (list.len() + 6) % 20)?;
                    }
                    _ => {
                        u.put([7]).to(all.pop().unwrap_or(4) % u.size(), (b + 7) % 20)?;
                    }
                }
            }
            u.put([8]).to(by(({ a = (a + 1) % 9; a })) % u.size(), (b + 8) % 20)?;
        }
        u.put(0..2).to(k % u.size(), (list.len() + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_57(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if matches!(b % 3, 0 | 2) {
            all.push(rest.next().unwrap_or(4));
            u[pick(list, all.pop().unwrap_or(2)) % 24] += pick(list, pick(list, 6)) as u64;
        }
        let _ = (by(a) % 2 == 0 && all.pop().unwrap_or(2) > 4) && u[11] > 150;
        if let Some(&(mut a)) = list.get(a) {
            u.put(&values).to(by(a) % u.size(), (by(list.len()) + 1) % 20)?;
        }
        u.put([2]).to(n % u.size(), (list.len() + 2) % 20)?;
        Ok(())
    }
    sliced drawn_58(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(&values, Op::Sum).to(u.rank() % u.size(), (u.rank() + 1) % 20)?;
        u.accumulate([u[5], 2], Op::Sum).to(({ a = (a + 1) % 9; a }) % u.size(), (({ a = (a + 2) % 9; a }) + 2) % 20)?;
        let mut w3 = 0;
        'l3: while w3 < b % 4 {
            w3 += 1;
            match u.rank() % 3 {
                0 => {
                    if all.contains(&7) { break 'l3; }
                }
                1 if a % 2 == 0 => {
                    let mut b = ((u.rank() + 7) % 13);
                    u.put(0..2).to(by(n) % u.size(), (by(8) + 4) % 20)?;
                }
                _ => {
                    if n > 6 { break 'l3; }
                    values.push(u[6]);
                }
            }
        }
        match list.len() % 3 {
            0 => {
                u.put([u[7], 5]).to(((a + b) % 13) % u.size(), (list.len() + 5) % 20)?;
            }
            1 if all.pop().unwrap_or(3) % 2 == 0 => {
                let Some(&b) = list.get(small(a)?) else { panic!("none") };
                let mut b = b;
            }
            _ => {
                a ^= b % 4;
            }
        }
        if small(k)? > 1 { Err(bad("drawn"))?; }
        ensure!(3 < 12, "great");
        u.accumulate([u[13], 6], Op::Sum).to(pick(list, a) % u.size(), (a + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_59(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(n) else { return Ok(()) };
        let mut b = b;
        a = rest.next().unwrap_or(4) % 13;
        u.put(0..2).to(list.len() % u.size(), (pick(list, list.len()) + 1) % 20)?;
        if matches!(a % 3, 0 | 2) {
            let mut w2 = 0;
            'l2: while w2 < small(b)? % 4 {
                w2 += 1;
                if matches!(a % 3, 0 | 2) {
                    u[pick(list, small(3)?) % 24] += by(((5 + a) % 13)) as u64;
                    u.put(part.clone()).to(by(list.len()) % u.size(), (k + 3) % 20)?;
                } else {
                    let mut b = by(u.rank());
                }
            }
            let Some(&b) = list.get(n) else { return Ok(()) };
            let mut b = b;
        }
        u.accumulate([u[0], 4], Op::Sum).to(b % u.size(), (({ a = (a + 1) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_60(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validated(list, &u[..])?;
        u.put([u[4], 1]).to(rest.next().unwrap_or(3) % u.size(), (({ a = (a + 3) % 9; a }) + 1) % 20)?;
        u.put(&values).to(0 % u.size(), (a + 2) % 20)?;
        let Some(&b) = list.get(pick(list, n)) else { return Err(bad("none")) };
        let mut b = b;
        u.accumulate(&values, Op::Sum).to(pick(list, ({ a = (a + 1) % 9; a })) % u.size(), (((a + a) % 13) + 3) % 20)?;
        let mut a = a;
        u.put([((by(0) + by(u.rank())) % 13) as u64]).to(b % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_61(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(u[15] as usize % u.size(), (small(b)? + 1) % 20)?;
        all.sort();
        a ^= ((all.pop().unwrap_or(4) + a) % 13) % 4;
        match list.len() % 3 {
            0 => {
                u.put(0..2).to(b % u.size(), (b + 2) % 20)?;
            }
            1 if rest.next().is_some() => {
                u.put(0..2).to(list.len() % u.size(), (k + 3) % 20)?;
                u.put([u[16], 4]).to(a % u.size(), (k + 4) % 20)?;
            }
            _ => {
                u.put([u[23], 5]).to(all.pop().unwrap_or(0) % u.size(), (((b + u.rank()) % 13) + 5) % 20)?;
            }
        }
        u.put([6]).to(((b + b) % 13) % u.size(), (k + 6) % 20)?;
        Ok(())
    }
    sliced drawn_62(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < u.rank() % 4 {
            w1 += 1;
            if rest.next().is_some() {
                u.put(&values).to(a % u.size(), (list.len() + 2) % 20)?;
            } else {
                let Some(&b) = list.get(by(u.rank())) else { return Ok(()) };
                let mut b = b;
            }
        }
        u.put(&values).to(n % u.size(), (n + 3) % 20)?;
        let _ = rest.next().is_some() || a > 1;
        let _checked = small(b)?;
        u.put(0..2).to(pick(list, small(list.len())?) % u.size(), (1 + 4) % 20)?;
        u.put([({ a = (a + 1) % 9; a }) as u64]).to(a % u.size(), (b + 5) % 20)?;
        Ok(())
    }
    sliced drawn_63(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(small(({ a = (a + 2) % 9; a }))? % u.size(), (u.rank() + 1) % 20)?;
        match all.pop().unwrap_or(3) % 3 {
            0 => {
                b = small(by(n))? % 13;
                u.put([2]).to(((pick(list, 6) + ((list.len() + 2) % 13)) % 13) % u.size(), (b + 2) % 20)?;
            }
            1 if all.pop().unwrap_or(1) > 4 => {
                let _checked = small(((u.rank() + 0) % 13))?;
                let mut w3 = 0;
                'l3: while w3 < all.pop().unwrap_or(1) % 4 {
                    w3 += 1;
                    u.put(&values).to(((pick(list, 8) + small(3)?) % 13) % u.size(), (small(b)? + 4) % 20)?;
                }
            }
            _ => {
                let mut a = rest.next().unwrap_or(4);
            }
        }
        let Some(&b) = list.get(b) else { return Ok(()) };
        let mut b = b;
        u.accumulate(0..2, Op::Sum).to(n % u.size(), (u.rank() + 5) % 20)?;
        if 2 > 7 {
            if let Some(&(mut a)) = list.get(all.pop().unwrap_or(3)) {
                a ^= b % 4;
            }
        }
        u.put([6]).to(small(({ a = (a + 2) % 9; a }))? % u.size(), (n + 6) % 20)?;
        Ok(())
    }
    sliced drawn_64(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(part.clone(), Op::Sum).to(({ a = (a + 2) % 9; a }) % u.size(), (((a + n) % 13) + 1) % 20)?;
        u.accumulate(0..2, Op::Sum).to(rest.next().unwrap_or(1) % u.size(), (n + 2) % 20)?;
        u.put(0..2).to(u.rank() % u.size(), (((b + a) % 13) + 3) % 20)?;
        let mut w4 = 0;
        'l4: while w4 < list.len() % 4 {
            w4 += 1;
            if rest.next().is_some() { return Ok(()); }
        }
        if rest.next().is_some() {
            u.put(&values).to(rest.next().unwrap_or(1) % u.size(), (b + 5) % 20)?;
            values.push(u[6]);
        } else {
            if small(n)? % 2 == 0 {
                let mut w6 = 0;
                'l6: while w6 < all.pop().unwrap_or(1) % 4 {
                    w6 += 1;
                    let _ = (b > 7 || rest.next().is_some()) && (b > 0 || list.len() % 2 == 0);
                }
            } else {
                u.accumulate(0..2, Op::Sum).to(u.rank() % u.size(), (a + 7) % 20)?;
            }
        }
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        u.put([8 as u64]).to(b % u.size(), (3 + 8) % 20)?;
        Ok(())
    }
    sliced drawn_65(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([u[3], 1], Op::Sum).to(small(a)? % u.size(), (list.len() + 1) % 20)?;
        if rest.next().is_some() {
            u[small(((k + a) % 13))? % 24] += k as u64;
            u[rest.next().unwrap_or(3) % 24] += n as u64;
        }
        let Some(&b) = list.get(b) else { panic!("none") };
        let mut b = b;
        'l2: for i in 0..((u.rank() + a) % 13) % 4 {
            if matches!(5 % 3, 0 | 2) {
                b = all.pop().unwrap_or(3) % 13;
            } else {
                u.put([u[10], 3]).to(pick(list, u.rank()) % u.size(), (u.rank() + 3) % 20)?;
            }
        }
        u[6 % 24] += ({ a = (a + 2) % 9; a }) as u64;
        u.put([u.rank() as u64]).to(pick(list, rest.next().unwrap_or(1)) % u.size(), (8 + 4) % 20)?;
        Ok(())
    }
    sliced drawn_66(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(u.rank()) else { return Ok(()) };
        let mut b = b;
        let mut b = n;
        let Some(&b) = list.get(a) else { return Ok(()) };
        let mut b = b;
        u.accumulate([u[2], 1], Op::Sum).to(a % u.size(), (all.pop().unwrap_or(0) + 1) % 20)?;
        match ((n + list.len()) % 13) % 3 {
            0 => {
                all.truncate(by(7));
                'l2: for i in 0..n % 4 {
                    if (all.pop().unwrap_or(3) > 3 && ({ a = (a + 3) % 9; a }) > 5) { continue 'l2; }
                    a ^= by(((list.len() + b) % 13)) % 4;
                }
            }
            1 if b % 2 == 0 => {
                let _ = (1 > 7 && rest.next().unwrap_or(4) > 1) && (rest.next().unwrap_or(3) > 6 && ((list.len() + u.rank()) % 13) > 7);
                u.put(part.clone()).to(u.rank() % u.size(), (((6 + n) % 13) + 3) % 20)?;
            }
            _ => {
                part.end += 1;
            }
        }
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        u.put(part.clone()).to(small(u.rank())? % u.size(), (rest.next().unwrap_or(4) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_67(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(pick(list, a) % u.size(), (by(list.len()) + 1) % 20)?;
        'l2: for i in 0..b % 4 {
            u.accumulate([small(((list.len() + b) % 13))? as u64], Op::Sum).to(u.rank() % u.size(), (5 + 3) % 20)?;
            if all.contains(&2) { Err(bad("drawn"))?; }
        }
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(4)) {
            u.put(part.clone()).to(b % u.size(), (((u.rank() + n) % 13) + 4) % 20)?;
            let Some(&b) = list.get(n) else { return Ok(()) };
            let mut b = b;
        }
        u.put(0..2).to(by(pick(list, n)) % u.size(), (({ a = (a + 1) % 9; a }) + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_68(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if matches!(3 % 3, 0 | 2) {
            let _ = rest.next().is_some() && matches!(b % 3, 0 | 2);
        }
        match 2 % 3 {
            0 => {
                u.put([u[20], 1]).to(by(a) % u.size(), (({ a = (a + 1) % 9; a }) + 1) % 20)?;
                all.push(by(list.len()));
            }
            1 if all.pop().unwrap_or(1) > 5 => {
                match rest.next().unwrap_or(1) % 3 {
                    0 => {
                        u.put(&values).to(1 % u.size(), (small(list.len())? + 2) % 20)?;
                    }
                    1 if k > 7 => {
                        a = u.rank() % 13;
                    }
                    _ => {
                        u.put(&values).to(k % u.size(), (k + 3) % 20)?;
                        u.put(0..2).to(a % u.size(), (n + 4) % 20)?;
                    }
                }
            }
            _ => {
                let mut w5 = 0;
                'l5: while w5 < a % 4 {
                    w5 += 1;
                    let mut a = b;
                }
                a = u.rank() % 13;
            }
        }
        let mut b = ((n + k) % 13);
        if let Some(&(mut a)) = list.get(n) {
            u.put(part.clone()).to(b % u.size(), (pick(list, n) + 6) % 20)?;
        }
        u.put(0..2).to(list.len() % u.size(), (((1 + a) % 13) + 7) % 20)?;
        u.put(&values).to(((((k + b) % 13) + pick(list, n)) % 13) % u.size(), (((2 + list.len()) % 13) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_69(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((b > 0 || k > 0) || (by(b) > 4 && rest.next().is_some())) {
            let _checked = small(n)?;
        }
        u[((b + b) % 13) % 24] += ((rest.next().unwrap_or(1) + n) % 13) as u64;
        let _ = matches!(3 % 3, 0 | 2) && all.pop().unwrap_or(0) % 2 == 0;
        values.push(u[6]);
        let mut a = small(pick(list, k))?;
        u.put([u.rank() as u64]).to(b % u.size(), (n + 1) % 20)?;
        Ok(())
    }
    sliced drawn_70(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..b % 4 {
            if u.rank() > 7 { return Err(bad("drawn")); }
            u[8 % 24] += pick(list, 5) as u64;
        }
        match list.len() % 3 {
            0 => {
                if let Some(&(mut a)) = list.get(k) {
                    let _ = n > 4 || rest.next().is_some();
                }
            }
            1 if rest.next().unwrap_or(3) > 6 => {
                u.put([u[4], 2]).to(({ a = (a + 1) % 9; a }) % u.size(), (list.len() + 2) % 20)?;
            }
            _ => {
                u.put(&values).to(n % u.size(), (({ a = (a + 2) % 9; a }) + 3) % 20)?;
            }
        }
        u.accumulate(&values, Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (rest.next().unwrap_or(2) + 4) % 20)?;
        let Some(&b) = list.get(u.rank()) else { return Err(bad("none")) };
        let mut b = b;
        u.put(&values).to(rest.next().unwrap_or(3) % u.size(), (((n + 5) % 13) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_71(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = pick(list, rest.next().unwrap_or(4));
        if (((u.rank() + b) % 13) > 4 || k > 0) {
            let _ = n > 6 && list.len() % 2 == 0;
        } else {
            let mut w1 = 0;
            'l1: while w1 < n % 4 {
                w1 += 1;
                if let Some(&(mut a)) = list.get(a) {
                    u.put(part.clone()).to(by(7) % u.size(), (list.len() + 2) % 20)?;
                }
            }
        }
        b ^= k % 4;
        small(a)?;
        if rest.next().is_some() {
            u.put([n as u64]).to(pick(list, small(list.len())?) % u.size(), (n + 3) % 20)?;
            let _ = 2 % 2 == 0 || rest.next().is_some();
        }
        let _ = (b > 2 && k % 2 == 0) && all.contains(&2);
        u.put([u[10], 4]).to(a % u.size(), (b + 4) % 20)?;
        Ok(())
    }
    sliced drawn_72(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..u.rank() % 4 {
            validate(list)?;
            'l2: for i in 0..b % 4 {
                b ^= rest.next().unwrap_or(3) % 4;
                if let Some(&(mut a)) = list.get(((b + u.rank()) % 13)) {
                    all.truncate(small(n)?);
                    validate(list)?;
                }
            }
        }
        u.put([u[18], 3]).to(k % u.size(), (b + 3) % 20)?;
        let mut w4 = 0;
        'l4: while w4 < b % 4 {
            w4 += 1;
            u.put(part.clone()).to(k % u.size(), (b + 5) % 20)?;
        }
        u.put([pick(list, 0) as u64]).to(small(all.pop().unwrap_or(2))? % u.size(), (k + 6) % 20)?;
        u.put([((by(list.len()) + k) % 13) as u64]).to(((((k + k) % 13) + ((a + a) % 13)) % 13) % u.size(), (small(u.rank())? + 7) % 20)?;
        u.put([8]).to(n % u.size(), (({ a = (a + 1) % 9; a }) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_73(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[9], 1]).to(pick(list, a) % u.size(), (a + 1) % 20)?;
        u.accumulate([2], Op::Sum).to(pick(list, n) % u.size(), (all.pop().unwrap_or(4) + 2) % 20)?;
        u.put(0..2).to(a % u.size(), (b + 3) % 20)?;
        u.put([u[0], 4]).to(k % u.size(), (small(n)? + 4) % 20)?;
        let mut b = rest.next().unwrap_or(1);
        u[b % 24] += a as u64;
        u.put(0..2).to(4 % u.size(), (a + 5) % 20)?;
        Ok(())
    }
    sliced drawn_74(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        ensure!(8 < 12, "great");
        let mut w1 = 0;
        'l1: while w1 < a % 4 {
            w1 += 1;
            a ^= rest.next().unwrap_or(0) % 4;
        }
        if let Some(&(mut a)) = list.get(b) {
            u.put(part.clone()).to(u.rank() % u.size(), (list.len() + 2) % 20)?;
            b ^= ((u.rank() + ((b + a) % 13)) % 13) % 4;
        }
        all.push(a);
        if rest.next().is_some() {
            u[b % 24] += 2 as u64;
            u.put([rest.next().unwrap_or(0) as u64]).to(by(list.len()) % u.size(), (by(n) + 3) % 20)?;
        } else {
            u.put([4]).to(by(a) % u.size(), (b + 4) % 20)?;
        }
        u.accumulate([u[2], 5], Op::Sum).to(b % u.size(), (a + 5) % 20)?;
        u.put(part.clone()).to(small(n)? % u.size(), (pick(list, a) + 6) % 20)?;
        Ok(())
    }
    sliced drawn_75(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        all.push(b);
        let Some(&b) = list.get(((8 + a) % 13)) else { return Err(bad("none")) };
        let mut b = b;
        a = b % 13;
        let mut a = b;
        u.accumulate([u[23], 1], Op::Sum).to(list.len() % u.size(), (small(b)? + 1) % 20)?;
        Ok(())
    }
    sliced drawn_76(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (pick(list, 6) % 2 == 0 && ((a + u.rank()) % 13) % 2 == 0) { return Err(bad("drawn")); }
        let mut a = u.rank();
        u.put(&values).to(a % u.size(), (all.pop().unwrap_or(2) + 1) % 20)?;
        u.put([a as u64]).to(k % u.size(), (b + 2) % 20)?;
        u.put([3]).to(b % u.size(), (a + 3) % 20)?;
        Ok(())
    }
    sliced drawn_77(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..((k + a) % 13) % 4 {
            let mut w2 = 0;
            'l2: while w2 < pick(list, a) % 4 {
                w2 += 1;
                u.put(0..2).to(4 % u.size(), (a + 3) % 20)?;
            }
            u[({ a = (a + 1) % 9; a }) % 24] += b as u64;
        }
        if u.rank() % 2 == 0 {
            if by(2) > 6 { return Err(bad("drawn")); }
            u.accumulate([((u.rank() + pick(list, k)) % 13) as u64], Op::Sum).to(({ a = (a + 1) % 9; a }) % u.size(), (a + 4) % 20)?;
        }
        u.put([u[10], 5]).to(all.pop().unwrap_or(0) % u.size(), (k + 5) % 20)?;
        let mut w6 = 0;
        'l6: while w6 < list.len() % 4 {
            w6 += 1;
            let mut w7 = 0;
            'l7: while w7 < n % 4 {
                w7 += 1;
                a ^= ({ a = (a + 1) % 9; a }) % 4;
            }
        }
        u.put([({ a = (a + 1) % 9; a }) as u64]).to(u.rank() % u.size(), (a + 8) % 20)?;
        Ok(())
    }
    sliced drawn_78(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(n) else { panic!("none") };
        let mut b = b;
        all.truncate(((b + a) % 13));
        values.push(u[6]);
        part.end += 1;
        u.put(0..2).to(((list.len() + a) % 13) % u.size(), (a + 1) % 20)?;
        Ok(())
    }
    dynamic drawn_79(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[all.pop().unwrap_or(2) % 24] += rest.next().unwrap_or(3) as u64;
        if rest.next().is_some() {
            ensure!(a < 12, "great");
            let Some(&b) = list.get(k) else { panic!("none") };
            let mut b = b;
        }
        u.put([u[20], 1]).to(b % u.size(), (b + 1) % 20)?;
        match b % 3 {
            0 => {
                match by(a) % 3 {
                    0 => {
                        u[rest.next().unwrap_or(4) % 24] += ({ a = (a + 2) % 9; a }) as u64;
                    }
                    1 if pick(list, n) > 4 => {
                        u.put(0..2).to(b % u.size(), (n + 2) % 20)?;
                        small(list.len())?;
                    }
                    _ => {
                        small(({ a = (a + 3) % 9; a }))?;
                        u.put(0..2).to(n % u.size(), (b + 3) % 20)?;
                    }
                }
            }
            1 if ({ a = (a + 2) % 9; a }) % 2 == 0 => {
                u.put(&values).to(k % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
            }
            _ => {
                u.accumulate([small(a)? as u64], Op::Sum).to(((a + small(a)?) % 13) % u.size(), (rest.next().unwrap_or(0) + 5) % 20)?;
            }
        }
        u.put(0..2).to(b % u.size(), (b + 6) % 20)?;
        Ok(())
    }
    sliced drawn_80(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (rest.next().unwrap_or(0) % 2 == 0 && ((b + list.len()) % 13) > 5) { return Err(bad("drawn")); }
        u.accumulate([a as u64], Op::Sum).to(by(8) % u.size(), (((n + list.len()) % 13) + 1) % 20)?;
        if (pick(list, k) > 5 && n % 2 == 0) {
            part.start = (part.start + 1) % part.end;
        }
        let _ = by(a) > 7 || all.contains(&4);
        u.put(&values).to(a % u.size(), (rest.next().unwrap_or(2) + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_81(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(({ a = (a + 3) % 9; a })) {
            match a % 3 {
                0 => {
                    let mut a = a;
                    u.put([u[5], 1]).to(b % u.size(), (((a + u.rank()) % 13) + 1) % 20)?;
                }
                1 if ((5 + 4) % 13) % 2 == 0 => {
                    u.accumulate([u[14], 2], Op::Sum).to(by(b) % u.size(), (b + 2) % 20)?;
                    let mut a = pick(list, pick(list, b));
                }
                _ => {
                    if b > 0 { Err(bad("drawn"))?; }
                    u[list.len() % 24] += b as u64;
                }
            }
            let mut w3 = 0;
            'l3: while w3 < ({ a = (a + 3) % 9; a }) % 4 {
                w3 += 1;
                b = n % 13;
            }
        }
        u.put([all.pop().unwrap_or(2) as u64]).to(small(((n + a) % 13))? % u.size(), (((k + n) % 13) + 4) % 20)?;
        u.put(part.clone()).to(by(({ a = (a + 3) % 9; a })) % u.size(), (a + 5) % 20)?;
        u.put(&values).to(small(a)? % u.size(), (b + 6) % 20)?;
        values.push(u[6]);
        ensure!(a < 12, "great");
        u.accumulate(0..2, Op::Sum).to(0 % u.size(), (all.pop().unwrap_or(3) + 7) % 20)?;
        Ok(())
    }
    dynamic drawn_82(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (rest.next().is_some() && a > 0) {
            a ^= small(b)? % 4;
            u.put([b as u64]).to(u.rank() % u.size(), (pick(list, k) + 1) % 20)?;
        } else {
            'l2: for i in 0..5 % 4 {
                'l3: for i in 0..rest.next().unwrap_or(0) % 4 {
                    u.put([a as u64]).to(7 % u.size(), (by(5) + 4) % 20)?;
                }
            }
        }
        u.put(&values).to(u.rank() % u.size(), (4 + 5) % 20)?;
        let mut a = a;
        u.put([k as u64]).to(n % u.size(), (small(k)? + 6) % 20)?;
        match ((b + b) % 13) % 3 {
            0 => {
                let Some(&b) = list.get(small(a)?) else { panic!("none") };
                let mut b = b;
            }
            1 if rest.next().is_some() => {
                if matches!(a % 3, 0 | 2) {
                    u.put([7]).to(b % u.size(), (all.pop().unwrap_or(0) + 7) % 20)?;
                }
            }
            _ => {
                small(pick(list, a))?;
                u.accumulate([8], Op::Sum).to(a % u.size(), (by(k) + 8) % 20)?;
            }
        }
        u.put([u[7], 9]).to(((b + b) % 13) % u.size(), (n + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_83(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= ({ a = (a + 1) % 9; a }) % 4;
        let _checked = small(((k + list.len()) % 13))?;
        'l1: for i in 0..b % 4 {
            match ({ a = (a + 1) % 9; a }) % 3 {
                0 => {
                    let _ = n > 5 || (a > 7 && rest.next().is_some());
                    if rest.next().is_some() { break 'l1; }
                }
                1 if rest.next().is_some() => {
                    part.start = (part.start + 1) % part.end;
                }
                _ => {
                    if rest.next().is_some() { return Err(bad("drawn")); }
                    u.put([u[14], 2]).to(b % u.size(), (by(b) + 2) % 20)?;
                }
            }
        }
        match ((k + n) % 13) % 3 {
            0 => {
                u.put(&values).to(k % u.size(), (list.len() + 3) % 20)?;
            }
            1 if rest.next().is_some() => {
                if u[6] > 150 {
                    a = pick(list, ((8 + n) % 13)) % 13;
                    u.put(0..2).to(n % u.size(), (rest.next().unwrap_or(0) + 4) % 20)?;
                } else {
                    u.accumulate(&values, Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (n + 5) % 20)?;
                }
            }
            _ => {
                u.put([u[17], 6]).to(small(b)? % u.size(), (((b + a) % 13) + 6) % 20)?;
            }
        }
        u.put([7]).to(u[2] as usize % u.size(), (b + 7) % 20)?;
        Ok(())
    }
    sliced drawn_84(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[4 % 24] += rest.next().unwrap_or(4) as u64;
        if all.contains(&2) { Err(bad("drawn"))?; }
        u.put([u[2], 1]).to(list.len() % u.size(), (({ a = (a + 2) % 9; a }) + 1) % 20)?;
        u.put(part.clone()).to(list.len() % u.size(), (a + 2) % 20)?;
        rest.next();
        u.put([rest.next().unwrap_or(0) as u64]).to(rest.next().unwrap_or(0) % u.size(), (k + 3) % 20)?;
        Ok(())
    }
    sliced drawn_85(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = b > 3 && u.rank() > 7;
        'l1: for i in 0..a % 4 {
            u.put([u[6], 2]).to(rest.next().unwrap_or(3) % u.size(), (k + 2) % 20)?;
        }
        u.accumulate([u[1], 3], Op::Sum).to(list.len() % u.size(), (small(1)? + 3) % 20)?;
        u.put([4 as u64]).to(b % u.size(), (n + 4) % 20)?;
        Ok(())
    }
    sliced drawn_86(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if 7 > 0 {
            u.put(&values).to(8 % u.size(), (small(a)? + 1) % 20)?;
        }
        let mut w2 = 0;
        'l2: while w2 < u.rank() % 4 {
            w2 += 1;
            validated(list, &u[..])?;
        }
        u.accumulate([u[20], 3], Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (pick(list, b) + 3) % 20)?;
        u.put(part.clone()).to(k % u.size(), (pick(list, a) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_87(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(k % u.size(), (n + 1) % 20)?;
        u.put(&values).to(pick(list, a) % u.size(), (b + 2) % 20)?;
        match n % 3 {
            0 => {
                'l3: for i in 0..k % 4 {
                    ensure!(b < 12, "great");
                }
            }
            1 if pick(list, a) > 1 => {
                u.put([all.pop().unwrap_or(3) as u64]).to(all.pop().unwrap_or(4) % u.size(), (by(7) + 4) % 20)?;
            }
            _ => {
                validate(list)?;
            }
        }
        b = u.rank() % 13;
        if k > 7 {
            u.accumulate(&values, Op::Sum).to(pick(list, by(2)) % u.size(), (((8 + b) % 13) + 5) % 20)?;
            let mut b = all.pop().unwrap_or(4);
        }
        u.put([u[22], 6]).to(list.len() % u.size(), (rest.next().unwrap_or(1) + 6) % 20)?;
        Ok(())
    }
    sliced drawn_88(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if b > 2 {
            b ^= ({ a = (a + 2) % 9; a }) % 4;
        }
        part.end += 1;
        let _ = rest.next().is_some() || u[12] > 150;
        if a % 2 == 0 { return Err(bad("drawn")); }
        u.put([1]).to(a % u.size(), (b + 1) % 20)?;
        'l2: for i in 0..u.rank() % 4 {
            if let Some(&(mut a)) = list.get(((b + b) % 13)) {
                u[by(a) % 24] += 8 as u64;
                b = a % 13;
            }
            if ({ a = (a + 2) % 9; a }) > 3 {
                values[0] = u[5];
                a = a % 13;
            }
        }
        u.put([u.rank() as u64]).to(((b + small(k)?) % 13) % u.size(), (b + 3) % 20)?;
        Ok(())
    }
    sliced drawn_89(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(list.len()) {
            u.put([u[3], 1]).to(b % u.size(), (0 + 1) % 20)?;
            let mut a = a;
        }
        'l2: for i in 0..k % 4 {
            if (a > 2 && rest.next().is_some()) {
                'l3: for i in 0..((a + a) % 13) % 4 {
                    let _ = small(list.len())? > 0 || all.contains(&4);
                }
                a = b % 13;
            } else {
                u.put(0..2).to(k % u.size(), (((list.len() + a) % 13) + 4) % 20)?;
            }
        }
        u[all.pop().unwrap_or(0) % 24] += ((all.pop().unwrap_or(4) + ((a + 3) % 13)) % 13) as u64;
        u[({ a = (a + 3) % 9; a }) % 24] += pick(list, pick(list, 3)) as u64;
        u.put(0..2).to(a % u.size(), (all.pop().unwrap_or(4) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_90(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b ^= pick(list, u.rank()) % 4;
        u.accumulate([u[21], 1], Op::Sum).to(by(list.len()) % u.size(), (8 + 1) % 20)?;
        'l2: for i in 0..n % 4 {
            u[((((k + 5) % 13) + a) % 13) % 24] += small(b)? as u64;
            u.accumulate([({ a = (a + 1) % 9; a }) as u64], Op::Sum).to(a % u.size(), (by(a) + 3) % 20)?;
        }
        let mut a = 2;
        u.put([u[19], 4]).to(a % u.size(), (n + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_91(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if matches!(a % 3, 0 | 2) {
            let Some(&b) = list.get(small(a)?) else { panic!("none") };
            let mut b = b;
            b = pick(list, ({ a = (a + 3) % 9; a })) % 13;
        } else {
            if all.pop().unwrap_or(4) > 7 {
                if matches!(3 % 3, 0 | 2) {
                    if ({ a = (a + 3) % 9; a }) > 3 { return Err(bad("drawn")); }
                    let mut b = ((b + a) % 13);
                }
            }
        }
        let Some(&b) = list.get(rest.next().unwrap_or(3)) else { panic!("none") };
        let mut b = b;
        u[((((k + 3) % 13) + all.pop().unwrap_or(4)) % 13) % 24] += rest.next().unwrap_or(2) as u64;
        validate(list)?;
        let Some(&b) = list.get(a) else { return Ok(()) };
        let mut b = b;
        u.accumulate(&values, Op::Sum).to(a % u.size(), (all.pop().unwrap_or(2) + 1) % 20)?;
        Ok(())
    }
    sliced drawn_92(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(n % u.size(), (rest.next().unwrap_or(1) + 1) % 20)?;
        let _ = u.rank() > 0 || (list.len() > 5 || 0 > 6);
        b ^= by(a) % 4;
        u.put([((b + a) % 13) as u64]).to(u.rank() % u.size(), (a + 2) % 20)?;
        if ({ a = (a + 3) % 9; a }) > 0 {
            all.sort();
        }
        if a > 7 {
            if all.contains(&2) { return Err(bad("drawn")); }
        } else {
            if rest.next().is_some() {
                let Some(&b) = list.get(((n + a) % 13)) else { return Ok(()) };
                let mut b = b;
                let mut b = by(k);
            }
        }
        u.put([u[18], 3]).to(a % u.size(), (((u.rank() + k) % 13) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_93(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().unwrap_or(1) > 6 {
            u.put([1]).to(n % u.size(), (k + 1) % 20)?;
        } else {
            'l2: for i in 0..all.pop().unwrap_or(3) % 4 {
                if matches!(3 % 3, 0 | 2) { continue 'l2; }
            }
        }
        if let Some(&(mut a)) = list.get(a) {
            u.put(&values).to(((by(list.len()) + ((b + k) % 13)) % 13) % u.size(), (k + 3) % 20)?;
            'l4: for i in 0..b % 4 {
                b = a % 13;
                match all.pop().unwrap_or(1) % 3 {
                    0 => {
                        u.accumulate([u[1], 5], Op::Sum).to(small(b)? % u.size(), (pick(list, a) + 5) % 20)?;
                    }
                    1 if b > 7 => {
                        u.put([b as u64]).to(pick(list, b) % u.size(), (b + 6) % 20)?;
                        b ^= rest.next().unwrap_or(1) % 4;
                    }
                    _ => {
                        a ^= k % 4;
                    }
                }
            }
        }
        let _checked = small(2)?;
        u.put([u[12], 7]).to(a % u.size(), (((a + u.rank()) % 13) + 7) % 20)?;
        Ok(())
    }
    sliced drawn_94(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([((a + b) % 13) as u64]).to(k % u.size(), (((0 + b) % 13) + 1) % 20)?;
        let mut b = n;
        if all.pop().unwrap_or(4) % 2 == 0 {
            u.put([u[14], 2]).to(b % u.size(), (pick(list, list.len()) + 2) % 20)?;
        }
        if list.len() > 1 { return Err(bad("drawn")); }
        values.push(u[6]);
        u.accumulate([u[0], 3], Op::Sum).to(((u.rank() + ({ a = (a + 1) % 9; a })) % 13) % u.size(), (n + 3) % 20)?;
        Ok(())
    }
    sliced drawn_95(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(n) {
            u.accumulate([a as u64], Op::Sum).to(b % u.size(), (list.len() + 1) % 20)?;
            u.put([all.pop().unwrap_or(0) as u64]).to(k % u.size(), (u.rank() + 2) % 20)?;
        }
        'l3: for i in 0..((k + 4) % 13) % 4 {
            if (a > 3 && rest.next().is_some()) { return Ok(()); }
            'l4: for i in 0..all.pop().unwrap_or(4) % 4 {
                'l5: for i in 0..all.pop().unwrap_or(1) % 4 {
                    u[small(((k + 3) % 13))? % 24] += a as u64;
                    part.start = (part.start + 1) % part.end;
                }
            }
        }
        u.put([u[19], 6]).to(rest.next().unwrap_or(3) % u.size(), (a + 6) % 20)?;
        u.put([u[12], 7]).to(n % u.size(), (pick(list, b) + 7) % 20)?;
        Ok(())
    }
    sliced drawn_96(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..list.len() % 4 {
            let mut a = by(rest.next().unwrap_or(4));
        }
        a = ((u.rank() + n) % 13) % 13;
        if let Some(&(mut a)) = list.get(n) {
            if let Some(&(mut a)) = list.get(b) {
                u.accumulate(part.clone(), Op::Sum).to(u.rank() % u.size(), (small(b)? + 2) % 20)?;
            }
            values.push(u[6]);
        }
        if b % 2 == 0 { return Ok(()); }
        small(rest.next().unwrap_or(4))?;
        u.put(part.clone()).to(n % u.size(), (n + 3) % 20)?;
        u.put([u.rank() as u64]).to(((small(u.rank())? + k) % 13) % u.size(), (small(b)? + 4) % 20)?;
        Ok(())
    }
    sliced drawn_97(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(b % u.size(), (small(list.len())? + 1) % 20)?;
        if u.rank() % 2 == 0 {
            u.accumulate(part.clone(), Op::Sum).to(a % u.size(), (((2 + k) % 13) + 2) % 20)?;
            u.put([small(k)? as u64]).to(by(u.rank()) % u.size(), (a + 3) % 20)?;
        } else {
            ensure!(k < 12, "great");
        }
        b = rest.next().unwrap_or(1) % 13;
        u.put(0..2).to(by(a) % u.size(), (all.pop().unwrap_or(2) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_98(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match ((b + u.rank()) % 13) % 3 {
            0 => {
                let Some(&b) = list.get(k) else { return Ok(()) };
                let mut b = b;
            }
            1 if rest.next().is_some() => {
                u.put([u[18], 1]).to(4 % u.size(), (pick(list, list.len()) + 1) % 20)?;
                match 7 % 3 {
                    0 => {
                        u.put([u[1], 2]).to(b % u.size(), (list.len() + 2) % 20)?;
                        u.put([({ a = (a + 2) % 9; a }) as u64]).to(b % u.size(), (small(list.len())? + 3) % 20)?;
                    }
                    1 if list.len() > 3 => {
                        u.put([a as u64]).to(list.len() % u.size(), (a + 4) % 20)?;
                    }
                    _ => {
                        b = b % 13;
                    }
                }
            }
            _ => {
                if rest.next().is_some() { return Err(bad("drawn")); }
                'l5: for i in 0..u.rank() % 4 {
                    all.sort();
                    values.push(u[6]);
                }
            }
        }
        'l6: for i in 0..((k + u.rank()) % 13) % 4 {
            all.push(rest.next().unwrap_or(2));
        }
        validate(list)?;
        u.put(0..2).to(k % u.size(), (((u.rank() + k) % 13) + 7) % 20)?;
        Ok(())
    }
    dynamic drawn_99(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            a ^= a % 4;
            if matches!(list.len() % 3, 0 | 2) {
                'l1: for i in 0..b % 4 {
                    u.put([2]).to(small(a)? % u.size(), (((b + n) % 13) + 2) % 20)?;
                }
                if ((pick(list, n) > 1 || u.rank() > 0) && matches!(b % 3, 0 | 2)) {
                    u[rest.next().unwrap_or(1) % 24] += pick(list, small(b)?) as u64;
                }
            }
        }
        u.put([u[18], 3]).to(b % u.size(), (by(k) + 3) % 20)?;
        b = by(small(b)?) % 13;
        if ((list.len() + 7) % 13) % 2 == 0 {
            a = b % 13;
            let mut w4 = 0;
            'l4: while w4 < k % 4 {
                w4 += 1;
                if (matches!(a % 3, 0 | 2) && all.contains(&8)) {
                    let _ = b % 2 == 0 || all.contains(&0);
                }
            }
        } else {
            if matches!(a % 3, 0 | 2) { return Err(bad("drawn")); }
        }
        u.put([u[22], 5]).to(a % u.size(), (list.len() + 5) % 20)?;
        u.put([list.len() as u64]).to(((rest.next().unwrap_or(2) + b) % 13) % u.size(), (7 + 6) % 20)?;
        Ok(())
    }
    sliced drawn_100(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([rest.next().unwrap_or(3) as u64]).to(6 % u.size(), (({ a = (a + 3) % 9; a }) + 1) % 20)?;
        let mut w2 = 0;
        'l2: while w2 < all.pop().unwrap_or(0) % 4 {
            w2 += 1;
            'l3: for i in 0..k % 4 {
                let _ = ((a + k) % 13) > 3 && all.contains(&6);
                a = b % 13;
            }
        }
        let Some(&b) = list.get(k) else { return Err(bad("none")) };
        let mut b = b;
        let _ = rest.next().is_some() && all.contains(&7);
        u.put(&values).to(all.pop().unwrap_or(2) % u.size(), (((u.rank() + u.rank()) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_101(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((rest.next().is_some() && ((b + k) % 13) > 3) && 0 % 2 == 0) {
            if all.contains(&5) {
                all.truncate(small(a)?);
            } else {
                match k % 3 {
                    0 => {
                        u[b % 24] += all.pop().unwrap_or(2) as u64;
                    }
                    1 if a > 5 => {
                        u.put([u[17], 1]).to(b % u.size(), (0 + 1) % 20)?;
                        u[0 % 24] += b as u64;
                    }
                    _ => {
                        small(u.rank())?;
                    }
                }
            }
            if (all.pop().unwrap_or(1) % 2 == 0 && 3 > 1) {
                all.reverse();
            } else {
                match a % 3 {
                    0 => {
                        u.put([2]).to(rest.next().unwrap_or(0) % u.size(), (pick(list, a) + 2) % 20)?;
                    }
                    1 if by(a) % 2 == 0 => {
                        u.put(&values).to(((b + list.len()) % 13) % u.size(), (((b + list.len()) % 13) + 3) % 20)?;
                        u.put(part.clone()).to(1 % u.size(), (by(n) + 4) % 20)?;
                    }
                    _ => {
                        u.put(part.clone()).to(by(all.pop().unwrap_or(2)) % u.size(), (n + 5) % 20)?;
                    }
                }
            }
        }
        a ^= small(pick(list, b))? % 4;
        u.accumulate(part.clone(), Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (by(n) + 6) % 20)?;
        u.put(part.clone()).to(rest.next().unwrap_or(4) % u.size(), (a + 7) % 20)?;
        Ok(())
    }
    sliced drawn_102(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((k + u.rank()) % 13) % 2 == 0 { return Ok(()); }
        u.put([u[12], 1]).to(a % u.size(), (pick(list, b) + 1) % 20)?;
        'l2: for i in 0..3 % 4 {
            u[by(a) % 24] += ((1 + 3) % 13) as u64;
            if ({ a = (a + 1) % 9; a }) > 2 {
                u.put([3]).to(rest.next().unwrap_or(2) % u.size(), (u.rank() + 3) % 20)?;
                u.put([4]).to(((pick(list, b) + pick(list, a)) % 13) % u.size(), (k + 4) % 20)?;
            }
        }
        u.put(&values).to(b % u.size(), (all.pop().unwrap_or(4) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_103(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= all.pop().unwrap_or(1) % 4;
        u.put(&values).to(by(((n + b) % 13)) % u.size(), (((u.rank() + 2) % 13) + 1) % 20)?;
        part.start = (part.start + 1) % part.end;
        u[a % 24] += a as u64;
        u.put([({ a = (a + 2) % 9; a }) as u64]).to(a % u.size(), (b + 2) % 20)?;
        u.put([u[3], 3]).to(n % u.size(), (small(list.len())? + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_104(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = rest.next().is_some() || all.contains(&7);
        let mut w1 = 0;
        'l1: while w1 < ((k + b) % 13) % 4 {
            w1 += 1;
            let _ = (u.rank() > 5 && rest.next().is_some()) && matches!(b % 3, 0 | 2);
        }
        if let Some(&(mut a)) = list.get(b) {
            let Some(&b) = list.get(({ a = (a + 2) % 9; a })) else { return Err(bad("none")) };
            let mut b = b;
        }
        if u[14] > 150 { return Err(bad("drawn")); }
        u.accumulate([7 as u64], Op::Sum).to(((((a + a) % 13) + a) % 13) % u.size(), (((a + a) % 13) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_105(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([({ a = (a + 2) % 9; a }) as u64]).to(b % u.size(), (pick(list, b) + 1) % 20)?;
        ensure!(3 < 12, "great");
        all.reverse();
        u.accumulate(0..2, Op::Sum).to(n % u.size(), (rest.next().unwrap_or(1) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_106(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([b as u64]).to(small(({ a = (a + 1) % 9; a }))? % u.size(), (a + 1) % 20)?;
        match b % 3 {
            0 => {
                if list.len() > 4 {
                    let _ = rest.next().is_some() || ((a + b) % 13) > 4;
                }
            }
            1 if a > 3 => {
                if matches!(3 % 3, 0 | 2) {
                    let _ = a % 2 == 0 || pick(list, a) % 2 == 0;
                }
                if ((k + a) % 13) > 7 { return Err(bad("drawn")); }
            }
            _ => {
                if (all.contains(&7) || b > 5) {
                    let _ = rest.next().is_some() && a % 2 == 0;
                    u[all.pop().unwrap_or(0) % 24] += rest.next().unwrap_or(1) as u64;
                }
            }
        }
        u.put(&values).to(all.pop().unwrap_or(3) % u.size(), (by(b) + 2) % 20)?;
        u.put([3]).to(a % u.size(), (rest.next().unwrap_or(4) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_107(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            u.put([all.pop().unwrap_or(1) as u64]).to(pick(list, a) % u.size(), (((u.rank() + k) % 13) + 1) % 20)?;
        }
        u.put(part.clone()).to(a % u.size(), (b + 2) % 20)?;
        small(a)?;
        'l3: for i in 0..all.pop().unwrap_or(0) % 4 {
            u.put(0..2).to(rest.next().unwrap_or(4) % u.size(), (all.pop().unwrap_or(1) + 4) % 20)?;
            u.put(part.clone()).to(a % u.size(), (a + 5) % 20)?;
        }
        a ^= 5 % 4;
        u.put([all.pop().unwrap_or(2) as u64]).to(a % u.size(), (b + 6) % 20)?;
        Ok(())
    }
    sliced drawn_108(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        small(n)?;
        u.put(0..2).to(pick(list, small(u.rank())?) % u.size(), (u.rank() + 1) % 20)?;
        let mut a = all.pop().unwrap_or(2);
        let Some(&b) = list.get(rest.next().unwrap_or(0)) else { return Ok(()) };
        let mut b = b;
        if (b > 4 || rest.next().is_some()) {
            let _ = all.contains(&4) && ({ a = (a + 3) % 9; a }) > 4;
            u.accumulate([({ a = (a + 2) % 9; a }) as u64], Op::Sum).to(rest.next().unwrap_or(2) % u.size(), (small(n)? + 2) % 20)?;
        } else {
            let _checked = small(((k + b) % 13))?;
        }
        match a % 3 {
            0 => {
                u.put(&values).to(rest.next().unwrap_or(4) % u.size(), (pick(list, u.rank()) + 3) % 20)?;
            }
            1 if n > 2 => {
                if let Some(&(mut a)) = list.get(a) {
                    b = 2 % 13;
                }
                u.put([u[1], 4]).to(5 % u.size(), (small(b)? + 4) % 20)?;
            }
            _ => {
                if (list.len() % 2 == 0 && rest.next().is_some()) { Err(bad("drawn"))?; }
                if let Some(&(mut a)) = list.get(b) {
                    u.put(&values).to(all.pop().unwrap_or(3) % u.size(), (a + 5) % 20)?;
                    if pick(list, b) > 7 { return Err(bad("drawn")); }
                }
            }
        }
        u.put([6]).to(4 % u.size(), (u.rank() + 6) % 20)?;
        Ok(())
    }
    sliced drawn_109(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([1], Op::Sum).to(small(a)? % u.size(), (a + 1) % 20)?;
        u.accumulate([a as u64], Op::Sum).to(u.rank() % u.size(), (((b + a) % 13) + 2) % 20)?;
        let _ = (k % 2 == 0 && rest.next().is_some()) || all.contains(&3);
        match small(b)? % 3 {
            0 => {
                let mut a = u.rank();
                if all.contains(&6) { return Err(bad("drawn")); }
            }
            1 if by(k) > 2 => {
                u[n % 24] += rest.next().unwrap_or(0) as u64;
                'l3: for i in 0..8 % 4 {
                    if (pick(list, k) > 1 && small(a)? > 3) { Err(bad("drawn"))?; }
                    b ^= rest.next().unwrap_or(4) % 4;
                }
            }
            _ => {
                u.put([((({ a = (a + 2) % 9; a }) + k) % 13) as u64]).to(pick(list, k) % u.size(), (rest.next().unwrap_or(2) + 4) % 20)?;
            }
        }
        match ((u.rank() + b) % 13) % 3 {
            0 => {
                b = b % 13;
                validate(list)?;
            }
            1 if u.rank() % 2 == 0 => {
                a = pick(list, ((n + a) % 13)) % 13;
            }
            _ => {
                u[small(rest.next().unwrap_or(1))? % 24] += all.pop().unwrap_or(2) as u64;
            }
        }
        u.put([5]).to(((1 + ((b + b) % 13)) % 13) % u.size(), (k + 5) % 20)?;
        Ok(())
    }
    sliced drawn_110(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if all.contains(&3) {
            if let Some(&(mut a)) = list.get(((b + n) % 13)) {
                let _ = all.contains(&5) || (small(u.rank())? > 6 || k % 2 == 0);
                u.accumulate([1], Op::Sum).to(n % u.size(), (k + 1) % 20)?;
            }
            if let Some(&(mut a)) = list.get(((n + b) % 13)) {
                let _ = (b % 2 == 0 && pick(list, list.len()) > 6) || small(u.rank())? > 3;
                small(2)?;
            }
        } else {
            all.truncate(pick(list, n));
        }
        let _ = rest.next().unwrap_or(4) > 0 || (by(k) > 5 || k > 2);
        b ^= b % 4;
        all.truncate(((k + 3) % 13));
        if ((a + k) % 13) > 2 {
            match a % 3 {
                0 => {
                    b ^= rest.next().unwrap_or(0) % 4;
                    a = k % 13;
                }
                1 if rest.next().is_some() => {
                    b = b % 13;
                }
                _ => {
                    if all.pop().unwrap_or(1) % 2 == 0 { return Err(bad("drawn")); }
                    let _ = all.contains(&1) && (n % 2 == 0 && ((n + n) % 13) > 5);
                }
            }
            if (all.contains(&0) || (rest.next().is_some() && rest.next().is_some())) {
                let _checked = small(((a + b) % 13))?;
            }
        }
        u.accumulate([b as u64], Op::Sum).to(by(by(0)) % u.size(), (all.pop().unwrap_or(1) + 2) % 20)?;
        u.put(part.clone()).to(n % u.size(), (u.rank() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_111(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[1 % 24] += rest.next().unwrap_or(4) as u64;
        let mut b = k;
        let mut a = a;
        u.accumulate([u[11], 1], Op::Sum).to(k % u.size(), (a + 1) % 20)?;
        Ok(())
    }
    sliced drawn_112(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= b % 4;
        all.truncate(a);
        'l1: for i in 0..u.rank() % 4 {
            u.put([2]).to(n % u.size(), (rest.next().unwrap_or(1) + 2) % 20)?;
            let Some(&b) = list.get(((a + a) % 13)) else { return Ok(()) };
            let mut b = b;
        }
        if all.contains(&2) { return Ok(()); }
        u[3 % 24] += a as u64;
        u.accumulate(&values, Op::Sum).to(b % u.size(), (b + 3) % 20)?;
        Ok(())
    }
    sliced drawn_113(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = all.pop().unwrap_or(3);
        u.put([1]).to(all.pop().unwrap_or(3) % u.size(), (k + 1) % 20)?;
        if let Some(&(mut a)) = list.get(b) {
            let Some(&b) = list.get(u.rank()) else { return Ok(()) };
            let mut b = b;
        }
        u.put([u[4], 2]).to(k % u.size(), (b + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_114(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        values[0] = u[5];
        let _ = all.contains(&3) || list.len() > 4;
        let Some(&b) = list.get(b) else { return Err(bad("none")) };
        let mut b = b;
        if let Some(&(mut a)) = list.get(pick(list, u.rank())) {
            u.put(&values).to(small(1)? % u.size(), (small(b)? + 1) % 20)?;
            u.put([u[22], 2]).to(n % u.size(), (k + 2) % 20)?;
        }
        u.put([b as u64]).to(u[15] as usize % u.size(), (a + 3) % 20)?;
        a = u.rank() % 13;
        u.put(part.clone()).to(b % u.size(), (n + 4) % 20)?;
        Ok(())
    }
    sliced drawn_115(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            u.put([((n + a) % 13) as u64]).to(a % u.size(), (all.pop().unwrap_or(1) + 1) % 20)?;
        }
        match b % 3 {
            0 => {
                u[a % 24] += b as u64;
            }
            1 if ((b + k) % 13) > 3 => {
                let Some(&b) = list.get(a) else { return Ok(()) };
                let mut b = b;
                all.sort();
            }
            _ => {
                let mut a = small(pick(list, 5))?;
            }
        }
        b ^= list.len() % 4;
        u.put(0..2).to(a % u.size(), (all.pop().unwrap_or(2) + 2) % 20)?;
        a = all.pop().unwrap_or(2) % 13;
        u.put(0..2).to(pick(list, ({ a = (a + 2) % 9; a })) % u.size(), (rest.next().unwrap_or(3) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_116(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _checked = small(b)?;
        small(((list.len() + list.len()) % 13))?;
        if all.contains(&6) {
            if k > 3 {
                u.put([1]).to(by(a) % u.size(), (rest.next().unwrap_or(0) + 1) % 20)?;
                if by(b) > 2 { return Err(bad("drawn")); }
            } else {
                if let Some(&(mut a)) = list.get(a) {
                    u.accumulate([u[17], 2], Op::Sum).to(b % u.size(), (small(b)? + 2) % 20)?;
                }
            }
        }
        if ((((a + k) % 13) > 3 && a > 4) && pick(list, k) > 1) {
            if rest.next().is_some() { return Err(bad("drawn")); }
            let mut b = a;
        }
        u.put([u[12], 3]).to(pick(list, list.len()) % u.size(), (k + 3) % 20)?;
        Ok(())
    }
    sliced drawn_117(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((5 + k) % 13) > 6 {
            if matches!(6 % 3, 0 | 2) {
                'l1: for i in 0..list.len() % 4 {
                    if (rest.next().is_some() || a > 4) { continue 'l1; }
                    u[k % 24] += 3 as u64;
                }
                if let Some(&(mut a)) = list.get(b) {
                    u.put([pick(list, u.rank()) as u64]).to(small(b)? % u.size(), (b + 2) % 20)?;
                }
            } else {
                'l3: for i in 0..pick(list, list.len()) % 4 {
                    a = small(rest.next().unwrap_or(4))? % 13;
                    u.put([u[18], 4]).to(((k + u.rank()) % 13) % u.size(), (list.len() + 4) % 20)?;
                }
            }
            u.put(&values).to(by(small(u.rank())?) % u.size(), (b + 5) % 20)?;
        }
        'l6: for i in 0..all.pop().unwrap_or(2) % 4 {
            let mut a = u.rank();
        }
        match k % 3 {
            0 => {
                let _ = matches!(3 % 3, 0 | 2) && b > 3;
                u.put([((by(a) + ({ a = (a + 1) % 9; a })) % 13) as u64]).to(u.rank() % u.size(), (0 + 7) % 20)?;
            }
            1 if 3 > 3 => {
                let Some(&b) = list.get(b) else { return Ok(()) };
                let mut b = b;
                let Some(&b) = list.get(all.pop().unwrap_or(0)) else { panic!("none") };
                let mut b = b;
            }
            _ => {
                u.accumulate([u[13], 8], Op::Sum).to(list.len() % u.size(), (by(a) + 8) % 20)?;
                let Some(&b) = list.get(n) else { panic!("none") };
                let mut b = b;
            }
        }
        'l9: for i in 0..list.len() % 4 {
            small(k)?;
            match ((a + k) % 13) % 3 {
                0 => {
                    if rest.next().is_some() { continue 'l9; }
                    u.put(&values).to(rest.next().unwrap_or(0) % u.size(), (a + 10) % 20)?;
                }
                1 if by(b) > 3 => {
                    u.accumulate(&values, Op::Sum).to(a % u.size(), (u.rank() + 11) % 20)?;
                    validated(list, &u[..])?;
                }
                _ => {
                    let mut b = small(u.rank())?;
                }
            }
        }
        u.put([b as u64]).to(by(pick(list, list.len())) % u.size(), (rest.next().unwrap_or(2) + 12) % 20)?;
        u.accumulate([13], Op::Sum).to(b % u.size(), (((list.len() + b) % 13) + 13) % 20)?;
        Ok(())
    }
    sliced drawn_118(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a = a % 13;
        u.accumulate([1], Op::Sum).to(list.len() % u.size(), (u.rank() + 1) % 20)?;
        u.accumulate([u.rank() as u64], Op::Sum).to(b % u.size(), (n + 2) % 20)?;
        u.put(part.clone()).to(a % u.size(), (u.rank() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_119(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(a % u.size(), (pick(list, b) + 1) % 20)?;
        a ^= small(a)? % 4;
        u.put(0..2).to(b % u.size(), (((a + 2) % 13) + 2) % 20)?;
        all.reverse();
        a = by(rest.next().unwrap_or(4)) % 13;
        u.put([3]).to(2 % u.size(), (pick(list, a) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_120(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([u[18], 1], Op::Sum).to(b % u.size(), (0 + 1) % 20)?;
        match all.pop().unwrap_or(1) % 3 {
            0 => {
                u.put(part.clone()).to(small(((b + u.rank()) % 13))? % u.size(), (pick(list, a) + 2) % 20)?;
                'l3: for i in 0..rest.next().unwrap_or(0) % 4 {
                    all.reverse();
                    if (rest.next().is_some() && k > 2) { return Err(bad("drawn")); }
                }
            }
            1 if rest.next().is_some() => {
                let mut a = rest.next().unwrap_or(0);
                u.accumulate(0..2, Op::Sum).to(k % u.size(), (rest.next().unwrap_or(2) + 4) % 20)?;
            }
            _ => {
                a ^= ((small(b)? + ((0 + list.len()) % 13)) % 13) % 4;
            }
        }
        ensure!(b < 12, "great");
        let Some(&b) = list.get(k) else { return Err(bad("none")) };
        let mut b = b;
        'l5: for i in 0..list.len() % 4 {
            'l6: for i in 0..rest.next().unwrap_or(3) % 4 {
                'l7: for i in 0..k % 4 {
                    let _checked = small(2)?;
                    b ^= by(rest.next().unwrap_or(4)) % 4;
                }
            }
        }
        if matches!(list.len() % 3, 0 | 2) {
            u.put([n as u64]).to(small(by(a))? % u.size(), (a + 8) % 20)?;
        } else {
            if rest.next().unwrap_or(2) > 5 {
                if let Some(&(mut a)) = list.get(rest.next().unwrap_or(0)) {
                    a ^= pick(list, list.len()) % 4;
                }
                'l9: for i in 0..pick(list, a) % 4 {
                    a ^= k % 4;
                    let mut a = k;
                }
            }
        }
        u.put(&values).to(list.len() % u.size(), (small(u.rank())? + 10) % 20)?;
        Ok(())
    }
    sliced drawn_121(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(a % u.size(), (list.len() + 1) % 20)?;
        validated(list, &u[..])?;
        'l2: for i in 0..5 % 4 {
            let Some(&b) = list.get(({ a = (a + 1) % 9; a })) else { return Err(bad("none")) };
            let mut b = b;
        }
        u.put(0..2).to(((((k + b) % 13) + small(u.rank())?) % 13) % u.size(), (k + 3) % 20)?;
        Ok(())
    }
    sliced drawn_122(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..n % 4 {
            let _ = k % 2 == 0 && (rest.next().is_some() && all.pop().unwrap_or(3) % 2 == 0);
            u[((4 + b) % 13) % 24] += pick(list, 3) as u64;
        }
        let mut w2 = 0;
        'l2: while w2 < b % 4 {
            w2 += 1;
            u.put([u[9], 3]).to(list.len() % u.size(), (k + 3) % 20)?;
        }
        u[all.pop().unwrap_or(2) % 24] += 4 as u64;
        validate(list)?;
        u.put(&values).to(k % u.size(), (1 + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_123(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (u[14] > 150 || matches!(b % 3, 0 | 2)) {
            if (5 > 2 && rest.next().is_some()) {
                u.put([1]).to(u[10] as usize % u.size(), (k + 1) % 20)?;
            } else {
                'l2: for i in 0..a % 4 {
                    u.put(0..2).to(all.pop().unwrap_or(3) % u.size(), (a + 3) % 20)?;
                    a ^= u.rank() % 4;
                }
            }
        }
        'l4: for i in 0..by(b) % 4 {
            let Some(&b) = list.get(by(u.rank())) else { return Ok(()) };
            let mut b = b;
            let _ = u.rank() % 2 == 0 || a % 2 == 0;
        }
        'l5: for i in 0..b % 4 {
            if matches!(list.len() % 3, 0 | 2) {
                a = ({ a = (a + 1) % 9; a }) % 13;
                u.accumulate([1 as u64], Op::Sum).to(small(all.pop().unwrap_or(0))? % u.size(), (by(b) + 6) % 20)?;
            } else {
                u.put(&values).to(((all.pop().unwrap_or(4) + k) % 13) % u.size(), (({ a = (a + 2) % 9; a }) + 7) % 20)?;
            }
            all.sort();
        }
        let _ = matches!(k % 3, 0 | 2) && rest.next().unwrap_or(0) % 2 == 0;
        u.put([u[23], 8]).to(list.len() % u.size(), (list.len() + 8) % 20)?;
        Ok(())
    }
    sliced drawn_124(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (n > 3 && all.contains(&3)) {
            if b % 2 == 0 {
                u.accumulate([list.len() as u64], Op::Sum).to(list.len() % u.size(), (((7 + k) % 13) + 1) % 20)?;
            }
        }
        ensure!(6 < 12, "great");
        let Some(&b) = list.get(by(k)) else { return Ok(()) };
        let mut b = b;
        u.put([2]).to(((n + b) % 13) % u.size(), (list.len() + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_125(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if k > 2 {
            if rest.next().is_some() {
                u.put([a as u64]).to(k % u.size(), (by(b) + 1) % 20)?;
            }
        }
        u[a % 24] += k as u64;
        values[0] = u[5];
        let mut w2 = 0;
        'l2: while w2 < pick(list, a) % 4 {
            w2 += 1;
            u[({ a = (a + 3) % 9; a }) % 24] += rest.next().unwrap_or(0) as u64;
        }
        u.put(0..2).to(pick(list, u[6] as usize) % u.size(), (k + 3) % 20)?;
        u.put(0..2).to(by(b) % u.size(), (b + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_126(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            if all.contains(&7) { Err(bad("drawn"))?; }
            validated(list, &u[..])?;
        } else {
            let Some(&b) = list.get(a) else { return Ok(()) };
            let mut b = b;
        }
        a = u.rank() % 13;
        u.put([u[16], 1]).to(b % u.size(), (b + 1) % 20)?;
        a ^= a % 4;
        match n % 3 {
            0 => {
                match 6 % 3 {
                    0 => {
                        part.start = (part.start + 1) % part.end;
                    }
                    1 if b > 6 => {
                        let _ = all.pop().unwrap_or(0) > 4 || list.len() % 2 == 0;
                        u.put([2]).to(b % u.size(), (((3 + n) % 13) + 2) % 20)?;
                    }
                    _ => {
                        a = all.pop().unwrap_or(2) % 13;
                    }
                }
                if (all.contains(&8) && matches!(b % 3, 0 | 2)) {
                    u.put([small(rest.next().unwrap_or(3))? as u64]).to(((k + 4) % 13) % u.size(), (all.pop().unwrap_or(1) + 3) % 20)?;
                }
            }
            1 if small(b)? > 5 => {
                if rest.next().is_some() { return Ok(()); }
                'l4: for i in 0..a % 4 {
                    let _checked = small(u.rank())?;
                }
            }
            _ => {
                b = pick(list, a) % 13;
                let mut b = list.len();
            }
        }
        u.put([u[5], 5]).to(((({ a = (a + 1) % 9; a }) + small(0)?) % 13) % u.size(), (k + 5) % 20)?;
        Ok(())
    }
    sliced drawn_127(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        part.end += 1;
        match list.len() % 3 {
            0 => {
                part.end += 1;
            }
            1 if ((7 + a) % 13) > 3 => {
                let mut a = rest.next().unwrap_or(3);
            }
            _ => {
                let Some(&b) = list.get(b) else { return Err(bad("none")) };
                let mut b = b;
                u.put(0..2).to(k % u.size(), (((u.rank() + k) % 13) + 1) % 20)?;
            }
        }
        'l2: for i in 0..small(list.len())? % 4 {
            if (small(5)? > 4 || small(b)? % 2 == 0) { return Err(bad("drawn")); }
        }
        let _ = matches!(k % 3, 0 | 2) && all.contains(&1);
        u.put([3]).to(({ a = (a + 1) % 9; a }) % u.size(), (((k + u.rank()) % 13) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_128(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([u[1], 1], Op::Sum).to(k % u.size(), (0 + 1) % 20)?;
        if all.contains(&1) {
            u.put([u[15], 2]).to(pick(list, u[13] as usize) % u.size(), (all.pop().unwrap_or(4) + 2) % 20)?;
            if (small(7)? % 2 == 0 || rest.next().is_some()) { return Ok(()); }
        }
        let _ = rest.next().is_some() || all.contains(&7);
        u.put([3]).to(small(all.pop().unwrap_or(4))? % u.size(), (a + 3) % 20)?;
        Ok(())
    }
    sliced drawn_129(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if by(7) % 2 == 0 { Err(bad("drawn"))?; }
        u.put(&values).to(small(list.len())? % u.size(), (3 + 1) % 20)?;
        'l2: for i in 0..b % 4 {
            'l3: for i in 0..1 % 4 {
                all.sort();
                a ^= ({ a = (a + 2) % 9; a }) % 4;
            }
            let mut w4 = 0;
            'l4: while w4 < by(k) % 4 {
                w4 += 1;
                u.put(&values).to(((all.pop().unwrap_or(4) + k) % 13) % u.size(), (({ a = (a + 1) % 9; a }) + 5) % 20)?;
            }
        }
        let _checked = small(a)?;
        validate(list)?;
        u.accumulate(0..2, Op::Sum).to(pick(list, b) % u.size(), (a + 6) % 20)?;
        Ok(())
    }
    sliced drawn_130(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[15], 1]).to(((n + a) % 13) % u.size(), (all.pop().unwrap_or(2) + 1) % 20)?;
        b = b % 13;
        u[all.pop().unwrap_or(3) % 24] += ((b + pick(list, b)) % 13) as u64;
        a ^= pick(list, list.len()) % 4;
        let mut w2 = 0;
        'l2: while w2 < k % 4 {
            w2 += 1;
            'l3: for i in 0..pick(list, n) % 4 {
                a = ({ a = (a + 1) % 9; a }) % 13;
            }
        }
        u.accumulate([small(all.pop().unwrap_or(1))? as u64], Op::Sum).to(u.rank() % u.size(), (u.rank() + 4) % 20)?;
        Ok(())
    }
    sliced drawn_131(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if k % 2 == 0 {
            u.put(0..2).to(a % u.size(), (small(b)? + 1) % 20)?;
        }
        let _ = (u.rank() % 2 == 0 && rest.next().is_some()) || by(b) > 5;
        if rest.next().is_some() {
            let mut w2 = 0;
            'l2: while w2 < ({ a = (a + 3) % 9; a }) % 4 {
                w2 += 1;
                if let Some(&(mut a)) = list.get(pick(list, list.len())) {
                    let _ = a > 1 && 6 > 4;
                    u.accumulate(&values, Op::Sum).to(all.pop().unwrap_or(1) % u.size(), (k + 3) % 20)?;
                }
            }
            u.put(&values).to(n % u.size(), (b + 4) % 20)?;
        }
        u.put([u[15], 5]).to(((a + ((u.rank() + n) % 13)) % 13) % u.size(), (((a + n) % 13) + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_132(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        all.reverse();
        u.put(&values).to(all.pop().unwrap_or(3) % u.size(), (({ a = (a + 1) % 9; a }) + 1) % 20)?;
        b ^= rest.next().unwrap_or(1) % 4;
        match ((u.rank() + b) % 13) % 3 {
            0 => {
                u.put([a as u64]).to(u.rank() % u.size(), (k + 2) % 20)?;
            }
            1 if rest.next().is_some() => {
                u[a % 24] += a as u64;
                let Some(&b) = list.get(b) else { panic!("none") };
                let mut b = b;
            }
            _ => {
                if rest.next().is_some() {
                    validated(list, &u[..])?;
                } else {
                    u.put([b as u64]).to(((small(a)? + list.len()) % 13) % u.size(), (({ a = (a + 2) % 9; a }) + 3) % 20)?;
                }
            }
        }
        u.put([4]).to(u.rank() % u.size(), (small(k)? + 4) % 20)?;
        let _ = matches!(a % 3, 0 | 2) || (rest.next().is_some() || by(k) > 2);
        u.put([0 as u64]).to(u.rank() % u.size(), (n + 5) % 20)?;
        Ok(())
    }
    sliced drawn_133(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(small(a)? % u.size(), (a + 1) % 20)?;
        let _ = all.pop().unwrap_or(0) % 2 == 0 || (rest.next().is_some() && rest.next().is_some());
        if rest.next().is_some() {
            let _ = all.contains(&7) || (rest.next().is_some() && ((list.len() + a) % 13) % 2 == 0);
        }
        if small(a)? > 3 {
            u[small(list.len())? % 24] += rest.next().unwrap_or(1) as u64;
        }
        u.put([2]).to(b % u.size(), (n + 2) % 20)?;
        Ok(())
    }
    sliced drawn_134(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[all.pop().unwrap_or(4) % 24] += small(b)? as u64;
        'l1: for i in 0..all.pop().unwrap_or(4) % 4 {
            b = ((({ a = (a + 1) % 9; a }) + ((u.rank() + a) % 13)) % 13) % 13;
            if by(a) % 2 == 0 {
                u.put(&values).to(({ a = (a + 3) % 9; a }) % u.size(), (list.len() + 2) % 20)?;
                part.end += 1;
            }
        }
        a = small(b)? % 13;
        u.put(&values).to(list.len() % u.size(), (rest.next().unwrap_or(1) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_135(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(pick(list, a)) else { panic!("none") };
        let mut b = b;
        let mut b = a;
        u.accumulate([list.len() as u64], Op::Sum).to(list.len() % u.size(), (pick(list, b) + 1) % 20)?;
        u.put(part.clone()).to(k % u.size(), (rest.next().unwrap_or(3) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_136(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match 4 % 3 {
            0 => {
                validate(list)?;
            }
            1 if rest.next().is_some() => {
                let mut w1 = 0;
                'l1: while w1 < by(k) % 4 {
                    w1 += 1;
                    all.truncate(by(n));
                }
            }
            _ => {
                let mut w2 = 0;
                'l2: while w2 < ({ a = (a + 2) % 9; a }) % 4 {
                    w2 += 1;
                    u.put(&values).to(by(a) % u.size(), (small(2)? + 3) % 20)?;
                }
            }
        }
        u.put([3 as u64]).to(pick(list, pick(list, a)) % u.size(), (((u.rank() + list.len()) % 13) + 4) % 20)?;
        'l5: for i in 0..by(a) % 4 {
            let _checked = small(a)?;
        }
        let mut w6 = 0;
        'l6: while w6 < ({ a = (a + 1) % 9; a }) % 4 {
            w6 += 1;
            b ^= a % 4;
        }
        u.accumulate([u[4], 7], Op::Sum).to(b % u.size(), (b + 7) % 20)?;
        u.accumulate([8], Op::Sum).to(all.pop().unwrap_or(0) % u.size(), (({ a = (a + 1) % 9; a }) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_137(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(a) {
            u.put(part.clone()).to(a % u.size(), (pick(list, n) + 1) % 20)?;
        }
        u.put([2]).to(b % u.size(), (small(u.rank())? + 2) % 20)?;
        let mut b = n;
        if k > 6 {
            u.put([rest.next().unwrap_or(0) as u64]).to(a % u.size(), (k + 3) % 20)?;
        } else {
            if let Some(&(mut a)) = list.get(a) {
                if b > 2 { return Ok(()); }
                let _checked = small(by(a))?;
            }
        }
        if (rest.next().is_some() && k % 2 == 0) {
            u[b % 24] += by(a) as u64;
            let _ = b > 1 || rest.next().is_some();
        }
        u.put([4]).to(a % u.size(), (list.len() + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_138(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match rest.next().unwrap_or(0) % 3 {
            0 => {
                u.put(&values).to(small(({ a = (a + 1) % 9; a }))? % u.size(), (all.pop().unwrap_or(4) + 1) % 20)?;
            }
            1 if rest.next().is_some() => {
                let _ = matches!(a % 3, 0 | 2) || ((a + 7) % 13) % 2 == 0;
            }
            _ => {
                u.accumulate(part.clone(), Op::Sum).to(n % u.size(), (b + 2) % 20)?;
                let mut a = ({ a = (a + 2) % 9; a });
            }
        }
        u.accumulate(part.clone(), Op::Sum).to(by(by(list.len())) % u.size(), (((a + u.rank()) % 13) + 3) % 20)?;
        match b % 3 {
            0 => {
                let Some(&b) = list.get(u.rank()) else { return Ok(()) };
                let mut b = b;
                'l4: for i in 0..list.len() % 4 {
                    u.put(&values).to(pick(list, k) % u.size(), (small(b)? + 5) % 20)?;
                    let mut a = a;
                }
            }
            1 if ((n + a) % 13) % 2 == 0 => {
                if b > 6 {
                    a = a % 13;
                    part.start = (part.start + 1) % part.end;
                }
                u.put(0..2).to(rest.next().unwrap_or(1) % u.size(), (({ a = (a + 3) % 9; a }) + 6) % 20)?;
            }
            _ => {
                u.put([u[21], 7]).to(a % u.size(), (({ a = (a + 3) % 9; a }) + 7) % 20)?;
            }
        }
        if (a > 5 && small(7)? > 3) {
            let mut b = by(list.len());
            u[3 % 24] += 3 as u64;
        }
        u.put([u[13], 8]).to(((list.len() + a) % 13) % u.size(), (rest.next().unwrap_or(4) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_139(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = (b % 2 == 0 && rest.next().is_some()) || (b > 6 || u.rank() > 7);
        b ^= all.pop().unwrap_or(4) % 4;
        if (pick(list, k) > 0 || k > 3) {
            validate(list)?;
            u.put([1]).to(small(by(u.rank()))? % u.size(), (u.rank() + 1) % 20)?;
        } else {
            a ^= b % 4;
        }
        u.put([2]).to(u.rank() % u.size(), (all.pop().unwrap_or(1) + 2) % 20)?;
        u.put(part.clone()).to(all.pop().unwrap_or(4) % u.size(), (b + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_140(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(b % u.size(), (k + 1) % 20)?;
        u.put(part.clone()).to(list.len() % u.size(), (list.len() + 2) % 20)?;
        'l3: for i in 0..n % 4 {
            if (b > 3 || (u.rank() % 2 == 0 || a > 4)) {
                let Some(&b) = list.get(all.pop().unwrap_or(4)) else { panic!("none") };
                let mut b = b;
                if let Some(&(mut a)) = list.get(list.len()) {
                    if matches!(a % 3, 0 | 2) { continue 'l3; }
                }
            }
            let _ = (by(u.rank()) % 2 == 0 || rest.next().is_some()) || matches!(6 % 3, 0 | 2);
        }
        let Some(&b) = list.get(rest.next().unwrap_or(2)) else { panic!("none") };
        let mut b = b;
        let Some(&b) = list.get(1) else { return Ok(()) };
        let mut b = b;
        u.put(0..2).to(u.rank() % u.size(), (all.pop().unwrap_or(0) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_141(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validate(list)?;
        match n % 3 {
            0 => {
                if (({ a = (a + 3) % 9; a }) > 7 && ((a + u.rank()) % 13) % 2 == 0) { return Err(bad("drawn")); }
                let mut a = k;
            }
            1 if rest.next().is_some() => {
                if matches!(a % 3, 0 | 2) {
                    u.put([u[22], 1]).to(list.len() % u.size(), (list.len() + 1) % 20)?;
                    if ((k + u.rank()) % 13) > 1 { Err(bad("drawn"))?; }
                }
                'l2: for i in 0..pick(list, k) % 4 {
                    let _ = ((b + list.len()) % 13) > 0 && n % 2 == 0;
                }
            }
            _ => {
                match k % 3 {
                    0 => {
                        u.put([u[16], 3]).to(list.len() % u.size(), (list.len() + 3) % 20)?;
                        u.put([u[20], 4]).to(list.len() % u.size(), (((a + list.len()) % 13) + 4) % 20)?;
                    }
                    1 if ((k + 7) % 13) % 2 == 0 => {
                        if all.contains(&6) { return Err(bad("drawn")); }
                        b = by(pick(list, a)) % 13;
                    }
                    _ => {
                        let _ = rest.next().unwrap_or(1) > 2 && u.rank() > 2;
                    }
                }
            }
        }
        u.put([5]).to(list.len() % u.size(), (list.len() + 5) % 20)?;
        u.put([rest.next().unwrap_or(3) as u64]).to(a % u.size(), (b + 6) % 20)?;
        Ok(())
    }
    sliced drawn_142(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(by(2)) else { return Ok(()) };
        let mut b = b;
        'l1: for i in 0..a % 4 {
            if (rest.next().is_some() && ({ a = (a + 2) % 9; a }) > 7) { Err(bad("drawn"))?; }
        }
        u[small(list.len())? % 24] += ({ a = (a + 3) % 9; a }) as u64;
        if small(a)? % 2 == 0 {
            u.put([a as u64]).to(((by(n) + u.rank()) % 13) % u.size(), (1 + 2) % 20)?;
            let _ = u.rank() % 2 == 0 && matches!(3 % 3, 0 | 2);
        }
        u.put([((small(4)? + ((a + a) % 13)) % 13) as u64]).to(by(rest.next().unwrap_or(3)) % u.size(), (k + 3) % 20)?;
        Ok(())
    }
    sliced drawn_143(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(pick(list, b)) else { panic!("none") };
        let mut b = b;
        u.put(&values).to(a % u.size(), (rest.next().unwrap_or(2) + 1) % 20)?;
        a ^= ((small(k)? + list.len()) % 13) % 4;
        u[((((a + n) % 13) + b) % 13) % 24] += a as u64;
        values.push(u[6]);
        let mut a = list.len();
        u.put(part.clone()).to(pick(list, ((b + n) % 13)) % u.size(), (b + 2) % 20)?;
        Ok(())
    }
    sliced drawn_144(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validated(list, &u[..])?;
        let _checked = small(((a + a) % 13))?;
        let _checked = small(b)?;
        u.put(&values).to(u.rank() % u.size(), (small(4)? + 1) % 20)?;
        Ok(())
    }
    sliced drawn_145(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(0..2, Op::Sum).to(((b + pick(list, k)) % 13) % u.size(), (((n + k) % 13) + 1) % 20)?;
        u.put(part.clone()).to(rest.next().unwrap_or(1) % u.size(), (({ a = (a + 3) % 9; a }) + 2) % 20)?;
        'l3: for i in 0..k % 4 {
            u.put(&values).to(n % u.size(), (b + 4) % 20)?;
            'l5: for i in 0..((k + b) % 13) % 4 {
                if by(list.len()) % 2 == 0 {
                    if ((list.len() + u.rank()) % 13) > 4 { return Err(bad("drawn")); }
                    u.put([u[4] as usize as u64]).to(1 % u.size(), (small(a)? + 6) % 20)?;
                }
            }
        }
        b ^= by(list.len()) % 4;
        a = 4 % 13;
        u.put([b as u64]).to(b % u.size(), (1 + 7) % 20)?;
        Ok(())
    }
    dynamic drawn_146(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(all.pop().unwrap_or(3) % u.size(), (b + 1) % 20)?;
        if (rest.next().unwrap_or(3) > 5 && u[18] > 150) {
            all.reverse();
            u.accumulate([u[19], 2], Op::Sum).to(rest.next().unwrap_or(3) % u.size(), (2 + 2) % 20)?;
        }
        a ^= ({ a = (a + 3) % 9; a }) % 4;
        'l3: for i in 0..a % 4 {
            u.put([((list.len() + all.pop().unwrap_or(1)) % 13) as u64]).to(b % u.size(), (pick(list, list.len()) + 4) % 20)?;
            all.sort();
        }
        'l5: for i in 0..u.rank() % 4 {
            values.push(u[6]);
            if (a % 2 == 0 && small(b)? > 0) { return Err(bad("drawn")); }
        }
        u.put(&values).to(by(small(list.len())?) % u.size(), (b + 6) % 20)?;
        u.put([((6 + n) % 13) as u64]).to(pick(list, u.rank()) % u.size(), (n + 7) % 20)?;
        Ok(())
    }
    sliced drawn_147(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[5 % 24] += ((n + 3) % 13) as u64;
        u.accumulate(part.clone(), Op::Sum).to(((({ a = (a + 1) % 9; a }) + ((a + b) % 13)) % 13) % u.size(), (pick(list, k) + 1) % 20)?;
        a = ({ a = (a + 3) % 9; a }) % 13;
        let mut b = a;
        rest.next();
        b = by(pick(list, a)) % 13;
        u.put(0..2).to(((all.pop().unwrap_or(3) + a) % 13) % u.size(), (a + 2) % 20)?;
        Ok(())
    }
    sliced drawn_148(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([pick(list, 1) as u64]).to(b % u.size(), (small(b)? + 1) % 20)?;
        let mut w2 = 0;
        'l2: while w2 < rest.next().unwrap_or(2) % 4 {
            w2 += 1;
            let mut a = a;
        }
        let mut b = b;
        u[((n + b) % 13) % 24] += small(b)? as u64;
        u.put([3]).to(u.rank() % u.size(), (4 + 3) % 20)?;
        Ok(())
    }
    sliced drawn_149(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..b % 4 {
            let _ = ((list.len() + a) % 13) > 7 && matches!(list.len() % 3, 0 | 2);
        }
        u.put([u[14], 2]).to(pick(list, a) % u.size(), (n + 2) % 20)?;
        let mut w3 = 0;
        'l3: while w3 < k % 4 {
            w3 += 1;
            if rest.next().is_some() {
                b ^= u.rank() % 4;
            }
        }
        'l4: for i in 0..5 % 4 {
            if all.contains(&6) {
                'l5: for i in 0..pick(list, k) % 4 {
                    a = a % 13;
                    b ^= k % 4;
                }
                u.accumulate(0..2, Op::Sum).to(a % u.size(), (((a + k) % 13) + 6) % 20)?;
            } else {
                u.put(0..2).to(5 % u.size(), (u.rank() + 7) % 20)?;
            }
        }
        let mut a = small(b)?;
        u.put(0..2).to(a % u.size(), (u.rank() + 8) % 20)?;
        Ok(())
    }
    sliced drawn_150(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(0..2, Op::Sum).to(k % u.size(), (n + 1) % 20)?;
        if rest.next().is_some() {
            let mut w2 = 0;
            'l2: while w2 < n % 4 {
                w2 += 1;
                if let Some(&(mut a)) = list.get(small(list.len())?) {
                    let _ = small(u.rank())? % 2 == 0 && (((1 + b) % 13) % 2 == 0 && pick(list, 5) > 1);
                    small(by(b))?;
                }
            }
        } else {
            'l3: for i in 0..rest.next().unwrap_or(2) % 4 {
                part.end += 1;
            }
        }
        validated(list, &u[..])?;
        u.put([u[7], 4]).to(by(6) % u.size(), (all.pop().unwrap_or(1) + 4) % 20)?;
        let Some(&b) = list.get(((n + a) % 13)) else { return Ok(()) };
        let mut b = b;
        u.put(part.clone()).to(8 % u.size(), (5 + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_151(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(b) {
            u[small(n)? % 24] += small(3)? as u64;
            if let Some(&(mut a)) = list.get(({ a = (a + 2) % 9; a })) {
                if rest.next().is_some() {
                    u.put([small(small(b)?)? as u64]).to(u[15] as usize % u.size(), (small(b)? + 1) % 20)?;
                }
                if rest.next().is_some() {
                    b ^= all.pop().unwrap_or(4) % 4;
                } else {
                    all.sort();
                }
            }
        }
        a = a % 13;
        let mut w2 = 0;
        'l2: while w2 < a % 4 {
            w2 += 1;
            a ^= list.len() % 4;
        }
        if rest.next().is_some() {
            u[all.pop().unwrap_or(1) % 24] += b as u64;
        }
        'l3: for i in 0..all.pop().unwrap_or(0) % 4 {
            u.put(0..2).to(k % u.size(), (b + 4) % 20)?;
        }
        u.put(part.clone()).to(b % u.size(), (all.pop().unwrap_or(1) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_152(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a = small(rest.next().unwrap_or(1))? % 13;
        let mut w1 = 0;
        'l1: while w1 < small(n)? % 4 {
            w1 += 1;
            part.start = (part.start + 1) % part.end;
        }
        let Some(&b) = list.get(5) else { return Ok(()) };
        let mut b = b;
        u.accumulate(&values, Op::Sum).to(6 % u.size(), (by(list.len()) + 2) % 20)?;
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        u.put([u[20], 3]).to(a % u.size(), (((n + k) % 13) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_153(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..3 % 4 {
            b ^= k % 4;
            'l2: for i in 0..pick(list, u.rank()) % 4 {
                if all.contains(&3) {
                    if all.contains(&0) { Err(bad("drawn"))?; }
                    b = b % 13;
                }
            }
        }
        a ^= all.pop().unwrap_or(4) % 4;
        u.put(part.clone()).to(pick(list, k) % u.size(), (b + 3) % 20)?;
        u.put(part.clone()).to(({ a = (a + 1) % 9; a }) % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    sliced drawn_154(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(((a + a) % 13)) {
            if 7 % 2 == 0 {
                a ^= a % 4;
            }
            ensure!(list.len() < 12, "great");
        }
        'l1: for i in 0..((list.len() + u.rank()) % 13) % 4 {
            if let Some(&(mut a)) = list.get(k) {
                let mut w2 = 0;
                'l2: while w2 < 3 % 4 {
                    w2 += 1;
                    b ^= ((small(2)? + k) % 13) % 4;
                }
            }
            b = by(k) % 13;
        }
        u.put([n as u64]).to(pick(list, n) % u.size(), (by(7) + 3) % 20)?;
        'l4: for i in 0..by(n) % 4 {
            let _checked = small(list.len())?;
            let Some(&b) = list.get(u.rank()) else { panic!("none") };
            let mut b = b;
        }
        let mut a = rest.next().unwrap_or(0);
        u.put([5]).to(a % u.size(), (rest.next().unwrap_or(0) + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_155(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([1], Op::Sum).to(n % u.size(), (({ a = (a + 2) % 9; a }) + 1) % 20)?;
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        'l2: for i in 0..7 % 4 {
            if rest.next().is_some() {
                u.put([3]).to(all.pop().unwrap_or(1) % u.size(), (k + 3) % 20)?;
            }
        }
        a = k % 13;
        let _ = (((n + n) % 13) > 5 && pick(list, b) % 2 == 0) && matches!(b % 3, 0 | 2);
        'l4: for i in 0..all.pop().unwrap_or(3) % 4 {
            'l5: for i in 0..k % 4 {
                if rest.next().unwrap_or(2) > 1 {
                    if n > 4 { continue 'l5; }
                    u.accumulate(part.clone(), Op::Sum).to(by(((b + 4) % 13)) % u.size(), (((n + a) % 13) + 6) % 20)?;
                } else {
                    if (({ a = (a + 2) % 9; a }) % 2 == 0 && rest.next().is_some()) { return Err(bad("drawn")); }
                }
                u.put([list.len() as u64]).to(k % u.size(), (a + 7) % 20)?;
            }
        }
        u.put([a as u64]).to(pick(list, b) % u.size(), (pick(list, n) + 8) % 20)?;
        Ok(())
    }
    dynamic drawn_156(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if list.len() > 0 {
            ensure!(3 < 12, "great");
            let mut a = k;
        }
        a ^= b % 4;
        u.put(0..2).to(rest.next().unwrap_or(3) % u.size(), (by(4) + 1) % 20)?;
        if (rest.next().is_some() || a > 4) {
            if pick(list, b) > 6 {
                if (k % 2 == 0 || n % 2 == 0) {
                    if matches!(list.len() % 3, 0 | 2) { return Err(bad("drawn")); }
                    part.end += 1;
                } else {
                    u.put([2]).to(({ a = (a + 3) % 9; a }) % u.size(), (rest.next().unwrap_or(4) + 2) % 20)?;
                }
                u.put(&values).to(b % u.size(), (({ a = (a + 2) % 9; a }) + 3) % 20)?;
            }
            if u[18] > 150 {
                if let Some(&(mut a)) = list.get(n) {
                    b = ({ a = (a + 2) % 9; a }) % 13;
                    u.put(0..2).to(n % u.size(), (a + 4) % 20)?;
                }
                u.put([5]).to(((((2 + u.rank()) % 13) + b) % 13) % u.size(), (a + 5) % 20)?;
            }
        } else {
            a ^= by(rest.next().unwrap_or(0)) % 4;
        }
        if b > 3 {
            a = a % 13;
        } else {
            'l6: for i in 0..b % 4 {
                'l7: for i in 0..small(b)? % 4 {
                    u[a % 24] += 0 as u64;
                    let _ = all.contains(&0) && all.contains(&6);
                }
                let mut b = a;
            }
        }
        if (rest.next().is_some() && b > 7) {
            let mut w8 = 0;
            'l8: while w8 < a % 4 {
                w8 += 1;
                'l9: for i in 0..rest.next().unwrap_or(2) % 4 {
                    u.accumulate([10], Op::Sum).to(pick(list, ({ a = (a + 2) % 9; a })) % u.size(), (all.pop().unwrap_or(4) + 10) % 20)?;
                }
            }
            u.put([11]).to(0 % u.size(), (({ a = (a + 3) % 9; a }) + 11) % 20)?;
        } else {
            b = u.rank() % 13;
        }
        u.accumulate([u[8], 12], Op::Sum).to(2 % u.size(), (small(b)? + 12) % 20)?;
        Ok(())
    }
    sliced drawn_157(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if b % 2 == 0 { return Ok(()); }
        if rest.next().is_some() {
            u[((a + ((3 + a) % 13)) % 13) % 24] += 3 as u64;
        }
        'l1: for i in 0..n % 4 {
            a = a % 13;
        }
        u.put(part.clone()).to(a % u.size(), (b + 2) % 20)?;
        u.accumulate(0..2, Op::Sum).to(a % u.size(), (list.len() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_158(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if all.pop().unwrap_or(2) > 6 {
            u.accumulate([u[6], 1], Op::Sum).to(pick(list, k) % u.size(), (pick(list, b) + 1) % 20)?;
            let _checked = small(a)?;
        } else {
            u[((by(b) + 4) % 13) % 24] += list.len() as u64;
        }
        b = pick(list, by(b)) % 13;
        'l2: for i in 0..({ a = (a + 3) % 9; a }) % 4 {
            rest.next();
        }
        u.put(&values).to(((a + n) % 13) % u.size(), (u.rank() + 3) % 20)?;
        u.put([4]).to(rest.next().unwrap_or(2) % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_159(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = b;
        all.truncate(small(list.len())?);
        part.start = (part.start + 1) % part.end;
        u.put(0..2).to(({ a = (a + 1) % 9; a }) % u.size(), (u.rank() + 1) % 20)?;
        u.put([2]).to(rest.next().unwrap_or(4) % u.size(), (list.len() + 2) % 20)?;
        Ok(())
    }
    sliced drawn_160(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(0)) {
            part.start = (part.start + 1) % part.end;
        }
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(2)) {
            let mut a = small(all.pop().unwrap_or(4))?;
            if (rest.next().unwrap_or(3) > 6 && ({ a = (a + 1) % 9; a }) > 7) {
                let _ = all.pop().unwrap_or(4) > 2 || all.pop().unwrap_or(3) > 6;
                u.accumulate([u[8], 1], Op::Sum).to(a % u.size(), (by(b) + 1) % 20)?;
            }
        }
        if rest.next().is_some() {
            let _ = u.rank() > 6 || rest.next().is_some();
        }
        match a % 3 {
            0 => {
                u[b % 24] += pick(list, by(a)) as u64;
                values[0] = u[5];
            }
            1 if b > 0 => {
                if let Some(&(mut a)) = list.get(b) {
                    if ({ a = (a + 2) % 9; a }) > 3 { return Err(bad("drawn")); }
                }
                a ^= all.pop().unwrap_or(1) % 4;
            }
            _ => {
                u.put(0..2).to(rest.next().unwrap_or(2) % u.size(), (k + 2) % 20)?;
            }
        }
        u.put(&values).to(b % u.size(), (((b + n) % 13) + 3) % 20)?;
        u.put([u[18], 4]).to(rest.next().unwrap_or(0) % u.size(), (pick(list, a) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_161(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            if let Some(&(mut a)) = list.get(b) {
                if (b > 7 || all.pop().unwrap_or(2) > 2) { return Err(bad("drawn")); }
            }
        }
        let _checked = small(all.pop().unwrap_or(3))?;
        u.put(part.clone()).to(all.pop().unwrap_or(1) % u.size(), (a + 1) % 20)?;
        let _ = all.contains(&8) && all.pop().unwrap_or(4) > 4;
        u.put(part.clone()).to(k % u.size(), (u.rank() + 2) % 20)?;
        u.put(&values).to(by(list.len()) % u.size(), (a + 3) % 20)?;
        Ok(())
    }
    sliced drawn_162(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validate(list)?;
        if rest.next().is_some() {
            'l1: for i in 0..a % 4 {
                if matches!(n % 3, 0 | 2) {
                    let mut b = n;
                    u.put(part.clone()).to(b % u.size(), (b + 2) % 20)?;
                }
            }
            if (k > 5 && n > 7) {
                let Some(&b) = list.get(pick(list, a)) else { panic!("none") };
                let mut b = b;
            }
        }
        u.put([all.pop().unwrap_or(3) as u64]).to(({ a = (a + 1) % 9; a }) % u.size(), (({ a = (a + 1) % 9; a }) + 3) % 20)?;
        a = small(pick(list, b))? % 13;
        u.put(0..2).to(rest.next().unwrap_or(4) % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_163(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = all.pop().unwrap_or(0);
        if all.contains(&2) {
            u.put([rest.next().unwrap_or(2) as u64]).to(by(u[19] as usize) % u.size(), (((6 + n) % 13) + 1) % 20)?;
        } else {
            let mut w2 = 0;
            'l2: while w2 < 8 % 4 {
                w2 += 1;
                u.put([((((b + a) % 13) + a) % 13) as u64]).to(pick(list, b) % u.size(), (rest.next().unwrap_or(2) + 3) % 20)?;
            }
        }
        u.put(part.clone()).to(by(pick(list, k)) % u.size(), (b + 4) % 20)?;
        u.put([5]).to(small(a)? % u.size(), (u[3] as usize + 5) % 20)?;
        u.put([8 as u64]).to(a % u.size(), (n + 6) % 20)?;
        u.put(&values).to(a % u.size(), (b + 7) % 20)?;
        Ok(())
    }
    sliced drawn_164(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= small(b)? % 4;
        u.put(&values).to(k % u.size(), (rest.next().unwrap_or(0) + 1) % 20)?;
        'l2: for i in 0..rest.next().unwrap_or(2) % 4 {
            u.put([rest.next().unwrap_or(1) as u64]).to(n % u.size(), (list.len() + 3) % 20)?;
        }
        let mut a = all.pop().unwrap_or(2);
        u.accumulate(0..2, Op::Sum).to(k % u.size(), (by(n) + 4) % 20)?;
        u.put([5]).to(small(rest.next().unwrap_or(0))? % u.size(), (by(2) + 5) % 20)?;
        u.put([pick(list, k) as u64]).to(({ a = (a + 1) % 9; a }) % u.size(), (small(u.rank())? + 6) % 20)?;
        Ok(())
    }
    sliced drawn_165(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(list.len() % u.size(), (n + 1) % 20)?;
        u.put(0..2).to(a % u.size(), (4 + 2) % 20)?;
        if ((a + a) % 13) > 3 {
            b ^= small(a)? % 4;
            let _ = all.contains(&2) && (list.len() > 7 || b % 2 == 0);
        } else {
            u[small(a)? % 24] += all.pop().unwrap_or(4) as u64;
        }
        u.put(part.clone()).to(pick(list, n) % u.size(), (pick(list, b) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_166(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < pick(list, a) % 4 {
            w1 += 1;
            let _ = b % 2 == 0 && matches!(list.len() % 3, 0 | 2);
        }
        u.put([((k + u.rank()) % 13) as u64]).to(small(n)? % u.size(), (n + 2) % 20)?;
        u.put([3]).to(u.rank() % u.size(), (small(a)? + 3) % 20)?;
        u.put(&values).to(b % u.size(), (4 + 4) % 20)?;
        Ok(())
    }
    sliced drawn_167(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..b % 4 {
            u.put(part.clone()).to(a % u.size(), (k + 2) % 20)?;
        }
        all.sort();
        'l3: for i in 0..list.len() % 4 {
            'l4: for i in 0..a % 4 {
                if let Some(&(mut a)) = list.get(b) {
                    u[k % 24] += all.pop().unwrap_or(2) as u64;
                    u.put(part.clone()).to(all.pop().unwrap_or(1) % u.size(), (u.rank() + 5) % 20)?;
                }
            }
        }
        let Some(&b) = list.get(a) else { return Err(bad("none")) };
        let mut b = b;
        b ^= ((n + a) % 13) % 4;
        u.put([list.len() as u64]).to(({ a = (a + 3) % 9; a }) % u.size(), (all.pop().unwrap_or(3) + 6) % 20)?;
        u.accumulate([((n + ((b + a) % 13)) % 13) as u64], Op::Sum).to(n % u.size(), (list.len() + 7) % 20)?;
        Ok(())
    }
    sliced drawn_168(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validated(list, &u[..])?;
        u.put([u[10], 1]).to(pick(list, a) % u.size(), (1 + 1) % 20)?;
        validated(list, &u[..])?;
        let _ = small(list.len())? % 2 == 0 || matches!(8 % 3, 0 | 2);
        u.put(0..2).to(k % u.size(), (0 + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_169(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..7 % 4 {
            let _ = (n % 2 == 0 && list.len() % 2 == 0) || matches!(a % 3, 0 | 2);
            u.accumulate(0..2, Op::Sum).to(b % u.size(), (a + 2) % 20)?;
        }
        b ^= all.pop().unwrap_or(0) % 4;
        'l3: for i in 0..k % 4 {
            b ^= list.len() % 4;
            u.put([4]).to(((n + a) % 13) % u.size(), (u.rank() + 4) % 20)?;
        }
        let mut a = by(((u.rank() + u.rank()) % 13));
        u.put(&values).to(b % u.size(), (by(b) + 5) % 20)?;
        if all.contains(&2) {
            u.put(part.clone()).to(((k + b) % 13) % u.size(), (b + 6) % 20)?;
            if a > 1 {
                if rest.next().is_some() {
                    u.put(part.clone()).to(n % u.size(), (((u.rank() + n) % 13) + 7) % 20)?;
                    u.put(part.clone()).to(b % u.size(), (k + 8) % 20)?;
                }
            } else {
                'l9: for i in 0..k % 4 {
                    if matches!(a % 3, 0 | 2) { break 'l9; }
                    if by(a) > 7 { return Ok(()); }
                }
            }
        }
        u.put(0..2).to(3 % u.size(), (u.rank() + 10) % 20)?;
        Ok(())
    }
    sliced drawn_170(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..by(a) % 4 {
            if ((a + 3) % 13) > 4 { break 'l1; }
            match small(b)? % 3 {
                0 => {
                    let mut a = k;
                    a ^= b % 4;
                }
                1 if ({ a = (a + 1) % 9; a }) > 5 => {
                    u.accumulate(&values, Op::Sum).to(rest.next().unwrap_or(0) % u.size(), (a + 2) % 20)?;
                }
                _ => {
                    let _ = (a > 5 || all.pop().unwrap_or(2) % 2 == 0) || (rest.next().is_some() || u.rank() > 3);
                }
            }
        }
        u.put([3]).to(n % u.size(), (k + 3) % 20)?;
        u[a % 24] += b as u64;
        u.accumulate([4], Op::Sum).to(small(all.pop().unwrap_or(4))? % u.size(), (({ a = (a + 1) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_171(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(rest.next().unwrap_or(0)) else { panic!("none") };
        let mut b = b;
        let mut a = list.len();
        small(a)?;
        if let Some(&(mut a)) = list.get(pick(list, b)) {
            if ((((n + b) % 13) % 2 == 0 || 4 % 2 == 0) && b > 7) {
                match b % 3 {
                    0 => {
                        u.accumulate(0..2, Op::Sum).to(6 % u.size(), (b + 1) % 20)?;
                    }
                    1 if by(0) > 0 => {
                        b = n % 13;
                    }
                    _ => {
                        small(b)?;
                        u.put([u[16], 2]).to(all.pop().unwrap_or(3) % u.size(), (k + 2) % 20)?;
                    }
                }
            }
            match b % 3 {
                0 => {
                    small(a)?;
                }
                1 if rest.next().is_some() => {
                    let _checked = small(({ a = (a + 1) % 9; a }))?;
                }
                _ => {
                    all.reverse();
                    let _ = ((k + k) % 13) > 0 && a > 0;
                }
            }
        }
        u.put([3]).to(a % u.size(), (a + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_172(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(all.pop().unwrap_or(3) % u.size(), (b + 1) % 20)?;
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        let mut b = b;
        if let Some(&(mut a)) = list.get(a) {
            rest.next();
            u.accumulate([2], Op::Sum).to(rest.next().unwrap_or(0) % u.size(), (b + 2) % 20)?;
        }
        if small(k)? > 0 {
            'l3: for i in 0..a % 4 {
                'l4: for i in 0..rest.next().unwrap_or(4) % 4 {
                    values.push(u[6]);
                    let _ = matches!(a % 3, 0 | 2) && matches!(a % 3, 0 | 2);
                }
                u.put(0..2).to(list.len() % u.size(), (((b + a) % 13) + 5) % 20)?;
            }
            part.start = (part.start + 1) % part.end;
        }
        u.put([small(k)? as u64]).to(((b + n) % 13) % u.size(), (a + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_173(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a = list.len() % 13;
        let _ = rest.next().is_some() && matches!(1 % 3, 0 | 2);
        if let Some(&(mut a)) = list.get(4) {
            if let Some(&(mut a)) = list.get(u.rank()) {
                if b > 6 {
                    u.accumulate([1], Op::Sum).to(((a + ((a + b) % 13)) % 13) % u.size(), (list.len() + 1) % 20)?;
                    u.put(0..2).to(1 % u.size(), (all.pop().unwrap_or(2) + 2) % 20)?;
                }
                'l3: for i in 0..list.len() % 4 {
                    u.put([((a + ((k + a) % 13)) % 13) as u64]).to(small(u.rank())? % u.size(), (n + 4) % 20)?;
                }
            }
            if all.contains(&1) { return Err(bad("drawn")); }
        }
        if (matches!(k % 3, 0 | 2) || rest.next().unwrap_or(3) > 0) {
            a ^= rest.next().unwrap_or(2) % 4;
        }
        let Some(&b) = list.get(by(b)) else { return Ok(()) };
        let mut b = b;
        match n % 3 {
            0 => {
                if let Some(&(mut a)) = list.get(small(a)?) {
                    a = pick(list, all.pop().unwrap_or(3)) % 13;
                    u.put([u[0], 5]).to(rest.next().unwrap_or(3) % u.size(), (b + 5) % 20)?;
                }
            }
            1 if ((list.len() + n) % 13) > 3 => {
                'l6: for i in 0..b % 4 {
                    if all.contains(&7) { continue 'l6; }
                    u.put([u[21], 7]).to(({ a = (a + 1) % 9; a }) % u.size(), (8 + 7) % 20)?;
                }
                u.put(&values).to(small(by(list.len()))? % u.size(), (n + 8) % 20)?;
            }
            _ => {
                'l9: for i in 0..pick(list, a) % 4 {
                    if by(k) % 2 == 0 { Err(bad("drawn"))?; }
                    let _ = u[3] > 150 && matches!(n % 3, 0 | 2);
                }
                u.accumulate([u.rank() as u64], Op::Sum).to(a % u.size(), (by(b) + 10) % 20)?;
            }
        }
        u.put(part.clone()).to(1 % u.size(), (u.rank() + 11) % 20)?;
        Ok(())
    }
    sliced drawn_174(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..small(b)? % 4 {
            let _checked = small(b)?;
        }
        match by(list.len()) % 3 {
            0 => {
                let _ = matches!(6 % 3, 0 | 2) || ((k + u.rank()) % 13) > 1;
                u.put([2]).to(rest.next().unwrap_or(1) % u.size(), (({ a = (a + 3) % 9; a }) + 2) % 20)?;
            }
            1 if pick(list, b) > 1 => {
                let Some(&b) = list.get(n) else { return Ok(()) };
                let mut b = b;
            }
            _ => {
                u.accumulate([u[8], 3], Op::Sum).to(({ a = (a + 1) % 9; a }) % u.size(), (((b + list.len()) % 13) + 3) % 20)?;
            }
        }
        u[((by(a) + list.len()) % 13) % 24] += b as u64;
        u.put([u[14], 4]).to(k % u.size(), (n + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_175(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        values.push(u[6]);
        if u[7] > 150 { return Ok(()); }
        let mut a = all.pop().unwrap_or(3);
        b = all.pop().unwrap_or(0) % 13;
        u.accumulate(&values, Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (((b + b) % 13) + 1) % 20)?;
        Ok(())
    }
    sliced drawn_176(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([u.rank() as u64], Op::Sum).to(a % u.size(), (all.pop().unwrap_or(1) + 1) % 20)?;
        b = ((k + u.rank()) % 13) % 13;
        u.put(0..2).to(a % u.size(), (k + 2) % 20)?;
        u.accumulate(&values, Op::Sum).to(((u.rank() + rest.next().unwrap_or(1)) % 13) % u.size(), (a + 3) % 20)?;
        Ok(())
    }
    sliced drawn_177(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut b = small(all.pop().unwrap_or(0))?;
        u[4 % 24] += ({ a = (a + 2) % 9; a }) as u64;
        'l1: for i in 0..small(k)? % 4 {
            'l2: for i in 0..((k + a) % 13) % 4 {
                if u[8] > 150 { break 'l2; }
            }
        }
        let mut a = ({ a = (a + 3) % 9; a });
        u.accumulate(&values, Op::Sum).to(1 % u.size(), (u.rank() + 3) % 20)?;
        'l4: for i in 0..n % 4 {
            if let Some(&(mut a)) = list.get(small(b)?) {
                u.accumulate(&values, Op::Sum).to(k % u.size(), (list.len() + 5) % 20)?;
            }
        }
        u.put(0..2).to(n % u.size(), (b + 6) % 20)?;
        Ok(())
    }
    sliced drawn_178(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(u.rank() % u.size(), (({ a = (a + 2) % 9; a }) + 1) % 20)?;
        u[((small(a)? + 3) % 13) % 24] += small(((list.len() + list.len()) % 13))? as u64;
        if list.len() > 0 {
            let Some(&b) = list.get(a) else { return Ok(()) };
            let mut b = b;
            all.truncate(b);
        }
        if by(u.rank()) > 1 {
            if let Some(&(mut a)) = list.get(pick(list, a)) {
                if (rest.next().is_some() && u.rank() % 2 == 0) {
                    a = a % 13;
                    u.put([({ a = (a + 2) % 9; a }) as u64]).to(((by(a) + rest.next().unwrap_or(0)) % 13) % u.size(), (((b + a) % 13) + 2) % 20)?;
                }
            }
            match ({ a = (a + 1) % 9; a }) % 3 {
                0 => {
                    ensure!(4 < 12, "great");
                    u.put(&values).to(all.pop().unwrap_or(1) % u.size(), (6 + 3) % 20)?;
                }
                1 if k > 1 => {
                    if rest.next().is_some() { return Err(bad("drawn")); }
                }
                _ => {
                    let _ = (rest.next().is_some() || 1 % 2 == 0) && rest.next().is_some();
                }
            }
        }
        b ^= b % 4;
        if ((pick(list, b) > 2 && a > 4) || matches!(n % 3, 0 | 2)) {
            u.put(&values).to(6 % u.size(), (list.len() + 4) % 20)?;
            u.put(0..2).to(by(({ a = (a + 3) % 9; a })) % u.size(), (b + 5) % 20)?;
        }
        u.accumulate([u[20], 6], Op::Sum).to(b % u.size(), (pick(list, k) + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_179(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(k % u.size(), (a + 1) % 20)?;
        u.put(&values).to(((n + by(a)) % 13) % u.size(), (rest.next().unwrap_or(1) + 2) % 20)?;
        let _ = matches!(a % 3, 0 | 2) && 2 % 2 == 0;
        u.accumulate(0..2, Op::Sum).to(a % u.size(), (list.len() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_180(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if matches!(3 % 3, 0 | 2) { return Err(bad("drawn")); }
        'l1: for i in 0..small(n)? % 4 {
            if matches!(3 % 3, 0 | 2) {
                if ({ a = (a + 3) % 9; a }) % 2 == 0 { return Ok(()); }
            }
        }
        u.accumulate([2], Op::Sum).to(rest.next().unwrap_or(0) % u.size(), (all.pop().unwrap_or(2) + 2) % 20)?;
        u.put([u[20], 3]).to(by(k) % u.size(), (rest.next().unwrap_or(1) + 3) % 20)?;
        b = small(u.rank())? % 13;
        u[3 % 24] += by(rest.next().unwrap_or(2)) as u64;
        u.accumulate(0..2, Op::Sum).to(list.len() % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_181(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((u.rank() + list.len()) % 13) % 2 == 0 {
            if 0 > 0 {
                if (list.len() > 4 || list.len() > 7) { Err(bad("drawn"))?; }
            }
            if let Some(&(mut a)) = list.get(((b + u.rank()) % 13)) {
                let mut w1 = 0;
                'l1: while w1 < rest.next().unwrap_or(3) % 4 {
                    w1 += 1;
                    a = pick(list, pick(list, 0)) % 13;
                }
                u.put(&values).to(all.pop().unwrap_or(3) % u.size(), (pick(list, b) + 2) % 20)?;
            }
        } else {
            u.put([u[2], 3]).to(((k + b) % 13) % u.size(), (a + 3) % 20)?;
        }
        if let Some(&(mut a)) = list.get(({ a = (a + 1) % 9; a })) {
            if all.contains(&4) {
                if matches!(n % 3, 0 | 2) { return Err(bad("drawn")); }
                let mut w4 = 0;
                'l4: while w4 < pick(list, n) % 4 {
                    w4 += 1;
                    all.sort();
                }
            } else {
                a ^= ({ a = (a + 3) % 9; a }) % 4;
            }
        }
        match pick(list, b) % 3 {
            0 => {
                let _ = rest.next().is_some() || all.contains(&1);
                if b > 7 {
                    u.put(&values).to(a % u.size(), (a + 5) % 20)?;
                    b ^= ({ a = (a + 2) % 9; a }) % 4;
                }
            }
            1 if k % 2 == 0 => {
                b = 8 % 13;
            }
            _ => {
                a = small(n)? % 13;
                let mut w6 = 0;
                'l6: while w6 < k % 4 {
                    w6 += 1;
                    a = b % 13;
                }
            }
        }
        if all.contains(&3) { return Err(bad("drawn")); }
        u.put(&values).to(b % u.size(), (rest.next().unwrap_or(0) + 7) % 20)?;
        Ok(())
    }
    sliced drawn_182(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b = a % 13;
        u.put(0..2).to(rest.next().unwrap_or(1) % u.size(), (b + 1) % 20)?;
        let mut b = b;
        if all.contains(&7) {
            u.put(&values).to(b % u.size(), (((n + 7) % 13) + 2) % 20)?;
        }
        u.accumulate([b as u64], Op::Sum).to(((rest.next().unwrap_or(4) + pick(list, b)) % 13) % u.size(), (by(u.rank()) + 3) % 20)?;
        u.put(0..2).to(u.rank() % u.size(), (((b + k) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_183(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..b % 4 {
            'l2: for i in 0..pick(list, k) % 4 {
                u.put(part.clone()).to(b % u.size(), (5 + 3) % 20)?;
            }
        }
        let mut a = 3;
        u[rest.next().unwrap_or(1) % 24] += 3 as u64;
        if let Some(&(mut a)) = list.get(b) {
            match ((k + a) % 13) % 3 {
                0 => {
                    u.put(part.clone()).to(((all.pop().unwrap_or(2) + 6) % 13) % u.size(), (pick(list, b) + 4) % 20)?;
                }
                1 if small(u.rank())? > 5 => {
                    u.put(0..2).to(all.pop().unwrap_or(4) % u.size(), (small(k)? + 5) % 20)?;
                    a ^= 6 % 4;
                }
                _ => {
                    let mut b = small(k)?;
                    u.put(0..2).to(by(((b + 8) % 13)) % u.size(), (b + 6) % 20)?;
                }
            }
            u.put(&values).to(small(by(b))? % u.size(), (all.pop().unwrap_or(2) + 7) % 20)?;
        }
        let mut w8 = 0;
        'l8: while w8 < pick(list, n) % 4 {
            w8 += 1;
            a ^= k % 4;
        }
        validated(list, &u[..])?;
        u.put(part.clone()).to(((pick(list, b) + a) % 13) % u.size(), (rest.next().unwrap_or(4) + 9) % 20)?;
        Ok(())
    }
    sliced drawn_184(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(small(((b + b) % 13))? % u.size(), (all.pop().unwrap_or(2) + 1) % 20)?;
        if let Some(&(mut a)) = list.get(u.rank()) {
            validate(list)?;
        }
        a ^= b % 4;
        if let Some(&(mut a)) = list.get(list.len()) {
            ensure!(3 < 12, "great");
        }
        u.put([u.rank() as u64]).to(a % u.size(), (((3 + 5) % 13) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_185(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (all.pop().unwrap_or(4) % 2 == 0 || u.rank() > 5) { return Err(bad("drawn")); }
        b ^= small(a)? % 4;
        b = ({ a = (a + 3) % 9; a }) % 13;
        u.put(0..2).to(all.pop().unwrap_or(2) % u.size(), (b + 1) % 20)?;
        Ok(())
    }
    sliced drawn_186(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([a as u64]).to(by(rest.next().unwrap_or(2)) % u.size(), (list.len() + 1) % 20)?;
        u.accumulate([2], Op::Sum).to(by(b) % u.size(), (by(a) + 2) % 20)?;
        if (rest.next().unwrap_or(2) % 2 == 0 && n % 2 == 0) {
            if b % 2 == 0 {
                all.reverse();
                let mut w3 = 0;
                'l3: while w3 < small(k)? % 4 {
                    w3 += 1;
                    u.put(&values).to(b % u.size(), (a + 4) % 20)?;
                }
            } else {
                if let Some(&(mut a)) = list.get(b) {
                    let _ = n > 1 || ((k + a) % 13) > 0;
                }
            }
        } else {
            rest.next();
        }
        'l5: for i in 0..((a + n) % 13) % 4 {
            u.put([u[15], 6]).to(rest.next().unwrap_or(3) % u.size(), (k + 6) % 20)?;
        }
        u.put(part.clone()).to(all.pop().unwrap_or(0) % u.size(), (n + 7) % 20)?;
        Ok(())
    }
    sliced drawn_187(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (({ a = (a + 2) % 9; a }) > 7 && small(list.len())? > 5) {
            'l1: for i in 0..by(a) % 4 {
                if pick(list, 7) > 2 {
                    let mut b = small(all.pop().unwrap_or(2))?;
                } else {
                    if u.rank() > 2 { Err(bad("drawn"))?; }
                }
                if n % 2 == 0 { continue 'l1; }
            }
        } else {
            let mut a = b;
        }
        values[0] = u[5];
        if n % 2 == 0 { return Err(bad("drawn")); }
        u.put([small(((list.len() + 4) % 13))? as u64]).to(((b + small(k)?) % 13) % u.size(), (b + 2) % 20)?;
        Ok(())
    }
    sliced drawn_188(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(k % u.size(), (small(list.len())? + 1) % 20)?;
        all.reverse();
        a = pick(list, b) % 13;
        'l2: for i in 0..n % 4 {
            if ({ a = (a + 2) % 9; a }) > 6 {
                let mut b = ((k + rest.next().unwrap_or(1)) % 13);
                b ^= small(8)? % 4;
            }
            part.start = (part.start + 1) % part.end;
        }
        let _ = rest.next().unwrap_or(0) > 4 || rest.next().is_some();
        u.put([3]).to(rest.next().unwrap_or(4) % u.size(), (rest.next().unwrap_or(4) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_189(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(&values, Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (a + 1) % 20)?;
        if pick(list, u.rank()) > 2 { return Err(bad("drawn")); }
        let mut b = pick(list, ((b + n) % 13));
        u.accumulate([by(n) as u64], Op::Sum).to(small(pick(list, u.rank()))? % u.size(), (list.len() + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_190(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            u.accumulate(0..2, Op::Sum).to(by(small(b)?) % u.size(), (k + 1) % 20)?;
            if let Some(&(mut a)) = list.get(a) {
                if list.len() % 2 == 0 {
                    b ^= by(2) % 4;
                }
            }
        }
        if ((0 % 2 == 0 || rest.next().is_some()) && all.contains(&1)) {
            let mut w2 = 0;
            'l2: while w2 < list.len() % 4 {
                w2 += 1;
                a ^= pick(list, b) % 4;
            }
        }
        if matches!(b % 3, 0 | 2) {
            u.accumulate([u[9], 3], Op::Sum).to(list.len() % u.size(), (b + 3) % 20)?;
            u.put([u[5], 4]).to(list.len() % u.size(), (7 + 4) % 20)?;
        }
        'l5: for i in 0..all.pop().unwrap_or(2) % 4 {
            let _ = matches!(3 % 3, 0 | 2) && matches!(b % 3, 0 | 2);
            a = small(b)? % 13;
        }
        if (by(n) > 4 || a > 2) {
            let _ = ((b + k) % 13) > 5 && (rest.next().is_some() && pick(list, a) % 2 == 0);
        } else {
            'l6: for i in 0..all.pop().unwrap_or(1) % 4 {
                u.put(0..2).to(rest.next().unwrap_or(0) % u.size(), (pick(list, 3) + 7) % 20)?;
                if let Some(&(mut a)) = list.get(all.pop().unwrap_or(4)) {
                    u.put(0..2).to(by(by(u.rank())) % u.size(), (all.pop().unwrap_or(2) + 8) % 20)?;
                    let mut a = a;
                }
            }
        }
        if matches!(3 % 3, 0 | 2) {
            let mut a = ({ a = (a + 3) % 9; a });
            u.put([9]).to(b % u.size(), (b + 9) % 20)?;
        }
        u.accumulate([u[3], 10], Op::Sum).to(((((u.rank() + u.rank()) % 13) + k) % 13) % u.size(), (((k + a) % 13) + 10) % 20)?;
        Ok(())
    }
    sliced drawn_191(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b = pick(list, u.rank()) % 13;
        if matches!(list.len() % 3, 0 | 2) {
            let mut b = pick(list, 1);
        } else {
            let mut a = b;
        }
        all.truncate(((u.rank() + b) % 13));
        small(2)?;
        u.put([b as u64]).to(small(a)? % u.size(), (list.len() + 1) % 20)?;
        Ok(())
    }
    dynamic drawn_192(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..a % 4 {
            if by(b) > 3 { return Err(bad("drawn")); }
        }
        match small(n)? % 3 {
            0 => {
                'l2: for i in 0..((b + n) % 13) % 4 {
                    u.put([u[13], 3]).to(pick(list, list.len()) % u.size(), (all.pop().unwrap_or(2) + 3) % 20)?;
                    if b % 2 == 0 { Err(bad("drawn"))?; }
                }
                u.accumulate([u[7], 4], Op::Sum).to(pick(list, a) % u.size(), (((2 + list.len()) % 13) + 4) % 20)?;
            }
            1 if rest.next().is_some() => {
                if (a > 3 || rest.next().is_some()) { return Err(bad("drawn")); }
                let mut b = by(u.rank());
            }
            _ => {
                'l5: for i in 0..((b + b) % 13) % 4 {
                    u.put(&values).to(({ a = (a + 1) % 9; a }) % u.size(), (small(a)? + 6) % 20)?;
                    u.put([by(b) as u64]).to(small(u.rank())? % u.size(), (list.len() + 7) % 20)?;
                }
                u.put([8]).to(pick(list, ((a + n) % 13)) % u.size(), (rest.next().unwrap_or(4) + 8) % 20)?;
            }
        }
        if all.contains(&3) {
            if matches!(a % 3, 0 | 2) {
                let Some(&b) = list.get(small(list.len())?) else { return Ok(()) };
                let mut b = b;
                a = a % 13;
            }
        }
        u.put([9]).to(k % u.size(), (b + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_193(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(rest.next().unwrap_or(1) % u.size(), (n + 1) % 20)?;
        u.put([2]).to(by(((u.rank() + a) % 13)) % u.size(), (list.len() + 2) % 20)?;
        if matches!(a % 3, 0 | 2) { return Err(bad("drawn")); }
        if b % 2 == 0 {
            u.put([b as u64]).to(b % u.size(), (a + 3) % 20)?;
        }
        if (list.len() > 6 && small(a)? % 2 == 0) {
            let mut w4 = 0;
            'l4: while w4 < by(b) % 4 {
                w4 += 1;
                if b > 4 { return Err(bad("drawn")); }
            }
        } else {
            a = b % 13;
        }
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(4)) {
            match n % 3 {
                0 => {
                    let _ = k > 7 || all.contains(&3);
                }
                1 if small(n)? > 1 => {
                    u.put(part.clone()).to(((((a + n) % 13) + list.len()) % 13) % u.size(), (a + 5) % 20)?;
                    u.put([6]).to(({ a = (a + 1) % 9; a }) % u.size(), (rest.next().unwrap_or(0) + 6) % 20)?;
                }
                _ => {
                    u.put([u[2], 7]).to(k % u.size(), (k + 7) % 20)?;
                    if (by(b) > 7 || a > 2) { Err(bad("drawn"))?; }
                }
            }
        }
        u.accumulate(0..2, Op::Sum).to(small(pick(list, list.len()))? % u.size(), (a + 8) % 20)?;
        Ok(())
    }
    sliced drawn_194(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(all.pop().unwrap_or(4) % u.size(), (n + 1) % 20)?;
        let _ = k % 2 == 0 || (0 > 4 || rest.next().is_some());
        if (3 > 5 && ((2 + list.len()) % 13) % 2 == 0) { return Err(bad("drawn")); }
        u.put(part.clone()).to(by(({ a = (a + 1) % 9; a })) % u.size(), (a + 2) % 20)?;
        Ok(())
    }
    sliced drawn_195(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < 8 % 4 {
            w1 += 1;
            if by(a) > 0 { return Err(bad("drawn")); }
        }
        let Some(&b) = list.get(by(b)) else { return Err(bad("none")) };
        let mut b = b;
        if list.len() % 2 == 0 {
            u.accumulate(part.clone(), Op::Sum).to(((a + b) % 13) % u.size(), (by(u.rank()) + 2) % 20)?;
            if a % 2 == 0 {
                u.put(&values).to(pick(list, k) % u.size(), (pick(list, b) + 3) % 20)?;
            }
        } else {
            u.accumulate(&values, Op::Sum).to(all.pop().unwrap_or(0) % u.size(), (b + 4) % 20)?;
        }
        if rest.next().is_some() { return Ok(()); }
        u.put([list.len() as u64]).to(small(by(4))? % u.size(), (u.rank() + 5) % 20)?;
        Ok(())
    }
    sliced drawn_196(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[small(({ a = (a + 2) % 9; a }))? % 24] += a as u64;
        if let Some(&(mut a)) = list.get(b) {
            a = n % 13;
        }
        if (list.len() > 2 && rest.next().unwrap_or(4) > 4) {
            u.put(&values).to(b % u.size(), (k + 1) % 20)?;
        } else {
            match ({ a = (a + 3) % 9; a }) % 3 {
                0 => {
                    u.accumulate([u[15], 2], Op::Sum).to(u.rank() % u.size(), (pick(list, b) + 2) % 20)?;
                }
                1 if all.pop().unwrap_or(1) > 3 => {
                    part.start = (part.start + 1) % part.end;
                    a ^= small(all.pop().unwrap_or(3))? % 4;
                }
                _ => {
                    if b > 1 { return Err(bad("drawn")); }
                }
            }
        }
        match b % 3 {
            0 => {
                match ((n + u.rank()) % 13) % 3 {
                    0 => {
                        u.put([small(rest.next().unwrap_or(2))? as u64]).to(small(by(a))? % u.size(), (n + 3) % 20)?;
                        if (rest.next().unwrap_or(1) > 0 && rest.next().is_some()) { Err(bad("drawn"))?; }
                    }
                    1 if u.rank() > 0 => {
                        u.put([u[20], 4]).to(k % u.size(), (u.rank() + 4) % 20)?;
                    }
                    _ => {
                        let _ = rest.next().is_some() || k % 2 == 0;
                    }
                }
                let mut w5 = 0;
                'l5: while w5 < a % 4 {
                    w5 += 1;
                    a ^= ((all.pop().unwrap_or(4) + n) % 13) % 4;
                }
            }
            1 if ((a + b) % 13) > 1 => {
                u.put(&values).to(b % u.size(), (b + 6) % 20)?;
                'l7: for i in 0..rest.next().unwrap_or(3) % 4 {
                    u.put([8]).to(all.pop().unwrap_or(3) % u.size(), (u.rank() + 8) % 20)?;
                    u.put([u[18], 9]).to(pick(list, n) % u.size(), (all.pop().unwrap_or(4) + 9) % 20)?;
                }
            }
            _ => {
                if let Some(&(mut a)) = list.get(n) {
                    u[rest.next().unwrap_or(2) % 24] += list.len() as u64;
                    let _ = by(a) > 0 || rest.next().unwrap_or(4) > 1;
                }
                a ^= b % 4;
            }
        }
        'l10: for i in 0..pick(list, u.rank()) % 4 {
            rest.next();
            u.put([pick(list, ({ a = (a + 3) % 9; a })) as u64]).to(({ a = (a + 2) % 9; a }) % u.size(), (pick(list, a) + 11) % 20)?;
        }
        u.accumulate([u[13], 12], Op::Sum).to(pick(list, u.rank()) % u.size(), (a + 12) % 20)?;
        Ok(())
    }
    sliced drawn_197(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        small(7)?;
        let Some(&b) = list.get(a) else { return Ok(()) };
        let mut b = b;
        a ^= u.rank() % 4;
        let mut w1 = 0;
        'l1: while w1 < rest.next().unwrap_or(2) % 4 {
            w1 += 1;
            let mut a = n;
        }
        if (4 % 2 == 0 && (a % 2 == 0 || rest.next().is_some())) {
            let Some(&b) = list.get(a) else { panic!("none") };
            let mut b = b;
            u.put([k as u64]).to(small(b)? % u.size(), (by(k) + 2) % 20)?;
        }
        u.accumulate(part.clone(), Op::Sum).to(n % u.size(), (((a + b) % 13) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_198(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if small(u.rank())? % 2 == 0 {
            u[3 % 24] += b as u64;
        }
        if let Some(&(mut a)) = list.get(u.rank()) {
            if (({ a = (a + 1) % 9; a }) % 2 == 0 || pick(list, b) % 2 == 0) {
                let mut w1 = 0;
                'l1: while w1 < b % 4 {
                    w1 += 1;
                    if ((a + 8) % 13) > 6 { Err(bad("drawn"))?; }
                }
                let mut w2 = 0;
                'l2: while w2 < 2 % 4 {
                    w2 += 1;
                    b = 8 % 13;
                }
            }
        }
        a = all.pop().unwrap_or(3) % 13;
        u.put([small(({ a = (a + 2) % 9; a }))? as u64]).to(k % u.size(), (by(a) + 3) % 20)?;
        u.put(part.clone()).to(({ a = (a + 3) % 9; a }) % u.size(), (small(a)? + 4) % 20)?;
        Ok(())
    }
    sliced drawn_199(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(k) {
            u.put([u[23], 1]).to(rest.next().unwrap_or(2) % u.size(), (by(a) + 1) % 20)?;
            match small(a)? % 3 {
                0 => {
                    u.put([7 as u64]).to(b % u.size(), (n + 2) % 20)?;
                }
                1 if rest.next().is_some() => {
                    a = ((pick(list, list.len()) + small(n)?) % 13) % 13;
                    u.put(&values).to(n % u.size(), (u.rank() + 3) % 20)?;
                }
                _ => {
                    u.put(0..2).to(b % u.size(), (a + 4) % 20)?;
                }
            }
        }
        if (({ a = (a + 2) % 9; a }) % 2 == 0 && n > 6) {
            let mut b = u.rank();
            part.end += 1;
        } else {
            if (a > 1 || by(n) > 0) {
                if rest.next().is_some() {
                    let mut b = u.rank();
                } else {
                    u[b % 24] += rest.next().unwrap_or(4) as u64;
                }
            }
        }
        let mut w5 = 0;
        'l5: while w5 < list.len() % 4 {
            w5 += 1;
            if (small(u.rank())? > 6 && rest.next().is_some()) { return Err(bad("drawn")); }
        }
        if rest.next().unwrap_or(4) > 3 {
            u.put([6]).to(by(3) % u.size(), (0 + 6) % 20)?;
            small(all.pop().unwrap_or(1))?;
        }
        a = u.rank() % 13;
        u.put([7]).to(list.len() % u.size(), (list.len() + 7) % 20)?;
        Ok(())
    }
    sliced drawn_200(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match 4 % 3 {
            0 => {
                if (small(b)? > 4 || a % 2 == 0) {
                    u.put(part.clone()).to(n % u.size(), (7 + 1) % 20)?;
                }
            }
            1 if list.len() > 2 => {
                b = small(a)? % 13;
            }
            _ => {
                u.put(&values).to(({ a = (a + 2) % 9; a }) % u.size(), (({ a = (a + 1) % 9; a }) + 2) % 20)?;
            }
        }
        a = ((((a + a) % 13) + all.pop().unwrap_or(0)) % 13) % 13;
        u.put([3]).to(b % u.size(), (u.rank() + 3) % 20)?;
        if all.pop().unwrap_or(0) % 2 == 0 {
            if rest.next().is_some() { return Err(bad("drawn")); }
        }
        u.accumulate(&values, Op::Sum).to(((a + pick(list, k)) % 13) % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    sliced drawn_201(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b ^= ({ a = (a + 3) % 9; a }) % 4;
        'l1: for i in 0..pick(list, 6) % 4 {
            u.put([u[19], 2]).to(((rest.next().unwrap_or(0) + ({ a = (a + 3) % 9; a })) % 13) % u.size(), (u.rank() + 2) % 20)?;
            let _ = (rest.next().is_some() || rest.next().is_some()) || all.pop().unwrap_or(1) > 7;
        }
        a = b % 13;
        u.put(part.clone()).to(a % u.size(), (rest.next().unwrap_or(1) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_202(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _checked = small(n)?;
        part.end += 1;
        'l1: for i in 0..3 % 4 {
            if rest.next().unwrap_or(2) % 2 == 0 { continue 'l1; }
            u.put([2]).to(small(u.rank())? % u.size(), (((a + n) % 13) + 2) % 20)?;
        }
        let _ = by(3) % 2 == 0 || all.contains(&7);
        let Some(&b) = list.get(rest.next().unwrap_or(4)) else { return Err(bad("none")) };
        let mut b = b;
        u.put([all.pop().unwrap_or(0) as u64]).to(rest.next().unwrap_or(2) % u.size(), (({ a = (a + 2) % 9; a }) + 3) % 20)?;
        u.put(0..2).to(1 % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_203(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match 4 % 3 {
            0 => {
                b ^= small(b)? % 4;
            }
            1 if all.pop().unwrap_or(3) > 6 => {
                'l1: for i in 0..7 % 4 {
                    a = u.rank() % 13;
                }
            }
            _ => {
                u[b % 24] += by(small(b)?) as u64;
            }
        }
        let Some(&b) = list.get(k) else { panic!("none") };
        let mut b = b;
        a = b % 13;
        if matches!(b % 3, 0 | 2) {
            u.put(part.clone()).to(b % u.size(), (list.len() + 2) % 20)?;
        }
        u.put(&values).to(((b + all.pop().unwrap_or(1)) % 13) % u.size(), (u.rank() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_204(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        part.end += 1;
        u.accumulate([pick(list, b) as u64], Op::Sum).to(k % u.size(), (((0 + list.len()) % 13) + 1) % 20)?;
        if let Some(&(mut a)) = list.get(0) {
            validate(list)?;
        }
        u.accumulate([2], Op::Sum).to(a % u.size(), (by(b) + 2) % 20)?;
        u.put(part.clone()).to(list.len() % u.size(), (by(b) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_205(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(u.rank() % u.size(), (b + 1) % 20)?;
        if matches!(a % 3, 0 | 2) {
            a = n % 13;
        } else {
            let mut w2 = 0;
            'l2: while w2 < n % 4 {
                w2 += 1;
                if ({ a = (a + 2) % 9; a }) % 2 == 0 {
                    if matches!(3 % 3, 0 | 2) { break 'l2; }
                }
            }
        }
        if ((7 + b) % 13) > 2 {
            u.put([((list.len() + rest.next().unwrap_or(3)) % 13) as u64]).to(a % u.size(), (by(k) + 3) % 20)?;
            let _ = rest.next().is_some() || matches!(8 % 3, 0 | 2);
        } else {
            u.put([u[7], 4]).to(by(all.pop().unwrap_or(3)) % u.size(), (n + 4) % 20)?;
        }
        a ^= a % 4;
        u.put(&values).to(({ a = (a + 2) % 9; a }) % u.size(), (list.len() + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_206(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = (by(b) > 4 && list.len() > 5) && all.contains(&5);
        if matches!(b % 3, 0 | 2) {
            let _checked = small(rest.next().unwrap_or(3))?;
        } else {
            match list.len() % 3 {
                0 => {
                    let _ = all.pop().unwrap_or(4) % 2 == 0 || rest.next().is_some();
                }
                1 if rest.next().is_some() => {
                    a = ({ a = (a + 3) % 9; a }) % 13;
                }
                _ => {
                    u.put([1]).to(pick(list, ((a + 4) % 13)) % u.size(), (({ a = (a + 1) % 9; a }) + 1) % 20)?;
                }
            }
        }
        u.put(&values).to(((5 + by(b)) % 13) % u.size(), (((6 + a) % 13) + 2) % 20)?;
        match rest.next().unwrap_or(1) % 3 {
            0 => {
                let Some(&b) = list.get(((4 + b) % 13)) else { return Err(bad("none")) };
                let mut b = b;
                'l3: for i in 0..pick(list, 4) % 4 {
                    u[b % 24] += ({ a = (a + 3) % 9; a }) as u64;
                }
            }
            1 if u.rank() > 7 => {
                u.put([b as u64]).to(all.pop().unwrap_or(1) % u.size(), (k + 4) % 20)?;
            }
            _ => {
                if let Some(&(mut a)) = list.get(pick(list, b)) {
                    u.accumulate(0..2, Op::Sum).to(k % u.size(), (a + 5) % 20)?;
                    b = rest.next().unwrap_or(0) % 13;
                }
                a ^= list.len() % 4;
            }
        }
        u.put(0..2).to(((k + b) % 13) % u.size(), (rest.next().unwrap_or(0) + 6) % 20)?;
        u.put([7]).to(rest.next().unwrap_or(0) % u.size(), (a + 7) % 20)?;
        Ok(())
    }
    sliced drawn_207(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(({ a = (a + 1) % 9; a }) % u.size(), (b + 1) % 20)?;
        all.sort();
        b = b % 13;
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(1)) {
            u.put([by(((k + a) % 13)) as u64]).to(list.len() % u.size(), (({ a = (a + 2) % 9; a }) + 2) % 20)?;
            if let Some(&(mut a)) = list.get(((b + a) % 13)) {
                'l3: for i in 0..b % 4 {
                    u.put(&values).to(((a + a) % 13) % u.size(), (((n + k) % 13) + 4) % 20)?;
                }
                u[small(((b + a) % 13))? % 24] += b as u64;
            }
        }
        b ^= b % 4;
        u.put(&values).to(by(rest.next().unwrap_or(1)) % u.size(), (((b + 6) % 13) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_208(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        b = 1 % 13;
        'l1: for i in 0..a % 4 {
            u.put([2]).to(list.len() % u.size(), (7 + 2) % 20)?;
        }
        if small(u.rank())? % 2 == 0 {
            let mut w3 = 0;
            'l3: while w3 < b % 4 {
                w3 += 1;
                u.put(&values).to(n % u.size(), (8 + 4) % 20)?;
            }
        }
        b ^= a % 4;
        b ^= b % 4;
        let mut b = list.len();
        u.put([((by(list.len()) + b) % 13) as u64]).to(((list.len() + all.pop().unwrap_or(4)) % 13) % u.size(), (a + 5) % 20)?;
        Ok(())
    }
    sliced drawn_209(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate([1], Op::Sum).to(0 % u.size(), (a + 1) % 20)?;
        values.push(u[6]);
        let mut w2 = 0;
        'l2: while w2 < pick(list, k) % 4 {
            w2 += 1;
            if let Some(&(mut a)) = list.get(k) {
                values.push(u[6]);
                if let Some(&(mut a)) = list.get(({ a = (a + 1) % 9; a })) {
                    a = rest.next().unwrap_or(0) % 13;
                }
            }
        }
        u.put([3]).to(({ a = (a + 3) % 9; a }) % u.size(), (list.len() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_210(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(({ a = (a + 3) % 9; a }) % u.size(), (a + 1) % 20)?;
        let Some(&b) = list.get(all.pop().unwrap_or(0)) else { panic!("none") };
        let mut b = b;
        all.sort();
        u.put([2]).to(u.rank() % u.size(), (list.len() + 2) % 20)?;
        if rest.next().is_some() {
            if ((a + k) % 13) > 3 {
                u[3 % 24] += 3 as u64;
            }
        }
        u.accumulate([u[9], 3], Op::Sum).to(((((a + k) % 13) + by(n)) % 13) % u.size(), (n + 3) % 20)?;
        Ok(())
    }
    sliced drawn_211(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        ensure!(k < 12, "great");
        b = b % 13;
        'l1: for i in 0..rest.next().unwrap_or(3) % 4 {
            values[0] = u[5];
            u.accumulate([2], Op::Sum).to(by(((a + 2) % 13)) % u.size(), (list.len() + 2) % 20)?;
        }
        u.put([rest.next().unwrap_or(4) as u64]).to(all.pop().unwrap_or(0) % u.size(), (6 + 3) % 20)?;
        Ok(())
    }
    sliced drawn_212(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(k) {
            b ^= b % 4;
        }
        if let Some(&(mut a)) = list.get(small(a)?) {
            let mut w1 = 0;
            'l1: while w1 < u.rank() % 4 {
                w1 += 1;
                if ({ a = (a + 3) % 9; a }) % 2 == 0 {
                    let mut a = by(by(b));
                    let mut a = a;
                }
            }
            if rest.next().is_some() {
                u.put([u[0], 2]).to(n % u.size(), (a + 2) % 20)?;
            }
        }
        u.put([u[3], 3]).to(all.pop().unwrap_or(4) % u.size(), (((b + k) % 13) + 3) % 20)?;
        u.put(&values).to(1 % u.size(), (((b + a) % 13) + 4) % 20)?;
        let Some(&b) = list.get(small(b)?) else { return Err(bad("none")) };
        let mut b = b;
        let _ = all.contains(&4) && list.len() > 4;
        u.put([5]).to(a % u.size(), (a + 5) % 20)?;
        Ok(())
    }
    sliced drawn_213(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(small(2)? % u.size(), (b + 1) % 20)?;
        let Some(&b) = list.get(u.rank()) else { panic!("none") };
        let mut b = b;
        u.accumulate(part.clone(), Op::Sum).to(((b + list.len()) % 13) % u.size(), (b + 2) % 20)?;
        u.put(&values).to(({ a = (a + 2) % 9; a }) % u.size(), (all.pop().unwrap_or(4) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_214(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(a % u.size(), (list.len() + 1) % 20)?;
        let _ = pick(list, u.rank()) > 4 && (rest.next().is_some() && pick(list, u.rank()) > 5);
        let mut b = b;
        u.put([2]).to(4 % u.size(), (k + 2) % 20)?;
        u.put([small(((u.rank() + list.len()) % 13))? as u64]).to(by(((a + n) % 13)) % u.size(), (a + 3) % 20)?;
        Ok(())
    }
    sliced drawn_215(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _checked = small(b)?;
        'l1: for i in 0..all.pop().unwrap_or(1) % 4 {
            if matches!(n % 3, 0 | 2) {
                if let Some(&(mut a)) = list.get(list.len()) {
                    u.put([u[7], 2]).to(pick(list, n) % u.size(), (by(u.rank()) + 2) % 20)?;
                    a ^= n % 4;
                }
            }
        }
        if let Some(&(mut a)) = list.get(k) {
            let Some(&b) = list.get(((u.rank() + k) % 13)) else { return Ok(()) };
            let mut b = b;
            part.start = (part.start + 1) % part.end;
        }
        if (a % 2 == 0 && rest.next().is_some()) { return Err(bad("drawn")); }
        let Some(&b) = list.get(rest.next().unwrap_or(0)) else { panic!("none") };
        let mut b = b;
        u.put([u[7], 3]).to(((u.rank() + k) % 13) % u.size(), (all.pop().unwrap_or(2) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_216(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if matches!(a % 3, 0 | 2) {
            if (((list.len() + b) % 13) % 2 == 0 || rest.next().is_some()) {
                'l1: for i in 0..u.rank() % 4 {
                    b = by(a) % 13;
                    let _ = matches!(b % 3, 0 | 2) || (n > 7 || a > 0);
                }
                u.put([by(u.rank()) as u64]).to(k % u.size(), (all.pop().unwrap_or(0) + 2) % 20)?;
            } else {
                if ((k + list.len()) % 13) % 2 == 0 {
                    if rest.next().is_some() { return Ok(()); }
                } else {
                    u.put([u[0], 3]).to(a % u.size(), (u.rank() + 3) % 20)?;
                }
            }
            validate(list)?;
        }
        if rest.next().is_some() {
            u[list.len() % 24] += list.len() as u64;
            u.accumulate([4], Op::Sum).to(((n + by(b)) % 13) % u.size(), (list.len() + 4) % 20)?;
        }
        u.put([5]).to(n % u.size(), (k + 5) % 20)?;
        'l6: for i in 0..((list.len() + a) % 13) % 4 {
            if (n > 7 && ({ a = (a + 2) % 9; a }) > 2) { break 'l6; }
        }
        'l7: for i in 0..rest.next().unwrap_or(0) % 4 {
            if (n > 4 || all.contains(&1)) {
                values.push(u[6]);
            }
        }
        match small(list.len())? % 3 {
            0 => {
                if let Some(&(mut a)) = list.get(all.pop().unwrap_or(2)) {
                    u.put([u[14], 8]).to(8 % u.size(), (u.rank() + 8) % 20)?;
                }
            }
            1 if a > 7 => {
                let mut b = u.rank();
            }
            _ => {
                if pick(list, b) > 6 {
                    u.put([9]).to(all.pop().unwrap_or(2) % u.size(), (a + 9) % 20)?;
                    u.put(0..2).to(u.rank() % u.size(), (list.len() + 10) % 20)?;
                } else {
                    let _checked = small(a)?;
                }
            }
        }
        u.accumulate(part.clone(), Op::Sum).to(b % u.size(), (({ a = (a + 3) % 9; a }) + 11) % 20)?;
        Ok(())
    }
    sliced drawn_217(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= by(({ a = (a + 3) % 9; a })) % 4;
        if let Some(&(mut a)) = list.get(pick(list, u.rank())) {
            let mut w1 = 0;
            'l1: while w1 < small(b)? % 4 {
                w1 += 1;
                if (a > 1 && by(b) % 2 == 0) { break 'l1; }
            }
            let mut a = small(small(n)?)?;
        }
        validated(list, &u[..])?;
        u.put([u[6], 2]).to(({ a = (a + 2) % 9; a }) % u.size(), (((6 + a) % 13) + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_218(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = rest.next().is_some() && matches!(a % 3, 0 | 2);
        let Some(&b) = list.get(u.rank()) else { panic!("none") };
        let mut b = b;
        all.push(((b + a) % 13));
        let _ = all.contains(&6) && (b > 4 || pick(list, a) % 2 == 0);
        if list.len() > 7 {
            u.put(part.clone()).to(a % u.size(), (a + 1) % 20)?;
            u.accumulate([8 as u64], Op::Sum).to(u.rank() % u.size(), (a + 2) % 20)?;
        } else {
            let _checked = small(n)?;
        }
        let mut b = ((b + by(b)) % 13);
        u.accumulate(&values, Op::Sum).to(b % u.size(), (({ a = (a + 1) % 9; a }) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_219(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(u.rank()) {
            let Some(&b) = list.get(k) else { panic!("none") };
            let mut b = b;
        }
        u.put([((k + pick(list, 2)) % 13) as u64]).to(((((b + k) % 13) + b) % 13) % u.size(), (small(n)? + 1) % 20)?;
        u.put([u[9], 2]).to(n % u.size(), (pick(list, 7) + 2) % 20)?;
        let _ = matches!(a % 3, 0 | 2) || rest.next().unwrap_or(2) > 0;
        let mut w3 = 0;
        'l3: while w3 < u.rank() % 4 {
            w3 += 1;
            match n % 3 {
                0 => {
                    u.put([u[3], 4]).to(by(k) % u.size(), (n + 4) % 20)?;
                    b ^= b % 4;
                }
                1 if rest.next().is_some() => {
                    u.put([u[7], 5]).to(rest.next().unwrap_or(0) % u.size(), (u.rank() + 5) % 20)?;
                }
                _ => {
                    a = 8 % 13;
                    if u[13] > 150 { return Ok(()); }
                }
            }
        }
        all.truncate(((u.rank() + list.len()) % 13));
        u.put([((b + ((n + b) % 13)) % 13) as u64]).to(n % u.size(), (a + 6) % 20)?;
        Ok(())
    }
    sliced drawn_220(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut w1 = 0;
        'l1: while w1 < rest.next().unwrap_or(1) % 4 {
            w1 += 1;
            u.put([2]).to(pick(list, ((n + a) % 13)) % u.size(), (3 + 2) % 20)?;
        }
        part.start = (part.start + 1) % part.end;
        if rest.next().is_some() {
            let Some(&b) = list.get(((n + list.len()) % 13)) else { return Err(bad("none")) };
            let mut b = b;
        }
        u.put([u[2], 3]).to(a % u.size(), (list.len() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_221(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if all.pop().unwrap_or(1) > 4 {
            b ^= ((a + a) % 13) % 4;
            b = 0 % 13;
        }
        'l1: for i in 0..a % 4 {
            let _ = rest.next().is_some() || (rest.next().is_some() && b % 2 == 0);
        }
        a = b % 13;
        u.put(part.clone()).to(all.pop().unwrap_or(2) % u.size(), (b + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_222(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (rest.next().is_some() && matches!(a % 3, 0 | 2)) {
            if rest.next().is_some() {
                if rest.next().is_some() {
                    u.put(&values).to(k % u.size(), (small(b)? + 1) % 20)?;
                    u[b % 24] += pick(list, ((b + list.len()) % 13)) as u64;
                } else {
                    let _ = (({ a = (a + 2) % 9; a }) % 2 == 0 || list.len() > 1) && rest.next().unwrap_or(1) % 2 == 0;
                }
                u.put([u[9], 2]).to(b % u.size(), (n + 2) % 20)?;
            }
        }
        u.accumulate(part.clone(), Op::Sum).to(((((b + a) % 13) + a) % 13) % u.size(), (((a + b) % 13) + 3) % 20)?;
        let _ = pick(list, b) > 2 || b % 2 == 0;
        if let Some(&(mut a)) = list.get(((b + b) % 13)) {
            u.put([4]).to(a % u.size(), (({ a = (a + 2) % 9; a }) + 4) % 20)?;
        }
        let Some(&b) = list.get(0) else { panic!("none") };
        let mut b = b;
        let Some(&b) = list.get(rest.next().unwrap_or(3)) else { return Ok(()) };
        let mut b = b;
        u.put(0..2).to(all.pop().unwrap_or(3) % u.size(), (n + 5) % 20)?;
        Ok(())
    }
    sliced drawn_223(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[19], 1]).to(small(a)? % u.size(), (((b + b) % 13) + 1) % 20)?;
        part.end += 1;
        u.accumulate([u[11], 2], Op::Sum).to(u.rank() % u.size(), (3 + 2) % 20)?;
        values.push(u[6]);
        u.put(&values).to(by(u.rank()) % u.size(), (u.rank() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_224(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(0..2).to(k % u.size(), (((2 + k) % 13) + 1) % 20)?;
        validate(list)?;
        u.put(&values).to(pick(list, u.rank()) % u.size(), (all.pop().unwrap_or(4) + 2) % 20)?;
        if rest.next().unwrap_or(3) > 2 {
            'l3: for i in 0..pick(list, k) % 4 {
                if all.contains(&0) {
                    let _ = rest.next().is_some() && by(n) > 4;
                    if (list.len() % 2 == 0 && k > 5) { break 'l3; }
                }
            }
        } else {
            part.end += 1;
        }
        if matches!(n % 3, 0 | 2) { return Ok(()); }
        a ^= pick(list, n) % 4;
        u.accumulate(&values, Op::Sum).to(n % u.size(), (small(b)? + 4) % 20)?;
        Ok(())
    }
    sliced drawn_225(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(((u.rank() + a) % 13)) {
            b = ((list.len() + b) % 13) % 13;
            a ^= rest.next().unwrap_or(1) % 4;
        }
        let mut a = u.rank();
        let _ = k % 2 == 0 && (a > 0 || n % 2 == 0);
        u[((n + a) % 13) % 24] += pick(list, ({ a = (a + 1) % 9; a })) as u64;
        u.accumulate([small(k)? as u64], Op::Sum).to(n % u.size(), (small(list.len())? + 1) % 20)?;
        let mut w2 = 0;
        'l2: while w2 < b % 4 {
            w2 += 1;
            if u.rank() > 5 {
                if b % 2 == 0 { return Ok(()); }
                u.put(&values).to(rest.next().unwrap_or(2) % u.size(), (k + 3) % 20)?;
            }
        }
        u.put(part.clone()).to(u.rank() % u.size(), (((6 + 8) % 13) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_226(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(&values, Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (6 + 1) % 20)?;
        if matches!(b % 3, 0 | 2) {
            if u.rank() > 4 {
                a = ((u.rank() + ((b + k) % 13)) % 13) % 13;
                let _ = rest.next().is_some() && k % 2 == 0;
            }
        }
        u.put([2]).to(all.pop().unwrap_or(3) % u.size(), (all.pop().unwrap_or(2) + 2) % 20)?;
        ensure!(list.len() < 12, "great");
        'l3: for i in 0..pick(list, b) % 4 {
            u[k % 24] += rest.next().unwrap_or(4) as u64;
            match rest.next().unwrap_or(3) % 3 {
                0 => {
                    if pick(list, b) > 1 { return Err(bad("drawn")); }
                }
                1 if rest.next().unwrap_or(0) % 2 == 0 => {
                    a = rest.next().unwrap_or(0) % 13;
                    if matches!(b % 3, 0 | 2) { return Err(bad("drawn")); }
                }
                _ => {
                    a = b % 13;
                    ensure!(list.len() < 12, "great");
                }
            }
        }
        let _ = (rest.next().is_some() && rest.next().is_some()) || matches!(a % 3, 0 | 2);
        u.put([u[11], 4]).to(1 % u.size(), (by(b) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_227(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(k) {
            u.put(&values).to(n % u.size(), (small(a)? + 1) % 20)?;
        }
        if let Some(&(mut a)) = list.get(a) {
            let mut w2 = 0;
            'l2: while w2 < small(6)? % 4 {
                w2 += 1;
                let mut w3 = 0;
                'l3: while w3 < a % 4 {
                    w3 += 1;
                    u.put([0 as u64]).to(a % u.size(), (b + 4) % 20)?;
                }
            }
        }
        u.put([u[5], 5]).to(a % u.size(), (list.len() + 5) % 20)?;
        let mut w6 = 0;
        'l6: while w6 < ((k + list.len()) % 13) % 4 {
            w6 += 1;
            ensure!(a < 12, "great");
        }
        if ((n + a) % 13) > 7 {
            u.put([u[2], 7]).to(((((k + b) % 13) + k) % 13) % u.size(), (k + 7) % 20)?;
            'l8: for i in 0..a % 4 {
                values[0] = u[5];
            }
        }
        'l9: for i in 0..n % 4 {
            a = all.pop().unwrap_or(2) % 13;
            if (rest.next().is_some() && rest.next().is_some()) { Err(bad("drawn"))?; }
        }
        u.put([({ a = (a + 2) % 9; a }) as u64]).to(small(8)? % u.size(), (by(n) + 10) % 20)?;
        Ok(())
    }
    dynamic drawn_228(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (rest.next().is_some() || k > 3) {
            u.put([1]).to(({ a = (a + 3) % 9; a }) % u.size(), (b + 1) % 20)?;
        } else {
            if let Some(&(mut a)) = list.get(2) {
                let mut a = n;
                rest.next();
            }
        }
        if matches!(b % 3, 0 | 2) { return Err(bad("drawn")); }
        match ((a + n) % 13) % 3 {
            0 => {
                u.put([3 as u64]).to(3 % u.size(), (0 + 2) % 20)?;
            }
            1 if ((a + u.rank()) % 13) > 1 => {
                let _ = rest.next().is_some() || b > 5;
            }
            _ => {
                'l3: for i in 0..a % 4 {
                    let _ = u[21] > 150 && matches!(n % 3, 0 | 2);
                    let mut a = ((k + a) % 13);
                }
                let mut w4 = 0;
                'l4: while w4 < 8 % 4 {
                    w4 += 1;
                    u.put([u[22], 5]).to(pick(list, a) % u.size(), (by(b) + 5) % 20)?;
                }
            }
        }
        'l6: for i in 0..u.rank() % 4 {
            if rest.next().is_some() {
                match a % 3 {
                    0 => {
                        let mut a = pick(list, b);
                        if (rest.next().is_some() && b > 7) { return Err(bad("drawn")); }
                    }
                    1 if rest.next().is_some() => {
                        let _checked = small(by(5))?;
                    }
                    _ => {
                        values[0] = u[5];
                        ensure!(b < 12, "great");
                    }
                }
            }
            let mut b = n;
        }
        if let Some(&(mut a)) = list.get(3) {
            if (small(k)? > 0 && ((a + k) % 13) > 2) {
                part.end += 1;
                let Some(&b) = list.get(a) else { panic!("none") };
                let mut b = b;
            } else {
                if let Some(&(mut a)) = list.get(a) {
                    small(k)?;
                }
            }
        }
        let Some(&b) = list.get(rest.next().unwrap_or(0)) else { return Err(bad("none")) };
        let mut b = b;
        u.put([u[3], 7]).to(b % u.size(), (((n + a) % 13) + 7) % 20)?;
        Ok(())
    }
    sliced drawn_229(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..n % 4 {
            if (rest.next().is_some() || k > 7) { break 'l1; }
        }
        if u.rank() % 2 == 0 { return Err(bad("drawn")); }
        'l2: for i in 0..small(k)? % 4 {
            'l3: for i in 0..u.rank() % 4 {
                b = b % 13;
                rest.next();
            }
            if (a > 3 || rest.next().is_some()) { return Ok(()); }
        }
        if all.contains(&5) { return Err(bad("drawn")); }
        let Some(&b) = list.get(u.rank()) else { return Err(bad("none")) };
        let mut b = b;
        ensure!(3 < 12, "great");
        u.accumulate(&values, Op::Sum).to(b % u.size(), (pick(list, k) + 4) % 20)?;
        Ok(())
    }
    dynamic drawn_230(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if pick(list, b) > 5 { return Err(bad("drawn")); }
        if let Some(&(mut a)) = list.get(b) {
            if matches!(a % 3, 0 | 2) {
                'l1: for i in 0..((a + k) % 13) % 4 {
                    u.put([by(((k + k) % 13)) as u64]).to(((small(4)? + ((b + a) % 13)) % 13) % u.size(), (((6 + list.len()) % 13) + 2) % 20)?;
                    u.accumulate([b as u64], Op::Sum).to(small(list.len())? % u.size(), (a + 3) % 20)?;
                }
                let Some(&b) = list.get(all.pop().unwrap_or(0)) else { return Ok(()) };
                let mut b = b;
            }
        }
        let _ = ((2 + 5) % 13) > 2 || rest.next().is_some();
        u.accumulate([b as u64], Op::Sum).to(list.len() % u.size(), (((b + a) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_231(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(u.rank()) {
            if rest.next().is_some() { return Err(bad("drawn")); }
        }
        if (a % 2 == 0 && a > 3) {
            if rest.next().is_some() {
                u[rest.next().unwrap_or(2) % 24] += ((b + ({ a = (a + 1) % 9; a })) % 13) as u64;
            }
        } else {
            u.accumulate(0..2, Op::Sum).to(small(((0 + 0) % 13))? % u.size(), (list.len() + 1) % 20)?;
        }
        b = pick(list, ({ a = (a + 2) % 9; a })) % 13;
        u.put([u[13], 2]).to(5 % u.size(), (list.len() + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_232(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut a = n;
        if rest.next().is_some() {
            if let Some(&(mut a)) = list.get(((a + b) % 13)) {
                let _ = b > 7 || matches!(a % 3, 0 | 2);
            }
            match b % 3 {
                0 => {
                    let mut a = ((n + b) % 13);
                    b = k % 13;
                }
                1 if by(n) > 6 => {
                    u.put([1]).to(((({ a = (a + 3) % 9; a }) + all.pop().unwrap_or(3)) % 13) % u.size(), (small(k)? + 1) % 20)?;
                }
                _ => {
                    let mut a = k;
                }
            }
        } else {
            'l2: for i in 0..a % 4 {
                let _ = (k > 5 || list.len() > 0) && (k % 2 == 0 || all.pop().unwrap_or(4) > 4);
            }
        }
        u.put(&values).to(((pick(list, u.rank()) + a) % 13) % u.size(), (((a + b) % 13) + 3) % 20)?;
        u.put(&values).to(((a + by(list.len())) % 13) % u.size(), (u[14] as usize + 4) % 20)?;
        ensure!(5 < 12, "great");
        u.put([a as u64]).to(u.rank() % u.size(), (((list.len() + 5) % 13) + 5) % 20)?;
        u.put(part.clone()).to(rest.next().unwrap_or(0) % u.size(), (u.rank() + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_233(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let mut a = b;
        if (matches!(7 % 3, 0 | 2) || u[12] > 150) {
            let Some(&b) = list.get(a) else { panic!("none") };
            let mut b = b;
            let Some(&b) = list.get(n) else { return Err(bad("none")) };
            let mut b = b;
        }
        'l1: for i in 0..a % 4 {
            let Some(&b) = list.get(b) else { panic!("none") };
            let mut b = b;
        }
        let mut w2 = 0;
        'l2: while w2 < ((a + u.rank()) % 13) % 4 {
            w2 += 1;
            match u.rank() % 3 {
                0 => {
                    u[k % 24] += pick(list, pick(list, n)) as u64;
                    u[((list.len() + by(n)) % 13) % 24] += n as u64;
                }
                1 if n % 2 == 0 => {
                    let _ = u[2] > 150 && (a > 4 && b > 7);
                }
                _ => {
                    a = k % 13;
                    let _ = list.len() > 7 || (rest.next().is_some() && rest.next().is_some());
                }
            }
        }
        u.put(0..2).to(({ a = (a + 1) % 9; a }) % u.size(), (small(n)? + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_234(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([((1 + a) % 13) as u64]).to(u[16] as usize % u.size(), (({ a = (a + 3) % 9; a }) + 1) % 20)?;
        let mut w2 = 0;
        'l2: while w2 < b % 4 {
            w2 += 1;
            if (all.contains(&7) && all.contains(&6)) {
                let Some(&b) = list.get(list.len()) else { panic!("none") };
                let mut b = b;
            }
        }
        u[3 % 24] += n as u64;
        u.put([3]).to(pick(list, a) % u.size(), (((n + b) % 13) + 3) % 20)?;
        'l4: for i in 0..u.rank() % 4 {
            let mut b = b;
        }
        u.put(part.clone()).to(pick(list, k) % u.size(), (((a + list.len()) % 13) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_235(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(by(rest.next().unwrap_or(2)) % u.size(), (small(a)? + 1) % 20)?;
        let Some(&b) = list.get(b) else { return Ok(()) };
        let mut b = b;
        u.put(0..2).to(4 % u.size(), (((n + u.rank()) % 13) + 2) % 20)?;
        u.put(0..2).to(a % u.size(), (rest.next().unwrap_or(4) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_236(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(b % u.size(), (by(n) + 1) % 20)?;
        u.put([by(pick(list, a)) as u64]).to(a % u.size(), (by(a) + 2) % 20)?;
        'l3: for i in 0..a % 4 {
            let mut a = small(by(a))?;
            b ^= rest.next().unwrap_or(4) % 4;
        }
        b ^= pick(list, n) % 4;
        u.put([small(({ a = (a + 1) % 9; a }))? as u64]).to(b % u.size(), (list.len() + 4) % 20)?;
        Ok(())
    }
    sliced drawn_237(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[a % 24] += b as u64;
        let Some(&b) = list.get(({ a = (a + 3) % 9; a })) else { return Ok(()) };
        let mut b = b;
        u.put([b as u64]).to(b % u.size(), (all.pop().unwrap_or(4) + 1) % 20)?;
        u.put(0..2).to(((u.rank() + by(k)) % 13) % u.size(), (all.pop().unwrap_or(4) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_238(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[k % 24] += 3 as u64;
        u.put([list.len() as u64]).to(by(all.pop().unwrap_or(1)) % u.size(), (all.pop().unwrap_or(3) + 1) % 20)?;
        a ^= rest.next().unwrap_or(2) % 4;
        u.accumulate([u[18], 2], Op::Sum).to(b % u.size(), (n + 2) % 20)?;
        Ok(())
    }
    sliced drawn_239(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..rest.next().unwrap_or(0) % 4 {
            if all.pop().unwrap_or(2) > 3 {
                if (by(a) > 3 && rest.next().is_some()) { break 'l1; }
            }
        }
        u[pick(list, list.len()) % 24] += 3 as u64;
        if (rest.next().unwrap_or(1) > 0 || a > 1) { return Ok(()); }
        u.put([((rest.next().unwrap_or(1) + u.rank()) % 13) as u64]).to(a % u.size(), (list.len() + 2) % 20)?;
        u.accumulate(0..2, Op::Sum).to(n % u.size(), (small(a)? + 3) % 20)?;
        Ok(())
    }
    sliced drawn_240(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if u.rank() > 3 { Err(bad("drawn"))?; }
        u.put([((pick(list, a) + rest.next().unwrap_or(4)) % 13) as u64]).to(({ a = (a + 2) % 9; a }) % u.size(), (b + 1) % 20)?;
        'l2: for i in 0..b % 4 {
            b = u.rank() % 13;
            u.put(0..2).to(((((a + 8) % 13) + ({ a = (a + 1) % 9; a })) % 13) % u.size(), (a + 3) % 20)?;
        }
        let _ = a > 5 || b > 7;
        u.accumulate([4], Op::Sum).to(((({ a = (a + 1) % 9; a }) + all.pop().unwrap_or(0)) % 13) % u.size(), (0 + 4) % 20)?;
        Ok(())
    }
    sliced drawn_241(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = (list.len() > 4 && rest.next().is_some()) || all.contains(&7);
        u.put([u.rank() as u64]).to(((a + list.len()) % 13) % u.size(), (list.len() + 1) % 20)?;
        let mut a = u.rank();
        u.put(part.clone()).to(small(({ a = (a + 2) % 9; a }))? % u.size(), (a + 2) % 20)?;
        u.put([3]).to(all.pop().unwrap_or(1) % u.size(), (k + 3) % 20)?;
        Ok(())
    }
    sliced drawn_242(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= list.len() % 4;
        u.put(&values).to(a % u.size(), (pick(list, u.rank()) + 1) % 20)?;
        u.put([u[15], 2]).to(a % u.size(), (k + 2) % 20)?;
        u.put([3]).to(((small(b)? + n) % 13) % u.size(), (rest.next().unwrap_or(2) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_243(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..a % 4 {
            if let Some(&(mut a)) = list.get(({ a = (a + 2) % 9; a })) {
                if (rest.next().unwrap_or(2) % 2 == 0 && a > 3) { continue 'l1; }
                u.put([2]).to(a % u.size(), (b + 2) % 20)?;
            }
        }
        'l3: for i in 0..pick(list, b) % 4 {
            'l4: for i in 0..((a + k) % 13) % 4 {
                values.push(u[6]);
            }
        }
        let Some(&b) = list.get(((k + n) % 13)) else { panic!("none") };
        let mut b = b;
        let _ = (a % 2 == 0 && rest.next().is_some()) || b % 2 == 0;
        u.accumulate(part.clone(), Op::Sum).to(small(by(k))? % u.size(), (all.pop().unwrap_or(3) + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_244(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(list.len()) {
            b ^= all.pop().unwrap_or(4) % 4;
        }
        values[0] = u[5];
        validate(list)?;
        u[({ a = (a + 1) % 9; a }) % 24] += b as u64;
        u.put([1]).to(u.rank() % u.size(), (by(u.rank()) + 1) % 20)?;
        ensure!(b < 12, "great");
        u.put([a as u64]).to(by(list.len()) % u.size(), (((a + a) % 13) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_245(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if rest.next().is_some() {
            'l1: for i in 0..pick(list, n) % 4 {
                if let Some(&(mut a)) = list.get(a) {
                    b = 1 % 13;
                    u.put(0..2).to(b % u.size(), (pick(list, k) + 2) % 20)?;
                }
                if let Some(&(mut a)) = list.get(n) {
                    u.accumulate([3], Op::Sum).to(k % u.size(), (b + 3) % 20)?;
                }
            }
        }
        if (n > 2 && b > 5) { return Err(bad("drawn")); }
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(1)) {
            u[((1 + by(3)) % 13) % 24] += n as u64;
            if let Some(&(mut a)) = list.get(a) {
                u.put(0..2).to(rest.next().unwrap_or(1) % u.size(), (a + 4) % 20)?;
                u.put([5]).to(rest.next().unwrap_or(4) % u.size(), (a + 5) % 20)?;
            }
        }
        u.put(part.clone()).to(((((a + b) % 13) + b) % 13) % u.size(), (small(u.rank())? + 6) % 20)?;
        Ok(())
    }
    sliced drawn_246(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(n) {
            let Some(&b) = list.get(small(b)?) else { return Err(bad("none")) };
            let mut b = b;
        }
        u.accumulate(&values, Op::Sum).to(((({ a = (a + 1) % 9; a }) + list.len()) % 13) % u.size(), (((a + b) % 13) + 1) % 20)?;
        if let Some(&(mut a)) = list.get(u.rank()) {
            a ^= small(rest.next().unwrap_or(2))? % 4;
        }
        u.put(&values).to(a % u.size(), (a + 2) % 20)?;
        u.put(&values).to(n % u.size(), (u.rank() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_247(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..3 % 4 {
            'l2: for i in 0..a % 4 {
                validated(list, &u[..])?;
            }
        }
        u.put(&values).to(b % u.size(), (n + 3) % 20)?;
        u.put([u[23], 4]).to(6 % u.size(), (b + 4) % 20)?;
        u.put(&values).to(pick(list, ((b + u.rank()) % 13)) % u.size(), (a + 5) % 20)?;
        Ok(())
    }
    sliced drawn_248(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if u.rank() > 7 {
            if (k % 2 == 0 && rest.next().is_some()) {
                u.put([u.rank() as u64]).to(pick(list, a) % u.size(), (n + 1) % 20)?;
            }
            u.accumulate(0..2, Op::Sum).to(a % u.size(), (a + 2) % 20)?;
        } else {
            match list.len() % 3 {
                0 => {
                    validate(list)?;
                    rest.next();
                }
                1 if b % 2 == 0 => {
                    u.accumulate([((all.pop().unwrap_or(4) + by(list.len())) % 13) as u64], Op::Sum).to(6 % u.size(), (((a + u.rank()) % 13) + 3) % 20)?;
                }
                _ => {
                    if ({ a = (a + 1) % 9; a }) > 6 { return Err(bad("drawn")); }
                    let mut a = all.pop().unwrap_or(3);
                }
            }
        }
        if a > 7 {
            if matches!(list.len() % 3, 0 | 2) {
                'l4: for i in 0..a % 4 {
                    let _ = rest.next().unwrap_or(3) > 0 && (b > 6 && b % 2 == 0);
                    if all.contains(&1) { return Ok(()); }
                }
                u.put(0..2).to(small(((b + a) % 13))? % u.size(), (small(k)? + 5) % 20)?;
            }
            validated(list, &u[..])?;
        }
        if (b > 0 || a > 7) {
            let _ = (rest.next().is_some() && rest.next().is_some()) || a > 3;
            a = all.pop().unwrap_or(3) % 13;
        } else {
            let mut w6 = 0;
            'l6: while w6 < b % 4 {
                w6 += 1;
                let mut b = all.pop().unwrap_or(4);
            }
        }
        u.accumulate([7], Op::Sum).to(a % u.size(), (((b + n) % 13) + 7) % 20)?;
        u.put([u[20], 8]).to(pick(list, a) % u.size(), (a + 8) % 20)?;
        u.put(0..2).to(((b + k) % 13) % u.size(), (((list.len() + 0) % 13) + 9) % 20)?;
        u.put([u[17], 10]).to(n % u.size(), (a + 10) % 20)?;
        Ok(())
    }
    sliced drawn_249(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(((a + u.rank()) % 13)) else { return Err(bad("none")) };
        let mut b = b;
        u.accumulate(0..2, Op::Sum).to(pick(list, rest.next().unwrap_or(4)) % u.size(), (b + 1) % 20)?;
        if all.pop().unwrap_or(4) > 6 { return Err(bad("drawn")); }
        u.put([2]).to(n % u.size(), (1 + 2) % 20)?;
        Ok(())
    }
    sliced drawn_250(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(part.clone(), Op::Sum).to(all.pop().unwrap_or(2) % u.size(), (b + 1) % 20)?;
        if let Some(&(mut a)) = list.get(pick(list, b)) {
            if list.len() % 2 == 0 {
                'l2: for i in 0..u.rank() % 4 {
                    u.put([3]).to(list.len() % u.size(), (rest.next().unwrap_or(4) + 3) % 20)?;
                    u.accumulate(&values, Op::Sum).to(a % u.size(), (small(2)? + 4) % 20)?;
                }
            } else {
                if (b > 0 && rest.next().is_some()) { Err(bad("drawn"))?; }
            }
        }
        u.put([u[5], 5]).to(by(({ a = (a + 2) % 9; a })) % u.size(), (({ a = (a + 1) % 9; a }) + 5) % 20)?;
        u.put(part.clone()).to(rest.next().unwrap_or(1) % u.size(), (n + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_251(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match u.rank() % 3 {
            0 => {
                u.accumulate(&values, Op::Sum).to(by(((3 + k) % 13)) % u.size(), (k + 1) % 20)?;
                if u[5] > 150 {
                    validated(list, &u[..])?;
                }
            }
            1 if rest.next().is_some() => {
                let mut w2 = 0;
                'l2: while w2 < b % 4 {
                    w2 += 1;
                    let _ = pick(list, 3) > 0 && (((1 + k) % 13) > 4 && 3 % 2 == 0);
                }
            }
            _ => {
                let _checked = small(k)?;
                u.put(0..2).to(({ a = (a + 1) % 9; a }) % u.size(), (all.pop().unwrap_or(3) + 3) % 20)?;
            }
        }
        if ((rest.next().is_some() || ({ a = (a + 2) % 9; a }) % 2 == 0) && (((list.len() + k) % 13) > 0 && rest.next().is_some())) {
            a = b % 13;
        }
        if n % 2 == 0 {
            let mut w4 = 0;
            'l4: while w4 < rest.next().unwrap_or(0) % 4 {
                w4 += 1;
                u.put([u[2], 5]).to(a % u.size(), (a + 5) % 20)?;
            }
        } else {
            u.put([a as u64]).to(({ a = (a + 1) % 9; a }) % u.size(), (((a + 4) % 13) + 6) % 20)?;
        }
        'l7: for i in 0..u.rank() % 4 {
            validated(list, &u[..])?;
            'l8: for i in 0..n % 4 {
                if matches!(a % 3, 0 | 2) {
                    rest.next();
                    u.put([k as u64]).to(({ a = (a + 1) % 9; a }) % u.size(), (b + 9) % 20)?;
                } else {
                    a ^= rest.next().unwrap_or(4) % 4;
                }
            }
        }
        u.accumulate([10], Op::Sum).to(pick(list, ((n + u.rank()) % 13)) % u.size(), (rest.next().unwrap_or(4) + 10) % 20)?;
        Ok(())
    }
    sliced drawn_252(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u[8], 1]).to(((by(k) + a) % 13) % u.size(), (rest.next().unwrap_or(3) + 1) % 20)?;
        a = a % 13;
        all.truncate(a);
        u.accumulate([2], Op::Sum).to(((a + n) % 13) % u.size(), (pick(list, a) + 2) % 20)?;
        Ok(())
    }
    sliced drawn_253(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a ^= u.rank() % 4;
        u.put([1]).to(a % u.size(), (k + 1) % 20)?;
        match b % 3 {
            0 => {
                u.put(&values).to(by(rest.next().unwrap_or(0)) % u.size(), (b + 2) % 20)?;
                all.reverse();
            }
            1 if small(b)? > 7 => {
                u.put([u[1], 3]).to(pick(list, list.len()) % u.size(), (a + 3) % 20)?;
                let Some(&b) = list.get(a) else { return Err(bad("none")) };
                let mut b = b;
            }
            _ => {
                b = 5 % 13;
            }
        }
        'l4: for i in 0..4 % 4 {
            u.put([u[14], 5]).to(rest.next().unwrap_or(1) % u.size(), (a + 5) % 20)?;
        }
        if let Some(&(mut a)) = list.get(b) {
            let _ = (rest.next().is_some() && k > 1) && (b % 2 == 0 || n > 5);
            u.put([6]).to(n % u.size(), (((a + a) % 13) + 6) % 20)?;
        }
        u.put(&values).to(all.pop().unwrap_or(0) % u.size(), (2 + 7) % 20)?;
        Ok(())
    }
    sliced drawn_254(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..n % 4 {
            let mut b = pick(list, k);
        }
        if let Some(&(mut a)) = list.get(b) {
            u[rest.next().unwrap_or(0) % 24] += ((list.len() + b) % 13) as u64;
            u.put(part.clone()).to(small(a)? % u.size(), (((a + u.rank()) % 13) + 2) % 20)?;
        }
        if 1 > 6 {
            u[k % 24] += pick(list, rest.next().unwrap_or(1)) as u64;
        }
        u.put(part.clone()).to(n % u.size(), (b + 3) % 20)?;
        Ok(())
    }
    sliced drawn_255(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(&values, Op::Sum).to(((n + a) % 13) % u.size(), (list.len() + 1) % 20)?;
        if pick(list, b) % 2 == 0 {
            small(b)?;
        }
        u.accumulate(&values, Op::Sum).to(a % u.size(), (n + 2) % 20)?;
        u.put(part.clone()).to(6 % u.size(), (({ a = (a + 2) % 9; a }) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_256(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(a % u.size(), (((7 + 5) % 13) + 1) % 20)?;
        all.push(rest.next().unwrap_or(2));
        if (((a + k) % 13) > 7 && (({ a = (a + 1) % 9; a }) % 2 == 0 && b > 6)) {
            u.put([u[8], 2]).to(by(by(a)) % u.size(), (0 + 2) % 20)?;
        }
        if b > 5 {
            let mut b = b;
            if let Some(&(mut a)) = list.get(u[16] as usize) {
                let mut w3 = 0;
                'l3: while w3 < u.rank() % 4 {
                    w3 += 1;
                    u.put([list.len() as u64]).to(rest.next().unwrap_or(3) % u.size(), (rest.next().unwrap_or(0) + 4) % 20)?;
                }
            }
        } else {
            let mut w5 = 0;
            'l5: while w5 < list.len() % 4 {
                w5 += 1;
                if (by(list.len()) > 2 || k % 2 == 0) { break 'l5; }
            }
        }
        validated(list, &u[..])?;
        b ^= pick(list, n) % 4;
        u.put([u[1], 6]).to(list.len() % u.size(), (b + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_257(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        all.truncate(small(b)?);
        if matches!(list.len() % 3, 0 | 2) {
            match rest.next().unwrap_or(1) % 3 {
                0 => {
                    if u[6] > 150 { Err(bad("drawn"))?; }
                }
                1 if all.pop().unwrap_or(1) % 2 == 0 => {
                    u.put([u[4], 1]).to(u.rank() % u.size(), (((a + n) % 13) + 1) % 20)?;
                }
                _ => {
                    u.put(&values).to(b % u.size(), (pick(list, u.rank()) + 2) % 20)?;
                    u.put([u[13], 3]).to(all.pop().unwrap_or(2) % u.size(), (n + 3) % 20)?;
                }
            }
        } else {
            all.truncate(b);
        }
        if let Some(&(mut a)) = list.get(((a + b) % 13)) {
            validated(list, &u[..])?;
            b = ((all.pop().unwrap_or(3) + u[4] as usize) % 13) % 13;
        }
        'l4: for i in 0..rest.next().unwrap_or(0) % 4 {
            let Some(&b) = list.get(((k + n) % 13)) else { return Err(bad("none")) };
            let mut b = b;
            if all.contains(&3) {
                if rest.next().is_some() {
                    let _ = a > 4 || b > 1;
                }
                a ^= n % 4;
            }
        }
        u.put([n as u64]).to(u.rank() % u.size(), (a + 5) % 20)?;
        Ok(())
    }
    sliced drawn_258(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (b > 0 && list.len() % 2 == 0) {
            if let Some(&(mut a)) = list.get(((a + a) % 13)) {
                'l1: for i in 0..b % 4 {
                    all.sort();
                }
                b = k % 13;
            }
        } else {
            u.put([2]).to(pick(list, pick(list, b)) % u.size(), (list.len() + 2) % 20)?;
        }
        let mut w3 = 0;
        'l3: while w3 < n % 4 {
            w3 += 1;
            'l4: for i in 0..({ a = (a + 3) % 9; a }) % 4 {
                a ^= ((({ a = (a + 3) % 9; a }) + list.len()) % 13) % 4;
                'l5: for i in 0..small(a)? % 4 {
                    u.put([6]).to(a % u.size(), (rest.next().unwrap_or(0) + 6) % 20)?;
                    u.put(&values).to(b % u.size(), (((a + a) % 13) + 7) % 20)?;
                }
            }
        }
        u.put([k as u64]).to(((u.rank() + list.len()) % 13) % u.size(), (pick(list, 2) + 8) % 20)?;
        small(((k + b) % 13))?;
        all.push(by(b));
        u.put([u[8], 9]).to(k % u.size(), (k + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_259(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (((k + b) % 13) % 2 == 0 && 7 > 0) {
            u.put([1]).to(small(pick(list, b))? % u.size(), (list.len() + 1) % 20)?;
        } else {
            u.put([2]).to(by(b) % u.size(), (u.rank() + 2) % 20)?;
        }
        if matches!(a % 3, 0 | 2) {
            u.accumulate(part.clone(), Op::Sum).to(pick(list, ({ a = (a + 3) % 9; a })) % u.size(), (a + 3) % 20)?;
        }
        all.push(b);
        u.put([u[19], 4]).to(a % u.size(), (u.rank() + 4) % 20)?;
        'l5: for i in 0..list.len() % 4 {
            u.accumulate(&values, Op::Sum).to(a % u.size(), (n + 6) % 20)?;
            let mut w7 = 0;
            'l7: while w7 < b % 4 {
                w7 += 1;
                u.put([1 as u64]).to(a % u.size(), (u[11] as usize + 8) % 20)?;
            }
        }
        u.accumulate([((b + a) % 13) as u64], Op::Sum).to(by(a) % u.size(), (((u.rank() + list.len()) % 13) + 9) % 20)?;
        Ok(())
    }
    sliced drawn_260(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([a as u64]).to(a % u.size(), (rest.next().unwrap_or(1) + 1) % 20)?;
        let mut w2 = 0;
        'l2: while w2 < ({ a = (a + 3) % 9; a }) % 4 {
            w2 += 1;
            let mut b = b;
        }
        let mut w3 = 0;
        'l3: while w3 < b % 4 {
            w3 += 1;
            let mut w4 = 0;
            'l4: while w4 < n % 4 {
                w4 += 1;
                match 5 % 3 {
                    0 => {
                        u.put([small(list.len())? as u64]).to(a % u.size(), (rest.next().unwrap_or(0) + 5) % 20)?;
                        let _ = ((b + list.len()) % 13) > 4 || (rest.next().is_some() && list.len() > 2);
                    }
                    1 if a > 6 => {
                        u.put(&values).to(small(a)? % u.size(), (6 + 6) % 20)?;
                        u.accumulate([n as u64], Op::Sum).to(((rest.next().unwrap_or(0) + by(b)) % 13) % u.size(), (rest.next().unwrap_or(0) + 7) % 20)?;
                    }
                    _ => {
                        u.put(&values).to(by(((b + 5) % 13)) % u.size(), (4 + 8) % 20)?;
                    }
                }
            }
        }
        let mut w9 = 0;
        'l9: while w9 < all.pop().unwrap_or(0) % 4 {
            w9 += 1;
            match pick(list, n) % 3 {
                0 => {
                    let _checked = small(b)?;
                }
                1 if rest.next().is_some() => {
                    if (rest.next().is_some() && b > 0) { continue 'l9; }
                    u.accumulate(&values, Op::Sum).to(rest.next().unwrap_or(0) % u.size(), (n + 10) % 20)?;
                }
                _ => {
                    all.push(rest.next().unwrap_or(4));
                }
            }
        }
        u.put([by(pick(list, b)) as u64]).to(list.len() % u.size(), (n + 11) % 20)?;
        Ok(())
    }
    sliced drawn_261(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((rest.next().is_some() || n % 2 == 0) && small(b)? > 2) {
            'l1: for i in 0..by(2) % 4 {
                if (b > 0 && b > 0) {
                    let mut b = by(small(a)?);
                    let _ = n % 2 == 0 && (rest.next().unwrap_or(1) > 5 || u.rank() % 2 == 0);
                } else {
                    u.put([small(a)? as u64]).to(all.pop().unwrap_or(0) % u.size(), (u.rank() + 2) % 20)?;
                }
            }
        }
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        validated(list, &u[..])?;
        let mut b = by(a);
        let _ = (rest.next().is_some() && a % 2 == 0) || k > 5;
        if let Some(&(mut a)) = list.get(k) {
            values[0] = u[5];
            if all.pop().unwrap_or(1) % 2 == 0 { Err(bad("drawn"))?; }
        }
        u.put([u[5], 3]).to(rest.next().unwrap_or(0) % u.size(), (list.len() + 3) % 20)?;
        Ok(())
    }
    sliced drawn_262(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validated(list, &u[..])?;
        u.put([u[14], 1]).to(all.pop().unwrap_or(1) % u.size(), (b + 1) % 20)?;
        u.put([pick(list, 5) as u64]).to(b % u.size(), (small(n)? + 2) % 20)?;
        let mut b = b;
        let mut a = rest.next().unwrap_or(1);
        u.put([b as u64]).to(({ a = (a + 1) % 9; a }) % u.size(), (small(a)? + 3) % 20)?;
        Ok(())
    }
    sliced drawn_263(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        all.sort();
        if matches!(8 % 3, 0 | 2) {
            if a > 7 { return Err(bad("drawn")); }
        }
        u[b % 24] += k as u64;
        'l1: for i in 0..all.pop().unwrap_or(3) % 4 {
            if rest.next().is_some() { break 'l1; }
            values[0] = u[5];
        }
        u[pick(list, 8) % 24] += 3 as u64;
        if rest.next().is_some() { return Err(bad("drawn")); }
        u.put(0..2).to(((pick(list, a) + n) % 13) % u.size(), (a + 2) % 20)?;
        Ok(())
    }
    sliced drawn_264(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        validated(list, &u[..])?;
        let mut w1 = 0;
        'l1: while w1 < pick(list, n) % 4 {
            w1 += 1;
            b = 2 % 13;
        }
        if all.contains(&7) { return Err(bad("drawn")); }
        u.put(&values).to(n % u.size(), (a + 2) % 20)?;
        let _ = rest.next().unwrap_or(2) > 6 || matches!(n % 3, 0 | 2);
        let Some(&b) = list.get(a) else { return Err(bad("none")) };
        let mut b = b;
        u.accumulate(&values, Op::Sum).to(u.rank() % u.size(), (((k + a) % 13) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_265(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if ((k + a) % 13) > 1 { return Err(bad("drawn")); }
        b ^= ((small(a)? + k) % 13) % 4;
        let _ = ({ a = (a + 3) % 9; a }) > 0 && n % 2 == 0;
        if let Some(&(mut a)) = list.get(((a + u.rank()) % 13)) {
            let mut a = a;
            u.put([u[9], 1]).to(a % u.size(), (((b + k) % 13) + 1) % 20)?;
        }
        u.put([k as u64]).to(rest.next().unwrap_or(3) % u.size(), (((b + b) % 13) + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_266(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(by(k)) {
            if all.contains(&0) {
                let mut a = u.rank();
                let _checked = small(all.pop().unwrap_or(1))?;
            } else {
                match rest.next().unwrap_or(3) % 3 {
                    0 => {
                        u.put(&values).to(a % u.size(), (by(b) + 1) % 20)?;
                    }
                    1 if k % 2 == 0 => {
                        rest.next();
                        u.accumulate([2], Op::Sum).to(a % u.size(), (rest.next().unwrap_or(1) + 2) % 20)?;
                    }
                    _ => {
                        let mut a = small(4)?;
                    }
                }
            }
            let _ = list.len() > 2 && rest.next().is_some();
        }
        if by(u.rank()) % 2 == 0 {
            let mut w3 = 0;
            'l3: while w3 < ((a + b) % 13) % 4 {
                w3 += 1;
                let mut w4 = 0;
                'l4: while w4 < n % 4 {
                    w4 += 1;
                    all.push(k);
                }
            }
        }
        if matches!(b % 3, 0 | 2) { return Err(bad("drawn")); }
        u.put(0..2).to(all.pop().unwrap_or(3) % u.size(), (pick(list, b) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_267(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..b % 4 {
            let _ = list.len() > 5 && a > 6;
            let mut a = pick(list, b);
        }
        u.put([2]).to(list.len() % u.size(), (all.pop().unwrap_or(4) + 2) % 20)?;
        let mut a = small(({ a = (a + 3) % 9; a }))?;
        if let Some(&(mut a)) = list.get(((a + 4) % 13)) {
            u.put(0..2).to(((u.rank() + pick(list, a)) % 13) % u.size(), (b + 3) % 20)?;
        }
        validated(list, &u[..])?;
        let mut w4 = 0;
        'l4: while w4 < ({ a = (a + 3) % 9; a }) % 4 {
            w4 += 1;
            'l5: for i in 0..({ a = (a + 1) % 9; a }) % 4 {
                u.accumulate(part.clone(), Op::Sum).to(0 % u.size(), (rest.next().unwrap_or(0) + 6) % 20)?;
                a ^= 1 % 4;
            }
        }
        u.put(&values).to(((b + b) % 13) % u.size(), (rest.next().unwrap_or(4) + 7) % 20)?;
        Ok(())
    }
    sliced drawn_268(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if pick(list, a) > 3 {
            u.put(&values).to(k % u.size(), (small(a)? + 1) % 20)?;
        } else {
            u.put([2]).to(all.pop().unwrap_or(2) % u.size(), (((list.len() + u.rank()) % 13) + 2) % 20)?;
        }
        u.put(0..2).to(pick(list, b) % u.size(), (by(n) + 3) % 20)?;
        'l4: for i in 0..rest.next().unwrap_or(2) % 4 {
            if all.contains(&5) {
                match pick(list, k) % 3 {
                    0 => {
                        u.accumulate([5], Op::Sum).to(all.pop().unwrap_or(0) % u.size(), (all.pop().unwrap_or(4) + 5) % 20)?;
                        u.accumulate([all.pop().unwrap_or(0) as u64], Op::Sum).to(small(small(a)?)? % u.size(), (1 + 6) % 20)?;
                    }
                    1 if rest.next().is_some() => {
                        u.put([7]).to(pick(list, b) % u.size(), (k + 7) % 20)?;
                    }
                    _ => {
                        u.put([u[6], 8]).to(b % u.size(), (rest.next().unwrap_or(2) + 8) % 20)?;
                        validated(list, &u[..])?;
                    }
                }
                if a % 2 == 0 { continue 'l4; }
            } else {
                all.sort();
            }
            if 5 % 2 == 0 { return Err(bad("drawn")); }
        }
        a ^= k % 4;
        validated(list, &u[..])?;
        if all.pop().unwrap_or(0) > 7 {
            let _ = k > 0 && (n % 2 == 0 || ((6 + a) % 13) % 2 == 0);
            'l9: for i in 0..((k + u.rank()) % 13) % 4 {
                b ^= by(by(b)) % 4;
            }
        } else {
            if rest.next().is_some() { Err(bad("drawn"))?; }
        }
        u.put([u[9], 10]).to(b % u.size(), (all.pop().unwrap_or(2) + 10) % 20)?;
        Ok(())
    }
    dynamic drawn_269(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        ensure!(b < 12, "great");
        u.put([u[21], 1]).to(((rest.next().unwrap_or(0) + n) % 13) % u.size(), (((list.len() + k) % 13) + 1) % 20)?;
        u.put(&values).to(u.rank() % u.size(), (a + 2) % 20)?;
        a ^= all.pop().unwrap_or(1) % 4;
        if rest.next().is_some() {
            u[((3 + a) % 13) % 24] += k as u64;
            if b % 2 == 0 {
                if ((b + b) % 13) > 6 {
                    u.put([u[18], 3]).to(1 % u.size(), (rest.next().unwrap_or(0) + 3) % 20)?;
                    if rest.next().is_some() { return Err(bad("drawn")); }
                } else {
                    b = u.rank() % 13;
                }
            }
        }
        let mut w4 = 0;
        'l4: while w4 < a % 4 {
            w4 += 1;
            let _checked = small(list.len())?;
        }
        u.put([k as u64]).to(((b + n) % 13) % u.size(), (all.pop().unwrap_or(4) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_270(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        ensure!(k < 12, "great");
        u.accumulate([({ a = (a + 1) % 9; a }) as u64], Op::Sum).to(((by(n) + small(a)?) % 13) % u.size(), (b + 1) % 20)?;
        let mut a = a;
        let mut b = pick(list, k);
        u.put(part.clone()).to(pick(list, a) % u.size(), (b + 2) % 20)?;
        u.put([3]).to(k % u.size(), (rest.next().unwrap_or(3) + 3) % 20)?;
        Ok(())
    }
    dynamic drawn_271(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u[3 % 24] += ((a + b) % 13) as u64;
        if rest.next().is_some() {
            a = a % 13;
            if rest.next().is_some() {
                u.put([5 as u64]).to(k % u.size(), (((b + a) % 13) + 1) % 20)?;
                u.put(&values).to(rest.next().unwrap_or(3) % u.size(), (k + 2) % 20)?;
            } else {
                u.put(part.clone()).to(4 % u.size(), (list.len() + 3) % 20)?;
            }
        }
        if matches!(k % 3, 0 | 2) {
            if a > 2 {
                let mut b = 8;
                a ^= list.len() % 4;
            } else {
                if u[5] > 150 {
                    u[a % 24] += pick(list, b) as u64;
                    ensure!(n < 12, "great");
                } else {
                    u.put([u[10], 4]).to(list.len() % u.size(), (rest.next().unwrap_or(3) + 4) % 20)?;
                }
            }
        }
        if rest.next().is_some() { return Err(bad("drawn")); }
        u.put([u[23], 5]).to(u.rank() % u.size(), (n + 5) % 20)?;
        u.put([u[8], 6]).to(n % u.size(), (6 + 6) % 20)?;
        Ok(())
    }
    dynamic drawn_272(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..list.len() % 4 {
            let mut w2 = 0;
            'l2: while w2 < rest.next().unwrap_or(0) % 4 {
                w2 += 1;
                match u[13] as usize % 3 {
                    0 => {
                        u[b % 24] += k as u64;
                    }
                    1 if a % 2 == 0 => {
                        a ^= k % 4;
                    }
                    _ => {
                        u.put([u[15], 3]).to(b % u.size(), (by(b) + 3) % 20)?;
                    }
                }
            }
        }
        b = ((((k + 7) % 13) + by(k)) % 13) % 13;
        if b > 6 { return Err(bad("drawn")); }
        if (rest.next().is_some() || pick(list, b) % 2 == 0) { return Ok(()); }
        let _ = (small(u.rank())? > 4 && rest.next().is_some()) || matches!(b % 3, 0 | 2);
        u.put(part.clone()).to(b % u.size(), (by(a) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_273(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..n % 4 {
            if rest.next().is_some() { return Err(bad("drawn")); }
        }
        'l2: for i in 0..b % 4 {
            let mut b = a;
            u.put(0..2).to(rest.next().unwrap_or(0) % u.size(), (({ a = (a + 2) % 9; a }) + 3) % 20)?;
        }
        if let Some(&(mut a)) = list.get(small(k)?) {
            'l4: for i in 0..a % 4 {
                u.put([by(((k + u.rank()) % 13)) as u64]).to(pick(list, all.pop().unwrap_or(4)) % u.size(), (n + 5) % 20)?;
            }
        }
        'l6: for i in 0..0 % 4 {
            u.accumulate([u[3], 7], Op::Sum).to(k % u.size(), (list.len() + 7) % 20)?;
        }
        u.put([u[20], 8]).to(all.pop().unwrap_or(4) % u.size(), (by(b) + 8) % 20)?;
        Ok(())
    }
    dynamic drawn_274(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if small(u.rank())? > 3 {
            u.accumulate([1], Op::Sum).to(pick(list, 7) % u.size(), (pick(list, a) + 1) % 20)?;
            if matches!(a % 3, 0 | 2) {
                u.put(&values).to(small(by(b))? % u.size(), (k + 2) % 20)?;
            } else {
                if (b % 2 == 0 && u.rank() > 6) {
                    if a % 2 == 0 { Err(bad("drawn"))?; }
                    u[pick(list, 3) % 24] += all.pop().unwrap_or(4) as u64;
                }
            }
        } else {
            'l3: for i in 0..k % 4 {
                u[a % 24] += a as u64;
            }
        }
        if let Some(&(mut a)) = list.get(((b + b) % 13)) {
            u.accumulate([4], Op::Sum).to(a % u.size(), (b + 4) % 20)?;
            if let Some(&(mut a)) = list.get(b) {
                'l5: for i in 0..2 % 4 {
                    u.accumulate([u.rank() as u64], Op::Sum).to(((small(5)? + n) % 13) % u.size(), (((k + a) % 13) + 6) % 20)?;
                }
                u.put([small(((4 + a) % 13))? as u64]).to(u.rank() % u.size(), (list.len() + 7) % 20)?;
            }
        }
        u.put([u[0], 8]).to(u.rank() % u.size(), (small(b)? + 8) % 20)?;
        'l9: for i in 0..pick(list, a) % 4 {
            b = ((pick(list, u.rank()) + u.rank()) % 13) % 13;
        }
        'l10: for i in 0..a % 4 {
            b = b % 13;
        }
        match u.rank() % 3 {
            0 => {
                let mut w11 = 0;
                'l11: while w11 < a % 4 {
                    w11 += 1;
                    b ^= n % 4;
                }
            }
            1 if rest.next().is_some() => {
                if b % 2 == 0 {
                    u[list.len() % 24] += pick(list, list.len()) as u64;
                }
                match list.len() % 3 {
                    0 => {
                        u.put([all.pop().unwrap_or(0) as u64]).to(a % u.size(), (k + 12) % 20)?;
                        rest.next();
                    }
                    1 if list.len() > 4 => {
                        u.accumulate(0..2, Op::Sum).to(((small(3)? + pick(list, 6)) % 13) % u.size(), (7 + 13) % 20)?;
                    }
                    _ => {
                        u[b % 24] += list.len() as u64;
                    }
                }
            }
            _ => {
                u.put(0..2).to(u.rank() % u.size(), (a + 14) % 20)?;
            }
        }
        u.put(&values).to(a % u.size(), (all.pop().unwrap_or(0) + 15) % 20)?;
        Ok(())
    }
    sliced drawn_275(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (a > 7 || all.pop().unwrap_or(4) % 2 == 0) {
            u.put(part.clone()).to(6 % u.size(), (((k + k) % 13) + 1) % 20)?;
        } else {
            if rest.next().is_some() { Err(bad("drawn"))?; }
        }
        if rest.next().is_some() { return Err(bad("drawn")); }
        if k > 0 { return Err(bad("drawn")); }
        if all.pop().unwrap_or(1) > 6 {
            'l2: for i in 0..u.rank() % 4 {
                u.put(&values).to(b % u.size(), (4 + 3) % 20)?;
            }
        }
        if let Some(&(mut a)) = list.get(((k + b) % 13)) {
            let _ = rest.next().is_some() || (rest.next().is_some() || rest.next().is_some());
        }
        u.accumulate(part.clone(), Op::Sum).to(a % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    replay drawn_276(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(b % u.size(), (all.pop().unwrap_or(4) + 1) % 20)?;
        all.truncate(({ a = (a + 2) % 9; a }));
        all.sort();
        u.put(0..2).to(((list.len() + all.pop().unwrap_or(3)) % 13) % u.size(), (by(list.len()) + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_277(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..by(a) % 4 {
            u.put([rest.next().unwrap_or(0) as u64]).to(((list.len() + ((b + b) % 13)) % 13) % u.size(), (pick(list, b) + 2) % 20)?;
            a = n % 13;
        }
        if ({ a = (a + 3) % 9; a }) > 6 {
            if let Some(&(mut a)) = list.get(u.rank()) {
                u.put(0..2).to(a % u.size(), (((k + list.len()) % 13) + 3) % 20)?;
                let mut w4 = 0;
                'l4: while w4 < small(b)? % 4 {
                    w4 += 1;
                    let _ = rest.next().is_some() && rest.next().unwrap_or(1) > 6;
                }
            }
            if matches!(b % 3, 0 | 2) { Err(bad("drawn"))?; }
        } else {
            'l5: for i in 0..b % 4 {
                a ^= list.len() % 4;
            }
        }
        if matches!(list.len() % 3, 0 | 2) { return Ok(()); }
        let mut w6 = 0;
        'l6: while w6 < a % 4 {
            w6 += 1;
            validated(list, &u[..])?;
        }
        u.put(&values).to(list.len() % u.size(), (n + 7) % 20)?;
        Ok(())
    }
    sliced drawn_278(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(by(k) % u.size(), (u.rank() + 1) % 20)?;
        'l2: for i in 0..((3 + 3) % 13) % 4 {
            match rest.next().unwrap_or(0) % 3 {
                0 => {
                    b ^= u.rank() % 4;
                }
                1 if a > 7 => {
                    u.put([u[16], 3]).to(small(a)? % u.size(), (((u.rank() + a) % 13) + 3) % 20)?;
                }
                _ => {
                    let mut a = n;
                    b ^= u.rank() % 4;
                }
            }
        }
        if n % 2 == 0 {
            validate(list)?;
            b = small(list.len())? % 13;
        }
        u.put(part.clone()).to(k % u.size(), (all.pop().unwrap_or(2) + 4) % 20)?;
        u.put(&values).to(all.pop().unwrap_or(0) % u.size(), (((n + n) % 13) + 5) % 20)?;
        u.put(0..2).to(small(rest.next().unwrap_or(4))? % u.size(), (all.pop().unwrap_or(0) + 6) % 20)?;
        Ok(())
    }
    sliced drawn_279(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(u.rank()) {
            if b > 2 {
                u[pick(list, b) % 24] += a as u64;
            } else {
                if ((a + b) % 13) > 7 {
                    let mut a = a;
                }
            }
            u.put(0..2).to(k % u.size(), (rest.next().unwrap_or(0) + 1) % 20)?;
        }
        b ^= small(b)? % 4;
        'l2: for i in 0..all.pop().unwrap_or(4) % 4 {
            a ^= a % 4;
            u.accumulate([0 as u64], Op::Sum).to(pick(list, pick(list, list.len())) % u.size(), (((k + a) % 13) + 3) % 20)?;
        }
        if all.contains(&1) {
            if u.rank() > 1 {
                u.put([u[10], 4]).to(k % u.size(), (rest.next().unwrap_or(3) + 4) % 20)?;
                u.put([list.len() as u64]).to(small(by(k))? % u.size(), (small(5)? + 5) % 20)?;
            }
            let mut w6 = 0;
            'l6: while w6 < b % 4 {
                w6 += 1;
                let _checked = small(all.pop().unwrap_or(3))?;
            }
        } else {
            u.put(part.clone()).to(b % u.size(), (3 + 7) % 20)?;
        }
        if let Some(&(mut a)) = list.get(small(k)?) {
            small(by(b))?;
            if ((n + 4) % 13) > 3 {
                let Some(&b) = list.get(((k + a) % 13)) else { return Err(bad("none")) };
                let mut b = b;
            } else {
                a ^= b % 4;
            }
        }
        'l8: for i in 0..n % 4 {
            u[a % 24] += rest.next().unwrap_or(0) as u64;
            if matches!(list.len() % 3, 0 | 2) { continue 'l8; }
        }
        u.put([9]).to(small(small(u.rank())?)? % u.size(), (0 + 9) % 20)?;
        Ok(())
    }
    dynamic drawn_280(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        part.start = (part.start + 1) % part.end;
        if rest.next().unwrap_or(0) > 3 {
            if all.contains(&4) {
                a ^= small(a)? % 4;
                b = a % 13;
            } else {
                'l1: for i in 0..n % 4 {
                    a = all.pop().unwrap_or(2) % 13;
                }
            }
        } else {
            small(list.len())?;
        }
        if rest.next().is_some() {
            all.reverse();
            u[all.pop().unwrap_or(3) % 24] += a as u64;
        }
        if let Some(&(mut a)) = list.get(small(b)?) {
            if (matches!(b % 3, 0 | 2) || all.pop().unwrap_or(0) % 2 == 0) {
                if rest.next().is_some() {
                    if all.pop().unwrap_or(2) > 6 { return Ok(()); }
                    a ^= ({ a = (a + 3) % 9; a }) % 4;
                } else {
                    let mut a = u.rank();
                }
                a ^= k % 4;
            }
            u.put([2]).to(({ a = (a + 1) % 9; a }) % u.size(), (((u.rank() + u.rank()) % 13) + 2) % 20)?;
        }
        u.put([u[1], 3]).to(a % u.size(), (((b + u.rank()) % 13) + 3) % 20)?;
        u.accumulate([u[12] as usize as u64], Op::Sum).to(({ a = (a + 2) % 9; a }) % u.size(), (n + 4) % 20)?;
        Ok(())
    }
    sliced drawn_281(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match a % 3 {
            0 => {
                u.put([u[13], 1]).to(b % u.size(), (n + 1) % 20)?;
            }
            1 if rest.next().is_some() => {
                u.put(part.clone()).to(((({ a = (a + 3) % 9; a }) + u.rank()) % 13) % u.size(), (({ a = (a + 1) % 9; a }) + 2) % 20)?;
                let _ = all.contains(&1) || (a % 2 == 0 && pick(list, b) > 4);
            }
            _ => {
                let Some(&b) = list.get(n) else { panic!("none") };
                let mut b = b;
            }
        }
        a ^= u.rank() % 4;
        u.put(0..2).to(n % u.size(), (pick(list, k) + 3) % 20)?;
        u.put([4]).to(by(a) % u.size(), (pick(list, n) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_282(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        a = a % 13;
        u.put([1]).to(((((list.len() + 0) % 13) + list.len()) % 13) % u.size(), (small(n)? + 1) % 20)?;
        if let Some(&(mut a)) = list.get(({ a = (a + 3) % 9; a })) {
            u[small(a)? % 24] += 3 as u64;
        }
        if all.contains(&7) {
            'l2: for i in 0..k % 4 {
                match all.pop().unwrap_or(2) % 3 {
                    0 => {
                        let _ = b % 2 == 0 || rest.next().unwrap_or(0) > 7;
                    }
                    1 if rest.next().is_some() => {
                        all.sort();
                        u.put([3]).to(b % u.size(), (rest.next().unwrap_or(4) + 3) % 20)?;
                    }
                    _ => {
                        values[0] = u[5];
                    }
                }
            }
        }
        u.put(0..2).to(list.len() % u.size(), (n + 4) % 20)?;
        'l5: for i in 0..u.rank() % 4 {
            let mut a = a;
            b ^= ({ a = (a + 3) % 9; a }) % 4;
        }
        u.put(0..2).to(rest.next().unwrap_or(0) % u.size(), (all.pop().unwrap_or(3) + 6) % 20)?;
        Ok(())
    }
    sliced drawn_283(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        all.push(list.len());
        if all.contains(&0) {
            u.put(part.clone()).to(n % u.size(), (a + 1) % 20)?;
        } else {
            b ^= rest.next().unwrap_or(3) % 4;
        }
        b = all.pop().unwrap_or(2) % 13;
        b = b % 13;
        u.put([2]).to(k % u.size(), (2 + 2) % 20)?;
        Ok(())
    }
    sliced drawn_284(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if let Some(&(mut a)) = list.get(((b + k) % 13)) {
            a ^= rest.next().unwrap_or(1) % 4;
        }
        let mut w1 = 0;
        'l1: while w1 < b % 4 {
            w1 += 1;
            u.put([2]).to(b % u.size(), (n + 2) % 20)?;
        }
        u.put([small(pick(list, 7))? as u64]).to(a % u.size(), (u.rank() + 3) % 20)?;
        u[b % 24] += a as u64;
        if all.contains(&2) { Err(bad("drawn"))?; }
        if all.contains(&5) {
            u[b % 24] += 5 as u64;
        } else {
            values[0] = u[5];
        }
        u.put([({ a = (a + 1) % 9; a }) as u64]).to(all.pop().unwrap_or(0) % u.size(), (a + 4) % 20)?;
        Ok(())
    }
    sliced drawn_285(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match rest.next().unwrap_or(1) % 3 {
            0 => {
                b ^= small(b)? % 4;
                if matches!(1 % 3, 0 | 2) {
                    let _ = ((a + a) % 13) % 2 == 0 && all.pop().unwrap_or(0) % 2 == 0;
                } else {
                    a ^= u.rank() % 4;
                }
            }
            1 if rest.next().is_some() => {
                a ^= list.len() % 4;
            }
            _ => {
                u.accumulate([1], Op::Sum).to(({ a = (a + 3) % 9; a }) % u.size(), (rest.next().unwrap_or(1) + 1) % 20)?;
            }
        }
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(0)) {
            if (matches!(1 % 3, 0 | 2) || (list.len() % 2 == 0 || u.rank() > 2)) {
                let mut a = rest.next().unwrap_or(0);
                u.put(part.clone()).to(rest.next().unwrap_or(1) % u.size(), (n + 2) % 20)?;
            }
            'l3: for i in 0..rest.next().unwrap_or(4) % 4 {
                if ({ a = (a + 2) % 9; a }) % 2 == 0 { return Err(bad("drawn")); }
            }
        }
        let _checked = small(small(1)?)?;
        u.put([small(by(u.rank()))? as u64]).to(((k + a) % 13) % u.size(), (a + 4) % 20)?;
        'l5: for i in 0..a % 4 {
            'l6: for i in 0..b % 4 {
                b = b % 13;
                a ^= u.rank() % 4;
            }
        }
        u.put(0..2).to(b % u.size(), (pick(list, a) + 7) % 20)?;
        Ok(())
    }
    sliced drawn_286(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..list.len() % 4 {
            match a % 3 {
                0 => {
                    if all.contains(&8) { return Err(bad("drawn")); }
                    let _ = u.rank() % 2 == 0 && u.rank() > 7;
                }
                1 if small(b)? > 4 => {
                    b ^= b % 4;
                    u.put([((b + pick(list, a)) % 13) as u64]).to(4 % u.size(), (small(2)? + 2) % 20)?;
                }
                _ => {
                    u.put([u[23], 3]).to(list.len() % u.size(), (a + 3) % 20)?;
                }
            }
        }
        let mut b = b;
        if let Some(&(mut a)) = list.get(rest.next().unwrap_or(0)) {
            part.end += 1;
            u.accumulate([4], Op::Sum).to(((b + b) % 13) % u.size(), (a + 4) % 20)?;
        }
        all.truncate(list.len());
        'l5: for i in 0..by(5) % 4 {
            'l6: for i in 0..all.pop().unwrap_or(0) % 4 {
                match ({ a = (a + 1) % 9; a }) % 3 {
                    0 => {
                        b ^= k % 4;
                    }
                    1 if a > 2 => {
                        u[({ a = (a + 1) % 9; a }) % 24] += b as u64;
                        if 7 > 1 { return Err(bad("drawn")); }
                    }
                    _ => {
                        let mut a = ({ a = (a + 1) % 9; a });
                        u.put(part.clone()).to(n % u.size(), (list.len() + 7) % 20)?;
                    }
                }
                let mut b = pick(list, k);
            }
        }
        let _ = rest.next().unwrap_or(2) > 6 && pick(list, n) > 5;
        u.put(&values).to(a % u.size(), (all.pop().unwrap_or(1) + 8) % 20)?;
        Ok(())
    }
    sliced drawn_287(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if all.contains(&4) {
            a ^= n % 4;
        }
        'l1: for i in 0..by(n) % 4 {
            u.put(part.clone()).to(small(5)? % u.size(), (b + 2) % 20)?;
            u.put(&values).to(k % u.size(), (rest.next().unwrap_or(3) + 3) % 20)?;
        }
        u.put(0..2).to(({ a = (a + 1) % 9; a }) % u.size(), (pick(list, b) + 4) % 20)?;
        u.put(0..2).to(b % u.size(), (({ a = (a + 3) % 9; a }) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_288(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let Some(&b) = list.get(list.len()) else { return Err(bad("none")) };
        let mut b = b;
        'l1: for i in 0..({ a = (a + 3) % 9; a }) % 4 {
            u.put(&values).to(by(4) % u.size(), (list.len() + 2) % 20)?;
            'l3: for i in 0..b % 4 {
                match small(list.len())? % 3 {
                    0 => {
                        b = all.pop().unwrap_or(1) % 13;
                    }
                    1 if pick(list, n) > 2 => {
                        u.put([u[6], 4]).to(list.len() % u.size(), (small(a)? + 4) % 20)?;
                    }
                    _ => {
                        b = by(by(b)) % 13;
                    }
                }
            }
        }
        b ^= by(a) % 4;
        u.put([5]).to(b % u.size(), (((2 + list.len()) % 13) + 5) % 20)?;
        Ok(())
    }
    sliced drawn_289(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if all.contains(&2) { Err(bad("drawn"))?; }
        let Some(&b) = list.get(b) else { return Err(bad("none")) };
        let mut b = b;
        if ((b + b) % 13) > 1 {
            if all.contains(&2) {
                let mut w1 = 0;
                'l1: while w1 < k % 4 {
                    w1 += 1;
                    if rest.next().is_some() { return Err(bad("drawn")); }
                }
                if matches!(6 % 3, 0 | 2) {
                    if rest.next().is_some() { return Ok(()); }
                } else {
                    let _ = (a > 7 || small(b)? % 2 == 0) || b % 2 == 0;
                }
            }
        }
        b ^= n % 4;
        a = small(a)? % 13;
        u.put(&values).to(all.pop().unwrap_or(3) % u.size(), (b + 2) % 20)?;
        Ok(())
    }
    dynamic drawn_290(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([1]).to(b % u.size(), (((a + n) % 13) + 1) % 20)?;
        let Some(&b) = list.get(k) else { return Err(bad("none")) };
        let mut b = b;
        values[0] = u[5];
        if matches!(a % 3, 0 | 2) {
            'l2: for i in 0..k % 4 {
                match b % 3 {
                    0 => {
                        let mut b = list.len();
                        let mut a = u.rank();
                    }
                    1 if small(n)? > 0 => {
                        let _checked = small(small(a)?)?;
                        u.accumulate([u[22], 3], Op::Sum).to(n % u.size(), (k + 3) % 20)?;
                    }
                    _ => {
                        u.put(0..2).to(n % u.size(), (u.rank() + 4) % 20)?;
                    }
                }
                if (({ a = (a + 1) % 9; a }) > 1 && list.len() > 5) { return Err(bad("drawn")); }
            }
        } else {
            'l5: for i in 0..((2 + list.len()) % 13) % 4 {
                if u[5] > 150 {
                    u[((pick(list, list.len()) + b) % 13) % 24] += list.len() as u64;
                } else {
                    u.accumulate(0..2, Op::Sum).to(all.pop().unwrap_or(1) % u.size(), (all.pop().unwrap_or(0) + 6) % 20)?;
                }
            }
        }
        if u[19] as usize > 6 {
            let Some(&b) = list.get(all.pop().unwrap_or(0)) else { panic!("none") };
            let mut b = b;
            u.put([7]).to(list.len() % u.size(), (a + 7) % 20)?;
        } else {
            u[n % 24] += ((a + a) % 13) as u64;
        }
        u.put(part.clone()).to(pick(list, ((b + list.len()) % 13)) % u.size(), (small(b)? + 8) % 20)?;
        Ok(())
    }
    dynamic drawn_291(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.accumulate(0..2, Op::Sum).to(small(k)? % u.size(), (n + 1) % 20)?;
        validated(list, &u[..])?;
        match small(n)? % 3 {
            0 => {
                validate(list)?;
                if rest.next().is_some() {
                    u.accumulate([u[1], 2], Op::Sum).to(all.pop().unwrap_or(3) % u.size(), (u.rank() + 2) % 20)?;
                    u.accumulate(part.clone(), Op::Sum).to(list.len() % u.size(), (n + 3) % 20)?;
                } else {
                    let mut a = rest.next().unwrap_or(3);
                }
            }
            1 if pick(list, u.rank()) > 7 => {
                let _ = (pick(list, 8) > 4 && a > 4) || (all.pop().unwrap_or(4) > 1 || small(list.len())? % 2 == 0);
                rest.next();
            }
            _ => {
                u.put([rest.next().unwrap_or(0) as u64]).to(((n + small(u.rank())?) % 13) % u.size(), (all.pop().unwrap_or(4) + 4) % 20)?;
            }
        }
        if all.contains(&1) {
            a = 7 % 13;
        }
        if matches!(a % 3, 0 | 2) {
            ensure!(list.len() < 12, "great");
        }
        u[pick(list, ((a + n) % 13)) % 24] += rest.next().unwrap_or(2) as u64;
        u.put(&values).to(((by(k) + by(b)) % 13) % u.size(), (((a + b) % 13) + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_292(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        match k % 3 {
            0 => {
                u.put(&values).to(rest.next().unwrap_or(0) % u.size(), (b + 1) % 20)?;
            }
            1 if rest.next().unwrap_or(3) > 7 => {
                b = u.rank() % 13;
            }
            _ => {
                u.accumulate(0..2, Op::Sum).to(a % u.size(), (b + 2) % 20)?;
                u[7 % 24] += k as u64;
            }
        }
        if matches!(b % 3, 0 | 2) { Err(bad("drawn"))?; }
        let mut a = all.pop().unwrap_or(1);
        if rest.next().is_some() {
            if (all.contains(&1) || rest.next().is_some()) {
                b ^= n % 4;
                part.end += 1;
            }
            u[a % 24] += by(a) as u64;
        }
        u.put(0..2).to(b % u.size(), (((n + k) % 13) + 3) % 20)?;
        Ok(())
    }
    sliced drawn_293(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(&values).to(by(b) % u.size(), (all.pop().unwrap_or(4) + 1) % 20)?;
        values.push(u[6]);
        u[1 % 24] += ((1 + 2) % 13) as u64;
        all.push(rest.next().unwrap_or(1));
        if let Some(&(mut a)) = list.get(a) {
            u.put([b as u64]).to(list.len() % u.size(), (a + 2) % 20)?;
        }
        u.put(&values).to(((b + b) % 13) % u.size(), (((a + k) % 13) + 3) % 20)?;
        u.put([u[3], 4]).to(n % u.size(), (((list.len() + list.len()) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_294(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        if (rest.next().is_some() || a > 5) { Err(bad("drawn"))?; }
        u.put([u[1], 1]).to(a % u.size(), (5 + 1) % 20)?;
        let Some(&b) = list.get(b) else { panic!("none") };
        let mut b = b;
        if k > 0 { return Err(bad("drawn")); }
        u.put(part.clone()).to(b % u.size(), (((b + n) % 13) + 2) % 20)?;
        match u.rank() % 3 {
            0 => {
                all.sort();
            }
            1 if list.len() % 2 == 0 => {
                let mut w3 = 0;
                'l3: while w3 < k % 4 {
                    w3 += 1;
                    u[3 % 24] += k as u64;
                }
            }
            _ => {
                rest.next();
            }
        }
        u.put(&values).to(((k + ((a + u.rank()) % 13)) % 13) % u.size(), (((b + n) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_295(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        'l1: for i in 0..b % 4 {
            let Some(&b) = list.get(((a + k) % 13)) else { panic!("none") };
            let mut b = b;
        }
        let mut w2 = 0;
        'l2: while w2 < k % 4 {
            w2 += 1;
            part.start = (part.start + 1) % part.end;
        }
        if all.contains(&0) {
            u.put([((5 + b) % 13) as u64]).to(b % u.size(), (by(b) + 3) % 20)?;
            if by(a) > 5 {
                u.put([u[19], 4]).to(({ a = (a + 2) % 9; a }) % u.size(), (b + 4) % 20)?;
                b = rest.next().unwrap_or(1) % 13;
            }
        } else {
            if let Some(&(mut a)) = list.get(5) {
                u.put(&values).to(pick(list, all.pop().unwrap_or(3)) % u.size(), (k + 5) % 20)?;
            }
        }
        a ^= u.rank() % 4;
        u.put(&values).to(((a + by(b)) % 13) % u.size(), (u.rank() + 6) % 20)?;
        Ok(())
    }
    sliced drawn_296(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put([u.rank() as u64]).to(small(k)? % u.size(), (rest.next().unwrap_or(2) + 1) % 20)?;
        let Some(&b) = list.get(k) else { return Err(bad("none")) };
        let mut b = b;
        if rest.next().is_some() {
            u.put(0..2).to(a % u.size(), (6 + 2) % 20)?;
        }
        let _ = (a > 6 || pick(list, n) > 2) || ((n + 1) % 13) % 2 == 0;
        u.put([u[3], 3]).to(k % u.size(), (by(b) + 3) % 20)?;
        if ((all.pop().unwrap_or(3) > 5 || rest.next().is_some()) || ({ a = (a + 2) % 9; a }) > 1) {
            let mut a = ({ a = (a + 1) % 9; a });
        }
        u.put([4]).to(a % u.size(), (((a + u.rank()) % 13) + 4) % 20)?;
        Ok(())
    }
    sliced drawn_297(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        let _ = 8 > 6 && all.contains(&3);
        let Some(&b) = list.get(a) else { panic!("none") };
        let mut b = b;
        b ^= 6 % 4;
        u.put(part.clone()).to(rest.next().unwrap_or(1) % u.size(), (((b + b) % 13) + 1) % 20)?;
        Ok(())
    }
    dynamic drawn_298(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        u.put(part.clone()).to(small(b)? % u.size(), (((list.len() + u.rank()) % 13) + 1) % 20)?;
        if rest.next().is_some() {
            'l2: for i in 0..((k + k) % 13) % 4 {
                if let Some(&(mut a)) = list.get(list.len()) {
                    u.put(part.clone()).to(small(n)? % u.size(), (b + 3) % 20)?;
                    u.accumulate(&values, Op::Sum).to(all.pop().unwrap_or(3) % u.size(), (pick(list, a) + 4) % 20)?;
                }
                a ^= u.rank() % 4;
            }
        }
        let _ = matches!(b % 3, 0 | 2) || rest.next().is_some();
        u.put(0..2).to(by(a) % u.size(), (({ a = (a + 1) % 9; a }) + 5) % 20)?;
        Ok(())
    }
    dynamic drawn_299(u, n, k, list) {
        let (mut a, mut b) = (n, k);
        let (mut rest, mut all) = (list.iter().copied(), list.to_vec());
        let (mut part, mut values) = (1..2usize, vec![7u64; 2]);
        let by = |x: usize| (x + n) % 5;
        ensure!(b < 12, "great");
        b = all.pop().unwrap_or(0) % 13;
        u.put([pick(list, small(a)?) as u64]).to(((b + rest.next().unwrap_or(0)) % 13) % u.size(), (a + 1) % 20)?;
        if all.contains(&2) {
            u.put(&values).to(a % u.size(), (b + 2) % 20)?;
        } else {
            u.put([u[18], 3]).to(({ a = (a + 2) % 9; a }) % u.size(), (a + 3) % 20)?;
        }
        u.put(&values).to(3 % u.size(), (a + 4) % 20)?;
        u.put(&values).to(rest.next().unwrap_or(1) % u.size(), (by(a) + 5) % 20)?;
        Ok(())
    }
}
