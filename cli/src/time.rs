//! Times as an operator reads and writes them: UTC, ISO-8601, to the millisecond.

const DAY_MS: i64 = 86_400_000;

/// `2026-01-31T12:00:00.000Z`; `-` for no timestamp, and plain milliseconds outside the years 0 to
/// 9999.
pub(crate) fn format_ms(timestamp_ms: i64) -> String {
    if timestamp_ms == siltstone::units::NO_TIMESTAMP {
        return "-".to_owned();
    }
    let (day, of_day) = (timestamp_ms.div_euclid(DAY_MS), timestamp_ms.rem_euclid(DAY_MS));
    let (year, month, date) = civil(day);
    if !(0..=9999).contains(&year) {
        return format!("{timestamp_ms} ms");
    }
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, ms) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The time now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}

/// Reads milliseconds since 1970, or a date or time of ISO-8601 in UTC (`2026-01-31`,
/// `2026-01-31T12:00Z`, `2026-01-31T12:00:00.5`), or with an offset (`+02:00`). `None` for anything
/// else.
pub(crate) fn parse_ms(text: &str) -> Option<i64> {
    if let Ok(ms) = text.parse::<i64>() {
        return Some(ms);
    }
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut parts = date.split('-').map(|part| digits(part, 2..=4));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    // A day that the month does not have comes back as another one.
    if civil(days) != (year, month, day) {
        return None;
    }
    Some(days * DAY_MS + parse_time_of_day(time)?)
}

/// `12:00`, `12:00:00`, `12:00:00.5`, each with nothing, `Z` or an offset behind it.
fn parse_time_of_day(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let (clock, offset_ms) = split_offset(text)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(|part| digits(part, 2..=2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let fraction_digits = u32::try_from(fraction.len()).ok()?;
    let fraction_ms = digits(fraction, 1..=9)? * 1000 / 10_i64.checked_pow(fraction_digits)?;
    let fits = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    fits.then(|| hour * 3_600_000 + minute * 60_000 + second * 1000 + fraction_ms - offset_ms)
}

/// Splits the offset from UTC off a time of day.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, 0)) };
    let (clock, offset) = text.split_at_checked(at)?;
    let (sign, offset) = offset.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':').or_else(|| offset.split_at_checked(2))?;
    let ms = digits(hours, 2..=2)? * 3_600_000 + digits(minutes, 2..=2)? * 60_000;
    Some((clock, if sign == "-" { -ms } else { ms }))
}

fn digits(text: &str, sizes: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = sizes.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Years are counted from March in eras of 400, so that the leap day is the last of its year.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, date)
}

/// The day counted from 1970-01-01 of a date; the inverse of [`civil`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_as_it_was_written() {
        for ms in [0, 1, 951_782_400_000, 1_709_164_799_999, 1_795_992_445_502, -62_167_219_200_000]
        {
            assert_eq!(parse_ms(&format_ms(ms)), Some(ms), "{}", format_ms(ms));
        }
        assert_eq!(format_ms(1_709_164_800_000), "2024-02-29T00:00:00.000Z");
        assert_eq!(format_ms(-1), "-");
        assert_eq!(format_ms(i64::MAX), "9223372036854775807 ms");
        assert_eq!(format_ms(i64::MIN), "-9223372036854775808 ms");
    }

    #[test]
    fn every_day_of_four_centuries_reads_back() {
        for day in (-200_000..200_000).step_by(7) {
            let (year, month, date) = civil(day);
            assert_eq!(days_from_civil(year, month, date), day);
        }
    }

    #[test]
    fn short_forms_and_offsets_are_read() {
        let noon = parse_ms("2026-01-31T12:00:00.000Z");
        assert!(noon.is_some());
        for text in [
            "2026-01-31T12:00Z",
            "2026-01-31 12:00",
            "2026-01-31T14:00+02:00",
            "2026-01-31T07:00-0500",
        ] {
            assert_eq!(parse_ms(text), noon, "{text}");
        }
        assert_eq!(parse_ms("2026-01-31T12:00:00.5"), noon.map(|ms| ms + 500));
        assert_eq!(parse_ms("2026-01-31"), noon.map(|ms| ms - DAY_MS / 2));
        assert_eq!(parse_ms("-5"), Some(-5));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-30",
            "2026-01-31T25:00",
            "2026-01-31T12",
            "2026-01-31T12:00:00.",
            "2026-01-31T12:00+2",
            "2026-01-31T12:00:00:00",
            "2026-00-10",
            "2026-01-00",
            "+2026-01-01",
        ] {
            assert_eq!(parse_ms(text), None, "{text}");
        }
    }
}
