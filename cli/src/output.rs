//! How results look: aligned tables, bytes with units, JSON one object a line.

use std::io::{BufWriter, StdoutLock, Write};

use serde_json::Value;

use crate::Outcome;

/// How a verb ends that printed as it went: whoever stopped to read early is told the outcome all
/// the same.
pub(crate) fn told(printed: std::io::Result<()>, outcome: Outcome) -> std::io::Result<Outcome> {
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(outcome),
    }
}

/// On which side a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text in aligned columns, two spaces apart, without lines around them.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: one text a column.
    pub(crate) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the header and the rows, each with `indent` spaces before it.
    pub(crate) fn print(&self, out: &mut dyn Write, indent: usize) -> std::io::Result<()> {
        let header: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        self.print_lines(out, indent, std::iter::once(&header).chain(&self.rows))
    }

    /// Prints the rows without a header.
    pub(crate) fn print_rows(&self, out: &mut dyn Write, indent: usize) -> std::io::Result<()> {
        self.print_lines(out, indent, self.rows.iter())
    }

    fn print_lines<'a>(
        &self,
        out: &mut dyn Write,
        indent: usize,
        lines: impl Iterator<Item = &'a Vec<String>> + Clone,
    ) -> std::io::Result<()> {
        let width = |column: usize| {
            let cells = lines.clone().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for line in lines.clone() {
            let mut text = " ".repeat(indent);
            for (at, ((cell, width), (_, align))) in
                line.iter().zip(&widths).zip(&self.columns).enumerate()
            {
                if at > 0 {
                    text.push_str("  ");
                }
                match align {
                    Align::Left => text.push_str(&format!("{cell:<width$}")),
                    Align::Right => text.push_str(&format!("{cell:>width$}")),
                }
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// `512 B`, `1.5 KiB`, `10.0 GiB`: at most four digits and a unit.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Tenths of the unit, rounded down: a size is never said to be larger than it is.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = 0_usize;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1024, unit + 1);
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    if tenths >= 1000 {
        format!("{} {unit}", tenths / 10)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// `1,234,567`: a count with its thousands apart.
pub(crate) fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3 s`, `4 min 5 s`, `2 h 3 min`, `6 d 7 h`: a span of time in its two largest units.
pub(crate) fn format_span_ms(span_ms: i64) -> String {
    let seconds = span_ms.div_euclid(1000);
    match seconds {
        ..0 => "-".to_owned(),
        0 => format!("{span_ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Standard output with a buffer; flush it at the end, or an error is lost.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, std::io::stdout().lock())
}

/// Prints one JSON object as one line.
pub(crate) fn print_json(out: &mut dyn Write, value: &Value) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("NAME", Align::Left), ("SIZE", Align::Right)]);
        table.row(["a".to_owned(), "12345".to_owned()]);
        table.row(["längst".to_owned(), "1".to_owned()]);
        let mut out = Vec::new();
        table.print(&mut out, 1).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, " NAME     SIZE\n a       12345\n längst      1\n");
    }

    #[test]
    fn sizes_have_the_unit_in_which_they_read_best() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (102_399, "99.9 KiB"),
            (102_400, "100 KiB"),
            (1_048_575, "1023 KiB"),
            (1 << 20, "1.0 MiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }

    #[test]
    fn counts_and_spans_read_easily() {
        assert_eq!(format_count(0), "0");
        assert_eq!(format_count(999), "999");
        assert_eq!(format_count(1_234_567), "1,234,567");
        assert_eq!(format_span_ms(999), "999 ms");
        assert_eq!(format_span_ms(61_000), "1 min 1 s");
        assert_eq!(format_span_ms(90_061_000), "1 d 1 h");
        assert_eq!(format_span_ms(-5000), "-");
    }
}
