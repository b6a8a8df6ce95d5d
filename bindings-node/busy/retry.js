// Parses Retry-After, with the same results as in Python (tests/vectors/calls.json).
'use strict';

/** Longer times are cut to this. The limit of the throttle itself is lower. */
const LONGEST_MS = 86_400_000 * 365;

// The three date formats of RFC 9110. Date.parse() accepts almost any word followed by a number.
const TIME = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)';
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const WHOLE_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
const MONTH = '(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const FORMS = [
  `${DAY}, (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT`,
  `${WHOLE_DAY}, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT`,
  `${DAY} ${MONTH} (?<day>[\\d ]\\d) ${TIME} (?<year>\\d{4})`,
].map((form) => new RegExp(`^[ \\t]*${form}[ \\t]*$`));
const SECONDS = /^[ \t]*(\d+)[ \t]*$/;
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';

/**
 * The value of Retry-After, seconds or a date, in milliseconds from now. Undefined if it is invalid or past.
 * @param {string | null | undefined} value
 * @param {number} [nowMs]
 */
function retryAfterMs(value, nowMs = Date.now()) {
  const text = value ?? '';
  const seconds = SECONDS.exec(text)?.[1];
  if (seconds !== undefined) return Math.min(Number(seconds) * 1000, LONGEST_MS);
  const ms = parseDate(text, nowMs) - nowMs;
  return ms > 0 ? Math.min(ms, LONGEST_MS) : undefined;
}

/**
 * An HTTP date in milliseconds since 1970, or NaN if it is invalid.
 * @param {string} text
 * @param {number} nowMs
 */
function parseDate(text, nowMs) {
  const groups = FORMS.map((form) => form.exec(text)?.groups).find((found) => found);
  if (!groups) return NaN;
  const [day, hour, minute, second] = ['day', 'hour', 'minute', 'second'].map((name) => Number(groups[name]));
  const month = MONTHS.indexOf(groups.month) / 3;
  let year = Number(groups.year);
  if (groups.year.length === 2) {
    // The latest year with these digits that is at most 50 years ahead.
    const latest = new Date(nowMs).getUTCFullYear() + 50;
    year = latest - ((latest - year) % 100);
  }
  // Date.UTC() accepts a day such as February 30 and returns one of the next month.
  if (new Date(Date.UTC(year, month, day)).getUTCDate() !== day) return NaN;
  return Date.UTC(year, month, day, hour, minute, second);
}

module.exports = { LONGEST_MS, retryAfterMs };
