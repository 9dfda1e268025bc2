//! The rows of the comparison, and their place in docs/PERFORMANCE.md.

use std::fmt::Write;

use siltstone_benches::rounds::Timing;
use siltstone_benches::{Result, document};

const BEGIN: &str = "<!-- table: made by the command above -->";
const END: &str = "<!-- end of the table -->";

/// In what a row is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// 10^9 bytes a second.
    Gigabytes,
    /// 10^6 producers a second.
    MillionProducers,
    /// Partitions a second.
    Partitions,
    /// Appends made durable a second.
    Appends,
    /// Milliseconds, the fewer the better.
    Milliseconds,
    /// Microseconds for each, the fewer the better.
    Microseconds,
    /// Nanoseconds for each, the fewer the better.
    Nanoseconds,
    /// 2^20 bytes, the fewer the better.
    Mebibytes,
    /// Bytes, the fewer the better.
    Bytes,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Gigabytes => "GB/s",
            Unit::MillionProducers => "M producers/s",
            Unit::Partitions => "partitions/s",
            Unit::Appends => "appends/s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
            Unit::Mebibytes => "MiB",
            Unit::Bytes => "bytes",
        }
    }

    fn is_less_better(self) -> bool {
        match self {
            Unit::Milliseconds | Unit::Microseconds | Unit::Nanoseconds => true,
            Unit::Mebibytes | Unit::Bytes => true,
            Unit::Gigabytes | Unit::MillionProducers | Unit::Partitions | Unit::Appends => false,
        }
    }

    /// The figure of so much work, done in so many seconds.
    pub(crate) fn of(self, work: f64, seconds: f64) -> f64 {
        match self {
            Unit::Gigabytes => work / seconds / 1e9,
            Unit::MillionProducers => work / seconds / 1e6,
            Unit::Partitions | Unit::Appends => work / seconds,
            Unit::Milliseconds => seconds * 1e3,
            Unit::Microseconds => seconds / work * 1e6,
            Unit::Nanoseconds => seconds / work * 1e9,
            Unit::Mebibytes => work / f64::from(1 << 20),
            Unit::Bytes => work,
        }
    }
}

/// What is to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// This figure.
    Figure(f64),
    /// This share of the limit of the same run.
    OfLimit(f64),
    /// This figure, or a share of the limit of the same run where that is easier.
    FigureOrLimit(f64, f64),
    /// So many times what Kafka's classes do in the same run.
    OfKafka(f64),
    /// So many times as good as the figure of one thread, which comes behind.
    OfOneThread(f64, f64),
    /// Nothing: the row shows how the cost grows.
    Nothing,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) ours: f64,
    /// Worst and best round.
    pub(crate) spread: Option<(f64, f64)>,
    pub(crate) kafka: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) goal: Goal,
    /// The largest share of a round in which its thread waited for a core.
    pub(crate) waited: f64,
}

impl Row {
    /// A row of what is no time.
    pub(crate) fn counted(name: &str, unit: Unit, ours: f64, goal: Goal) -> Self {
        let name = name.to_owned();
        Row { name, unit, ours, spread: None, kafka: None, limit: None, goal, waited: 0.0 }
    }

    /// A row of what was timed.
    pub(crate) fn timed(name: &str, unit: Unit, work: f64, ours: Timing, goal: Goal) -> Self {
        Row {
            spread: Some((unit.of(work, ours.max_s), unit.of(work, ours.min_s))),
            waited: ours.waited,
            ..Row::counted(name, unit, unit.of(work, ours.median_s), goal)
        }
    }

    pub(crate) fn with_limit(mut self, work: f64, limit: Timing) -> Self {
        self.limit = Some(self.unit.of(work, limit.median_s));
        self
    }

    pub(crate) fn with_kafka(mut self, figure: Option<f64>) -> Self {
        self.kafka = figure;
        self
    }

    /// How many times as good as another figure.
    pub(crate) fn times(&self, other: f64) -> f64 {
        if self.unit.is_less_better() { other / self.ours } else { self.ours / other }
    }

    fn wanted(&self) -> Option<f64> {
        match self.goal {
            Goal::Figure(figure) => Some(figure),
            Goal::OfLimit(share) => self.limit.map(|limit| limit * share),
            Goal::FigureOrLimit(figure, share) => {
                Some(self.limit.map_or(figure, |limit| figure.min(limit * share)))
            }
            Goal::OfKafka(times) => self.kafka.map(|kafka| kafka * times),
            // Of rows in which less is better alone.
            Goal::OfOneThread(times, alone) => Some(alone / times),
            Goal::Nothing => None,
        }
    }

