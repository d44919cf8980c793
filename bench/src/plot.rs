//! The results as an SVG chart: each figure relative to its bound.

use std::fmt::Write as _;

use crate::goals::{Bound, GoalResult};
use crate::readings::Spread;

const ROW_PX: f64 = 24.0;
const TOP_PX: f64 = 44.0;
const TEXT_PX: f64 = 330.0;
const WIDTH_PX: f64 = 900.0;
/// Range of the axis: from 1/16 to 16 times the bound. Figures beyond are drawn at the edge.
const OCTAVES: f64 = 4.0;

/// Returns an SVG document: per goal a bar from the worst to the best repetition and a dot at the median, on a
/// logarithmic axis.
pub fn svg(verdicts: &[GoalResult], title: &str) -> String {
    let height = TOP_PX + ROW_PX * verdicts.len() as f64 + 16.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH_PX}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"16\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for octave in -(OCTAVES as i32)..=OCTAVES as i32 {
        grid(&mut svg, octave, height);
    }
    for (at, verdict) in verdicts.iter().enumerate() {
        row(&mut svg, verdict, TOP_PX + ROW_PX * (at as f64 + 0.5));
    }
    svg.push_str("</svg>\n");
    svg
}

fn grid(svg: &mut String, octave: i32, height: f64) {
    let x = x_of(f64::from(octave).exp2());
    let (colour, label) = match octave {
        0 => ("black", "target".to_owned()),
        1.. => ("#ddd", format!("{}× better", 1 << octave)),
        _ => ("#ddd", format!("{}× worse", 1 << -octave)),
    };
    let label = if octave % 2 == 0 { label } else { String::new() };
    // Writing to memory cannot fail.
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{TOP_PX}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{label}</text>",
        height - 16.0,
        TOP_PX - 6.0
    );
}

fn row(svg: &mut String, verdict: &GoalResult, y: f64) {
    let Spread { min, median, max, .. } = verdict.figure;
    let [one, middle, other] = [min, median, max].map(|figure| x_of(reached(verdict.bound, figure)));
    let colour = if verdict.met { "#2a7f3f" } else { "#b8322a" };
    // Writing to memory cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"{:.1}\">{}</text>\
         <line x1=\"{one:.1}\" y1=\"{y:.1}\" x2=\"{other:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"4\"/>\
         <circle cx=\"{middle:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>",
        y + 4.0,
        escaped(verdict.what)
    );
}

/// Ratio by which a figure is better than its bound; below 1 it misses the bound.
fn reached(bound: Bound, figure: f64) -> f64 {
    match bound {
        Bound::AtLeast(line) => figure / line,
        Bound::AtMost(line) => line / figure,
    }
}

fn x_of(reached: f64) -> f64 {
    let octaves = reached.log2().clamp(-OCTAVES, OCTAVES);
    // 0/0 counts as the worst figure.
    let octaves = if octaves.is_nan() { -OCTAVES } else { octaves };
    let room = WIDTH_PX - TEXT_PX - 40.0;
    TEXT_PX + room * (octaves + OCTAVES) / (2.0 * OCTAVES)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_further_right_on_both_sides() {
        assert!(x_of(reached(Bound::AtLeast(0.5), 0.6)) > x_of(1.0));
        assert!(x_of(reached(Bound::AtMost(10.0), 5.0)) > x_of(1.0));
        assert!(x_of(reached(Bound::AtMost(10.0), 50.0)) < x_of(1.0));
        for wild in [0.0, f64::INFINITY, f64::NAN] {
            assert!((TEXT_PX..WIDTH_PX).contains(&x_of(wild)), "{wild}");
        }
    }

    #[test]
    fn every_target_has_a_row() {
        let figure = Spread { min: 0.4, median: 0.5, max: 0.6, repetitions: 3 };
        let bound = Bound::AtLeast(0.5);
        let verdict = GoalResult { what: "a < b & c", unit: "× echo", bound, figure, met: true };
        let svg = svg(&[verdict], "a run");
        assert!(svg.contains("a &lt; b &amp; c") && svg.matches("<circle").count() == 1, "{svg}");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }
}
