// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whether a number that is taken once a round rises, or only fluctuates.
//!
//! The rule: count, of all pairs of rounds, how many rise and how many fall (Kendall's S). Without
//! a trend, S has a known variance, reduced by ties. What is left over from one round to the next
//! correlates neighbours even without a trend, so the variance is multiplied by (1 + r) / (1 - r),
//! where r is the correlation of neighbours after the slope has been removed. The number rises if S
//! is more than [`SURE`] standard deviations above 0; the reported slope is the median of all
//! pairs' slopes (Theil and Sen). The rule does not depend on an amount: whatever rises steadily is
//! found if the run is long enough, and a single step up, or one outlier, is not a rise.
//!
//! If the number starts anew now and then, as the module's numbers do when it is loaded, its rounds
//! are in groups, and only pairs within one group are compared.

/// The limit in standard deviations: if nothing rises, one series in thirty thousand is reported by
/// chance.
const SURE: f64 = 4.0;

/// The highest correlation of neighbours that is assumed, because with a higher one nothing could
/// ever be found.
const ALIKE: f64 = 0.9;

/// One number in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The round's number.
    pub round: f64,
    /// The number.
    pub value: f64,
}

/// The verdict on a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// So few rounds that not even one that rises each time would be found.
    Few,
    /// It only fluctuates, or falls.
    Flat(Trend),
    /// It rises.
    Rises(Trend),
}

/// The trend of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The increase per round.
    pub slope: f64,
    /// The distance from no trend, in standard deviations.
    pub sure: f64,
}

/// Applies the rule to a series in groups.
pub fn judge(groups: &[Vec<Point>]) -> Verdict {
    let pairs: f64 = groups.iter().map(|g| pairs(g.len())).sum();
    let plain: f64 = groups.iter().map(|g| spread(g.len())).sum();
    if pairs - 1.0 <= SURE * plain.sqrt() {
        return Verdict::Few;
    }
    let slope = median(groups.iter().flat_map(|g| slopes(g)).collect());
    let rises: f64 = groups.iter().map(|g| balance(g)).sum();
    let variance: f64 = groups.iter().map(|g| spread(g.len()) - ties(g)).sum();
    let alike = alike(groups, slope).clamp(0.0, ALIKE);
    let deviation = (variance * (1.0 + alike) / (1.0 - alike)).sqrt();
    let sure = match deviation > 0.0 {
        true => (rises - rises.signum()) / deviation,
        false => 0.0,
    };
    let trend = Trend { slope, sure };
    match sure > SURE {
        true => Verdict::Rises(trend),
        false => Verdict::Flat(trend),
    }
}

fn pairs(n: usize) -> f64 {
    let n = n as f64;
    n * (n - 1.0) / 2.0
}

/// The variance of S among `n` different values.
fn spread(n: usize) -> f64 {
    let n = n as f64;
    n * (n - 1.0) * (2.0 * n + 5.0) / 18.0
}

/// How much ties reduce the variance.
fn ties(group: &[Point]) -> f64 {
    let mut values: Vec<f64> = group.iter().map(|p| p.value).collect();
    values.sort_by(f64::total_cmp);
    values
        .chunk_by(|a, b| a == b)
        .map(|run| spread(run.len()))
        .sum()
}

/// All pairs, the earlier point first.
fn each(group: &[Point]) -> impl Iterator<Item = (&Point, &Point)> {
    let later = move |(at, first)| group.iter().skip(at + 1).map(move |second| (first, second));
    group.iter().enumerate().flat_map(later)
}

/// The number of rising pairs minus that of falling pairs.
fn balance(group: &[Point]) -> f64 {
    let sign = |(a, b): (&Point, &Point)| match b.value.total_cmp(&a.value) {
        std::cmp::Ordering::Less => -1.0,
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => 1.0,
    };
    each(group).map(sign).sum()
}

