//! Rates, bursts and durations, parsed into exact fractions.
//!
//! `docs/semantics.md` defines the grammar. Nothing here is on the hot path.

use std::fmt;
use std::time::Duration;

use crate::convert::shown;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
/// The longest period, and the longest time of one unit: 100 years.
const LONGEST: u128 = 100 * 365 * DAY as u128;

/// Begins every message about a wrong rate.
const EXPECTED: &str =
    r#"must be a rate such as "100/s" or "5 per 2 minutes", or a number per second"#;

/// A rate: `count` units every `period`, as an exact fraction.
///
/// ```
/// use dthrottle::Rate;
///
/// let rate = Rate::parse("6 per 2 minutes").unwrap();
/// assert_eq!((rate.count(), rate.period_ns()), (1, 20_000_000_000));
/// assert_eq!(Rate::from_number(0.5).unwrap().to_string(), "1 per 2s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Units, in lowest terms with `period_ns`.
    count: u64,
    /// Nanoseconds.
    period_ns: u64,
    /// The count before reduction, rounded up. It is the default burst.
    written: u64,
}

impl Rate {
    /// Creates a rate of `count` units every `period`. An invalid rate is reported by
    /// [`Builder::build`](crate::Builder::build).
    pub fn new(count: u64, period: Duration) -> Rate {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let divisor = gcd(count.into(), period_ns.into()).max(1) as u64;
        Rate { count: count / divisor, period_ns: period_ns / divisor, written: count }
    }