    fn verdict(&self) -> String {
        if self.goal == Goal::Nothing {
            return "-".to_owned();
        }
        let Some(wanted) = self.wanted() else { return "nothing to compare with".to_owned() };
        let sign = if self.unit.is_less_better() { "<=" } else { ">=" };
        let goal = match self.goal {
            Goal::Figure(_) => format!("{sign} {}", figure(wanted)),
            Goal::OfLimit(share) => format!("{sign} {:.0} % of the limit", share * 100.0),
            Goal::FigureOrLimit(wanted, share) => format!(
                "{sign} {}, or {:.0} % of the limit if that is lower",
                figure(wanted),
                share * 100.0
            ),
            Goal::OfKafka(times) => format!("{sign} {times} times Kafka"),
            Goal::OfOneThread(times, _) => format!(">= {times} times the rate of one thread"),
            Goal::Nothing => String::new(),
        };
        let times = self.times(wanted);
        if times >= 1.0 {
            format!("{goal}: reached")
        } else {
            format!("{goal}: {:.0} % short", (1.0 - times) * 100.0)
        }
    }

    /// The row as a line of a Markdown table.
    pub(crate) fn line(&self) -> String {
        let unit = self.unit.name();
        let spread = self.spread.map_or_else(String::new, |(worst, best)| {
            format!(" ({} .. {})", figure(worst), figure(best))
        });
        let kafka = self.kafka.map_or_else(
            || "-".to_owned(),
            |kafka| match self.times(kafka) {
                times if times.is_finite() => format!("{}, {}x", figure(kafka), figure(times)),
                // Nothing at all is no number of times less.
                _ => figure(kafka),
            },
        );
        let limit = self.limit.map_or_else(
            || "-".to_owned(),
            |limit| format!("{}, {:.0} %", figure(limit), self.times(limit) * 100.0),
        );
        let (name, ours, verdict) = (&self.name, figure(self.ours), self.verdict());
        format!("| {name} | {unit} | {ours}{spread} | {kafka} | {limit} | {verdict} |")
    }
}

/// Three digits, with separators where there are more.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.digits$}");
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// A round that waited more of its time for a core is told.
const DISTURBED: f64 = 0.05;

/// The whole table, and what disturbed it.
pub(crate) fn format(rows: &[Row], kafka_waited: &[(String, f64)]) -> String {
    let mut table = String::from(
        "| work | unit | siltstone (worst .. best round) | Kafka 4.3.1 | limit | goal |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in rows {
        // Writing to a string does not fail.
        let _ = writeln!(table, "{}", row.line());
    }
    table + &disturbed(rows, kafka_waited) + &growth(rows)
}

/// Whose rounds had to wait for a core.
fn disturbed(rows: &[Row], kafka_waited: &[(String, f64)]) -> String {
    let ours = rows.iter().map(|row| (row.name.clone(), row.waited));
    let kafka = kafka_waited.iter().map(|(name, waited)| (format!("Kafka's {name}"), *waited));
    let told: Vec<String> = (ours.chain(kafka))
        .filter(|(_, waited)| *waited > DISTURBED)
        .map(|(name, waited)| format!("{name} ({:.0} %)", waited * 100.0))
        .collect();
    if told.is_empty() {
        return "\nNo counted round waited for a core for more than 5 % of its time.\n".to_owned();
    }
    format!(
        "\nWith a counted round that waited for a core for so much of it: {}.\n",
        told.join("; ")
    )
}

/// What rows have in common that measure one thing of ever more.
pub(crate) const UPLOADS: &str = "upload scan of logs with 100 segments, one segment of ";
pub(crate) const UPLOADS_OF_ONE: &str = "upload scan of one log, one segment of ";
pub(crate) const COLD: &str = "upload plan, not open, one partition of ";
pub(crate) const EXPIRY: &str = "expiry plan of remote segments, one segment of ";
pub(crate) const LOAD: &str = "load clean partitions, one of ";
pub(crate) const REBUILDS: &str = "rebuild replicas with two threads, one of ";
const GROWTH: [&str; 6] = [UPLOADS, UPLOADS_OF_ONE, COLD, EXPIRY, LOAD, REBUILDS];
/// The longest bar.
const BAR_CHARS: f64 = 40.0;

/// What one costs of ever more, as bars: of one length where the cost of all is linear.
fn growth(rows: &[Row]) -> String {
    let mut plots = String::new();
    for what in GROWTH {
        let of = |row: &Row| Some((row.name.strip_prefix(what)?.to_owned(), row.clone()));
        let rows: Vec<(String, Row)> = rows.iter().filter_map(of).collect();
        let most = rows.iter().fold(0.0, |most: f64, (_, row)| most.max(row.ours));
        if rows.is_empty() || most <= 0.0 {
            continue;
        }
        let _ = writeln!(plots, "\n{what}");
        for (count, row) in rows {
            let bar = (0..).take_while(|at| f64::from(*at) < row.ours / most * BAR_CHARS);
            let bar: String = bar.map(|_| '#').collect();
            let _ =
                writeln!(plots, "{count:>9} {:>6} {}  {bar}", figure(row.ours), row.unit.name());
        }
    }
    if plots.is_empty() { plots } else { format!("\n```text{plots}```\n") }
}

/// Puts the table between its marks in docs/PERFORMANCE.md.
pub(crate) fn replace(machine: &str, table: &str) -> Result<()> {
    document::replace((BEGIN, END), &format!("{machine}\n\n{table}"))
}