fn slopes(group: &[Point]) -> Vec<f64> {
    each(group)
        .map(|(a, b)| (b.value - a.value) / (b.round - a.round))
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The correlation of neighbours in what the slope does not explain.
fn alike(groups: &[Vec<Point>], slope: f64) -> f64 {
    let (mut together, mut alone) = (0.0, 0.0);
    for group in groups {
        let flat: Vec<f64> = group.iter().map(|p| p.value - slope * p.round).collect();
        let base = median(flat.clone());
        let left: Vec<f64> = flat.iter().map(|v| v - base).collect();
        together += left.windows(2).map(|w| w[0] * w[1]).sum::<f64>();
        alone += left.iter().map(|v| v * v).sum::<f64>();
    }
    // Rounding leaves a little even if all points lie on one line.
    match alone > 1e-6 {
        true => together / alone,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers between -1 and 1.
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        }
    }

    fn series(values: impl IntoIterator<Item = f64>) -> Vec<Point> {
        let point = |(n, value)| Point {
            round: n as f64,
            value,
        };
        values.into_iter().enumerate().map(point).collect()
    }

    fn rises(groups: &[Vec<Point>]) -> bool {
        matches!(judge(groups), Verdict::Rises(_))
    }

    /// How many of three hundred series rise.
    fn of_many(make: impl Fn(&mut dyn FnMut() -> f64) -> Vec<Point>) -> usize {
        let one = |seed: &u64| rises(&[make(&mut noise(*seed))]);
        (0..300).filter(one).count()
    }

    #[test]
    fn what_wavers_is_flat() {
        let flat = |next: &mut dyn FnMut() -> f64| series((0..60).map(|_| 1e8 + 1e5 * next()));
        assert_eq!(of_many(flat), 0);
    }

    #[test]
    fn what_stays_a_while_is_flat() {
        let slow = |next: &mut dyn FnMut() -> f64| {
            let mut at = 0.0;
            let mut value = || {
                at = 0.7 * at + next();
                at
            };
            series((0..60).map(|_| value()))
        };
        assert!(of_many(slow) <= 2);
    }

    #[test]
    fn a_small_slope_rises() {
        // A tenth of the fluctuation to either side is added per round.
        let leak = |next: &mut dyn FnMut() -> f64| {
            series((0..60).map(|n| 1e8 + 1e4 * f64::from(n) + 1e5 * next()))
        };
        assert_eq!(of_many(leak), 300);
    }

    #[test]
    fn an_object_a_round_rises_by_one() {
        let leak = series((0..12).map(f64::from));
        match judge(&[leak]) {
            Verdict::Rises(trend) => assert_eq!(trend.slope, 1.0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_in_three_rounds_rises() {
        assert!(rises(&[series((0..30).map(|n| f64::from(n / 3)))]));
    }

    #[test]
    fn one_step_is_no_slope() {
        for at in 1..40 {
            let step = series((0..40).map(|n| f64::from(n >= at)));
            assert!(!rises(&[step]), "{at}");
        }
    }

    #[test]
    fn one_round_that_is_far_off_is_no_slope() {
        let mut next = noise(1);
        let far = series((0..40).map(|n| if n == 39 { 1e9 } else { next() }));
        assert!(!rises(&[far]));
    }

    #[test]
    fn what_falls_or_stays_does_not_rise() {
        assert!(!rises(&[series((0..40).map(|n| -f64::from(n)))]));
        assert!(!rises(&[series((0..40).map(|_| 5.0))]));
    }

    #[test]
    fn groups_begin_anew() {
        // It grows while a module is loaded, and is freed with it.
        let saw: Vec<Vec<Point>> = (0..6)
            .map(|group| {
                let at = |n: usize| Point {
                    round: (group * 5 + n) as f64,
                    value: n as f64,
                };
                (0..5).map(at).collect()
            })
            .collect();
        assert!(rises(&saw));
        assert!(!rises(&[saw.concat()]));
    }

    #[test]
    fn few_rounds_say_nothing() {
        assert_eq!(judge(&[]), Verdict::Few);
        assert_eq!(judge(&[series((0..8).map(f64::from))]), Verdict::Few);
        assert_ne!(judge(&[series((0..12).map(f64::from))]), Verdict::Few);
    }
}