    /// Parses a rate such as `"100/s"` or `"5 per 2 minutes"`.
    ///
    /// # Errors
    ///
    /// A message, if the text is not a rate, the rate is above 10^9 per second, or the period or
    /// the time of one unit is above 100 years.
    pub fn parse(text: &str) -> Result<Rate, String> {
        let fault = |reason: &str| format!("{EXPECTED}, got {}: {reason}", quoted(text));
        let mut rest = Scanner(text.trim());
        let count =
            rest.number().ok_or_else(|| fault("it has no number at the start"))?.map_err(fault)?;
        if rest.0.is_empty() {
            return Rate::from_fraction(count, Decimal::ONE, SECOND)
                .map_err(|reason| fault(&reason));
        }
        if !(rest.word("/") || rest.word("per")) {
            return Err(fault(r#"it has no "/" or "per" after the count"#));
        }
        let number = rest.number().transpose().map_err(fault)?.unwrap_or(Decimal::ONE);
        let unit = unit(rest.0).ok_or_else(|| fault("its unit of time is unknown"))?;
        Rate::from_fraction(count, number, unit).map_err(|reason| fault(&reason))
    }

    /// Creates a rate of `number` units per second.
    ///
    /// # Errors
    ///
    /// A message, if the number is not finite, not above zero, above 10^9, or below one unit in 100
    /// years.
    pub fn from_number(number: f64) -> Result<Rate, String> {
        let shown = shown(number);
        let fault = |reason: &str| format!("{EXPECTED}, got {shown}: {reason}");
        if !number.is_finite() || number <= 0.0 {
            return Err(fault("it is not a finite number above zero"));
        }
        let shortest = Scanner(&number.to_string()).number();
        let exact = shortest
            .and_then(|decimal| Rate::from_fraction(decimal.ok()?, Decimal::ONE, SECOND).ok());
        // A number such as 1/3 has no short decimal form. Below 1/s, rounding the interval to a
        // nanosecond is more precise than nine digits of the rate.
        if let Some(rate) = exact {
            Ok(rate)
        } else if number < 1.0 {
            let interval = (1e9 / number).round();
            if interval > LONGEST as f64 {
                return Err(fault("one unit takes more than 100 years"));
            }
            Ok(Rate { count: 1, period_ns: interval as u64, written: 1 })
        } else if number > 1e9 {
            Err(fault("it is above 1000000000 per second"))
        } else {
            Rate::parse(&format!("{number:.9}"))
        }
    }

    fn from_fraction(count: Decimal, number: Decimal, unit: u64) -> Result<Rate, String> {
        if count.mantissa == 0 {
            return Err("the count is not above zero".into());
        }
        if number.mantissa == 0 {
            return Err("the period is not above zero".into());
        }
        let too_long = || "the period is above 100 years".to_string();
        let period = number.mantissa.checked_mul(unit.into()).ok_or_else(too_long)?;
        if period / number.divisor() > LONGEST {
            return Err(too_long());
        }
        // count / period = (c / 10^a) / (p / 10^b) = (c * 10^b) / (p * 10^a)
        let finer = || "it has too many digits".to_string();
        let units = count.mantissa.checked_mul(number.divisor()).ok_or_else(finer)?;
        let nanos = period.checked_mul(count.divisor()).ok_or_else(finer)?;
        let divisor = gcd(units, nanos);
        let (mut units, mut nanos) = (units / divisor, nanos / divisor);
        if units > nanos {
            return Err("it is above 1000000000 per second".into());
        }
        if nanos / units > LONGEST {
            return Err("one unit takes more than 100 years".into());
        }
        if nanos > LONGEST {
            // The units of 100 years, so the error is below one nanosecond in that time.
            let most = LONGEST.checked_mul(units).ok_or_else(finer)? / nanos;
            nanos = nanos.checked_mul(most).ok_or_else(finer)? / units;
            units = most;
        }
        let written = count.mantissa.div_ceil(count.divisor());
        Ok(Rate {
            count: units as u64,
            period_ns: nanos as u64,
            written: u64::try_from(written).unwrap_or(u64::MAX),
        })
    }

    /// The units of the fraction, in lowest terms with [`Rate::period_ns`].
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The nanoseconds of the fraction, in lowest terms with [`Rate::count`].
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let fault = if self.count == 0 {
            "the count is not above zero"
        } else if self.period_ns == 0 {
            "the period is not above zero"
        } else if self.count > self.period_ns {
            "it is above 1000000000 per second"
        } else if u128::from(self.period_ns) > LONGEST {
            "the period is above 100 years"
        } else {
            return Ok(());
        };
        Err(format!("{EXPECTED}, got {self}: {fault}"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {:?}", self.count, Duration::from_nanos(self.period_ns))
    }
}

/// The burst of a rule, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// A number of units.
    Count(u64),
    /// The units that the rate gives in this many picoseconds, which is exact for nine decimals of
    /// a millisecond.
    Time { picos: u128, written: String },
    /// The count of the rate, as it was written.
    OfRate,
}

impl Burst {
    /// The largest burst, in units.
    pub(crate) const MAX: u64 = 1 << 40;

    /// Describes a valid burst in messages.
    pub(crate) const EXPECTED: &str =
        r#"a whole number from 1 to 1099511627776, or a duration such as "10s""#;

    /// Reads a whole number or a duration such as `"10s"`.
    pub(crate) fn parse(text: &str) -> Result<Burst, String> {
        let fault =
            |reason: &str| format!("must be {}, got {}: {reason}", Burst::EXPECTED, quoted(text));
        let mut rest = Scanner(text.trim());
        let number =
            rest.number().ok_or_else(|| fault("it has no number at the start"))?.map_err(fault)?;
        if rest.0.is_empty() {
            return match number {
                Decimal { mantissa, digits: 0 } => Ok(Burst::Count(saturate(mantissa))),
                _ => Err(fault("it is not a whole number")),
            };
        }
        let unit = unit(rest.0).ok_or_else(|| fault("its unit of time is unknown"))?;
        let picos = number.mantissa.saturating_mul(u128::from(unit) * 1000) / number.divisor();
        if picos > LONGEST * 1000 {
            return Err(fault("it is above 100 years"));
        }
        Ok(Burst::Time { picos, written: quoted(text) })
    }

    /// A burst given as a number of units.
    pub(crate) fn from_number(number: f64) -> Result<Burst, String> {
        if number.fract() == 0.0 && (1.0..=Burst::MAX as f64).contains(&number) {
            Ok(Burst::Count(number as u64))
        } else {
            Err(format!("must be {}, got {}", Burst::EXPECTED, shown(number)))
        }
    }

    /// A burst given as a duration.
    pub(crate) fn from_time(time: Duration) -> Burst {
        let nanos = time.as_nanos().min(LONGEST);
        Burst::Time { picos: nanos * 1000, written: format!("{time:?}") }
    }

    /// The burst in units at this rate.
    pub(crate) fn units(&self, rate: &Rate) -> Result<u64, String> {
        let (units, written) = match self {
            Burst::Count(count) => (u128::from(*count), count.to_string()),
            Burst::OfRate => (rate.written.into(), rate.written.to_string()),
            Burst::Time { picos, written } => {
                // `picos` stays below 2^72, because a duration is at most 100 years. A count above
                // 2^56 belongs to a very long period, so dropping the low 8 bits of both changes
                // nothing.
                let (count, period) = (u128::from(rate.count), u128::from(rate.period_ns) * 1000);
                let units = match picos.checked_mul(count) {
                    Some(product) => product / period,
                    None => (picos >> 8) * count / (period >> 8),
                };
                (units, format!("{written} at {rate}"))
            }
        };
        if units == 0 {
            Err(format!("must be {}, got {written}: it is less than one unit", Burst::EXPECTED))
        } else if units > Burst::MAX.into() {
            Err(format!("must be {}, got {written}: it is too large", Burst::EXPECTED))
        } else {
            Ok(units as u64)
        }
    }
}

/// Parses a duration such as `"100ms"` or `"1.5 minutes"`, to the nanosecond.
///
/// # Errors
///
/// A message, if the text is not a duration or is above 100 years.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let mut rest = Scanner(text.trim());
    let number = rest.number().ok_or("it has no number at the start")??;
    let unit = unit(rest.0).ok_or("its unit of time is unknown")?;
    let nanos = number.mantissa.saturating_mul(unit.into()) / number.divisor();
    match nanos > LONGEST {
        true => Err("it is above 100 years"),
        false => Ok(Duration::from_nanos(nanos as u64)),
    }
}

/// A decimal number that is not negative: `mantissa / 10^digits`.
#[derive(Clone, Copy)]
struct Decimal {
    mantissa: u128,
    digits: u32,
}

impl Decimal {
    const ONE: Decimal = Decimal { mantissa: 1, digits: 0 };

