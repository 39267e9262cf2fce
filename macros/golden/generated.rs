//! 80 bodies drawn at random, 20 of them dynamic: `FENCEPOST_BLESS=1 cargo test -p fencepost-macros` writes them.

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
}
