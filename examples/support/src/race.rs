//! [`Race`]: compares the times of several ways to compute the same steps.

use std::fmt;
use std::time::Duration;

/// The measured times of several ways to compute the same steps. The first way is compared with
/// each of the others.
#[derive(Clone, Debug)]
pub struct Race {
    steps: u64,
    rounds: usize,
    ways: Vec<(String, Vec<Duration>)>,
}

impl Race {
    /// The number of cells that all rounds of one way may compute together.
    const MOMENT: u64 = 300_000_000;

    /// The number of cells that could be computed in the time that a rank waits for the other ranks
    /// in one step, if many ranks share few cores.
    const WAIT: u64 = 1 << 14;

    /// Starts a race of `steps` steps of `ranks` ranks over `cells` cells. With `once`, the race
    /// has a single round, which is enough if only the results matter.
    pub fn new(steps: u64, cells: usize, ranks: usize, once: bool) -> Self {
        let work = (cells as u64).max(Self::WAIT * ranks as u64).saturating_mul(steps).max(1);
        let rounds = if once { 1 } else { (Self::MOMENT / work).clamp(1, 15) as usize };
        Self { steps: steps.max(1), rounds, ways: Vec::new() }
    }

    /// Returns the number of times that each way should run. Short runs are repeated, since other
    /// work on the machine disturbs them.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Adds the time that all steps took in one round of the way `way`.
    pub fn add(&mut self, way: &str, time: Duration) {
        match self.ways.iter_mut().find(|(name, _)| name == way) {
            Some((_, times)) => times.push(time),
            None => self.ways.push((way.into(), vec![time])),
        }
    }
}

impl fmt::Display for Race {
    /// Formats the median time of a step for each way, and the speed of the first way compared with
    /// each other way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let middle = |times: &[Duration]| {
            let mut times = times.to_vec();
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e6 / self.steps as f64
        };
        let Some((first, times)) = self.ways.first() else { return Ok(()) };
        let ours = middle(times);
        writeln!(f, "microseconds a step, the middle of {} rounds:", times.len())?;
        write!(f, "  {ours:>9.1}  {first}")?;
        for (name, times) in &self.ways[1..] {
            let theirs = middle(times);
            write!(f, "\n  {theirs:>9.1}  {name}: the {first} are {:.2} times as fast", theirs / ours)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_time_of_a_step_counts() {
        let mut race = Race::new(10, 1000, 1, false);
        for micros in [50, 400, 40] {
            race.add("2 ranks", Duration::from_micros(micros));
            race.add("serial program", Duration::from_micros(2 * micros));
        }
        let text = race.to_string();
        assert!(text.contains("middle of 3 rounds"), "{text}");
        assert!(text.contains("5.0  2 ranks\n"), "{text}");
        assert!(text.contains("10.0  serial program: the 2 ranks are 2.00 times as fast"), "{text}");
    }

    #[test]
    fn long_races_have_one_round() {
        assert_eq!(
            (Race::new(1000, 1_000_000, 1, false).rounds(), Race::new(1, 1, 1, false).rounds()),
            (1, 15)
        );
        assert_eq!((Race::new(100, 1, 8, false).rounds(), Race::new(100, 1, 1024, false).rounds()), (15, 1));
        assert_eq!((Race::new(0, 0, 1, false).rounds(), Race::new(1, 1, 1, true).rounds()), (15, 1));
    }
}