    fn divisor(self) -> u128 {
        10_u128.pow(self.digits)
    }
}

/// The rest of a text. Blanks after each part are skipped.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn advance(&mut self, bytes: usize) {
        self.0 = self.0[bytes..].trim_start();
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.0.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word));
        if found {
            self.advance(word.len());
        }
        found
    }

    /// Reads a decimal number. Returns `None` if the text does not start with one.
    fn number(&mut self) -> Option<Result<Decimal, &'static str>> {
        let end = self.0.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(self.0.len());
        let text = &self.0[..end];
        if text.is_empty() {
            return None;
        }
        self.advance(end);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() || fraction.contains('.') || text.ends_with('.') {
            return Some(Err("its number does not have the form 5 or 0.5"));
        }
        if whole.trim_start_matches('0').len() > 19 || fraction.len() > 9 {
            return Some(Err("its number has too many digits"));
        }
        let mantissa = whole.bytes().chain(fraction.bytes());
        let mantissa = mantissa.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
        Some(Ok(Decimal { mantissa, digits: fraction.len() as u32 }))
    }
}

/// A unit of time in nanoseconds.
fn unit(text: &str) -> Option<u64> {
    Some(match text.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => SECOND / 1000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * SECOND,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => 7 * DAY,
        "month" | "months" => 30 * DAY,
        "y" | "year" | "years" => 365 * DAY,
        _ => return None,
    })
}

/// Quotes a text for a message, and truncates it after 60 characters.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

pub(crate) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
