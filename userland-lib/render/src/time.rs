// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The times of `%Y` and `%T`, from nanoseconds since 1970.
//!
//! `%Y` prints ``2026 Nov  5 07:08:09``. `%T` prints the date in the format of e-mail, with the
//! zone's name: ``Thu, 05 Nov 2026 07:08:09 CET``. Names of days and months are English in every
//! locale. The year of `%T` is that of the ISO week, as in other DTraces; it differs from the
//! calendar year only around New Year.

/// A time zone.
#[derive(Clone, Debug)]
pub struct Zone(tz::TimeZone);

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const NANOSECONDS: u64 = 1_000_000_000;
const DAY: i64 = 86_400;

impl Zone {
    /// Returns the local zone: that of `TZ`, or of `/etc/localtime` if `TZ` is not set; UTC if that
    /// is not valid.
    pub fn local() -> Self {
        Self::named(std::env::var("TZ").ok().as_deref())
    }

    /// Returns the zone of `name`, a value of the variable `TZ`, or the system's zone for `None`;
    /// UTC if it is not valid.
    fn named(name: Option<&str>) -> Self {
        let zone = match name {
            Some(name) => tz::TimeZone::from_posix_tz(name),
            None => tz::TimeZone::local(),
        };
        zone.map_or_else(|_| Self::utc(), Self)
    }

    /// Returns UTC.
    pub fn utc() -> Self {
        Self::from_posix("UTC0").unwrap_or_else(|| Self(tz::TimeZone::utc()))
    }

    /// Parses `rule`, in the syntax of the variable `TZ`; `None` if it is not valid.
    pub fn from_posix(rule: &str) -> Option<Self> {
        tz::TimeZone::from_posix_tz(rule).ok().map(Self)
    }

    /// Formats `nanoseconds` since 1970 as `%Y` does.
    pub fn short(&self, nanoseconds: u64) -> String {
        let t = self.civil(nanoseconds);
        format!(
            "{} {} {:2} {:02}:{:02}:{:02}",
            t.date.year,
            t.date.month_name(),
            t.date.day,
            t.hour,
            t.minute,
            t.second
        )
    }

    /// Formats `nanoseconds` since 1970 as `%T` does.
    pub fn long(&self, nanoseconds: u64) -> String {
        let t = self.civil(nanoseconds);
        format!(
            "{}, {:02} {} {} {:02}:{:02}:{:02} {}",
            DAYS.get(t.date.weekday).unwrap_or(&""),
            t.date.day,
            t.date.month_name(),
            t.date.iso_year(),
            t.hour,
            t.minute,
            t.second,
            t.zone
        )
    }

    fn civil(&self, nanoseconds: u64) -> Civil {
        let unix = (nanoseconds / NANOSECONDS) as i64;
        let (offset, zone) = match self.0.find_local_time_type(unix) {
            Ok(kind) => (kind.ut_offset(), kind.time_zone_designation().to_owned()),
            Err(_) => (0, "UTC".to_owned()),
        };
        let local = unix + i64::from(offset);
        let second = local.rem_euclid(DAY);
        Civil {
            date: Date::new(local.div_euclid(DAY)),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            zone,
        }
    }
}

/// A local date and time, with the name of the zone.
struct Civil {
    date: Date,
    hour: i64,
    minute: i64,
    second: i64,
    zone: String,
}

/// A day of the Gregorian calendar.
struct Date {
    year: i64,
    /// From 0: January.
    month: usize,
    /// From 1.
    day: i64,
    /// From 0: Sunday.
    weekday: usize,
    /// From 0: 1 January.
    yearday: i64,
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_year(year: i64) -> i64 {
    365 + i64::from(is_leap(year))
}

impl Date {
    /// Returns the day `days` after 1 January 1970. Times in nanoseconds end in 2554, so a loop
    /// over the years is fast enough.
    fn new(days: i64) -> Self {
        let weekday = (days + 4).rem_euclid(7) as usize;
        let (mut year, mut day) = (1970, days);
        while day < 0 {
            year -= 1;
            day += days_of_year(year);
        }
        while day >= days_of_year(year) {
            day -= days_of_year(year);
            year += 1;
        }
        let yearday = day;
        let february = 28 + i64::from(is_leap(year));
        let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        for length in lengths {
            if day < length {
                break;
            }
            day -= length;
            month += 1;
        }
        Self {
            year,
            month,
            day: day + 1,
            weekday,
            yearday,
        }
    }

    fn month_name(&self) -> &'static str {
        MONTHS.get(self.month).unwrap_or(&"")
    }

    /// Returns the ISO 8601 year of the day's week: the year that contains the week's Thursday.
    fn iso_year(&self) -> i64 {
        let from_monday = (self.weekday as i64 + 6) % 7;
        let thursday = self.yearday - from_monday + 3;
        if thursday < 0 {
            self.year - 1
        } else if thursday >= days_of_year(self.year) {
            self.year + 1
        } else {
            self.year
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> u64 {
        seconds * NANOSECONDS + 999_999_999
    }

    #[test]
    fn the_environment_names_the_zone() {
        let long = |name| Zone::named(Some(name)).long(0);
        assert_eq!(long("PST8"), "Wed, 31 Dec 1970 16:00:00 PST");
        for nowhere in ["", "No/Such"] {
            assert_eq!(long(nowhere), "Thu, 01 Jan 1970 00:00:00 UTC");
        }
    }

    #[test]
    fn times_in_utc() {
        let zone = Zone::utc();
        for (seconds, short, long) in [
            (0, "1970 Jan  1 00:00:00", "Thu, 01 Jan 1970 00:00:00 UTC"),
            (
                951_782_400,
                "2000 Feb 29 00:00:00",
                "Tue, 29 Feb 2000 00:00:00 UTC",
            ),
            (
                1_709_251_199,
                "2024 Feb 29 23:59:59",
                "Thu, 29 Feb 2024 23:59:59 UTC",
            ),
            (
                4_107_542_400,
                "2100 Mar  1 00:00:00",
                "Mon, 01 Mar 2100 00:00:00 UTC",
            ),
            // 1 January 2027 is in a week of 2026, and 31 December 2024 in a week of 2025.
            (
                1_798_761_600,
                "2027 Jan  1 00:00:00",
                "Fri, 01 Jan 2026 00:00:00 UTC",
            ),
            (
                1_735_603_200,
                "2024 Dec 31 00:00:00",
                "Tue, 31 Dec 2025 00:00:00 UTC",
            ),
        ] {
            assert_eq!(zone.short(at(seconds)), short);
            assert_eq!(zone.long(at(seconds)), long);
        }
    }

    #[test]
    fn the_largest_time_is_printed() {
        assert_eq!(Zone::utc().short(u64::MAX), "2554 Jul 21 23:34:33");
    }

    #[test]
    fn zones_shift_the_clock_and_give_their_name() {
        let zone = Zone::from_posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(
            zone.long(at(1_767_222_000)),
            "Thu, 01 Jan 2026 00:00:00 CET"
        );
        assert_eq!(
            zone.long(at(1_782_856_800)),
            "Wed, 01 Jul 2026 00:00:00 CEST"
        );
        let west = Zone::from_posix("EST5").unwrap();
        assert_eq!(west.short(0), "1969 Dec 31 19:00:00");
        assert!(Zone::from_posix("!").is_none());
    }
}
