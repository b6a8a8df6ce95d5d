// What a Retry-After says. The same forms as in Python: tests/vectors/calls.json.
'use strict';

/** What it may say at most; the throttle's own limit is lower. */
const LONGEST_MS = 86_400_000 * 365;

// The three forms of a date in RFC 9110, as they are written there. Date.parse() makes a date of almost
// any word and number.
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
 * A Retry-After header in milliseconds: seconds, or a date; nothing if it cannot be read.
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
 * A date in HTTP, as Date.now() counts; NaN: it is none.
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
    // The latest that is not more than 50 years ahead.
    const latest = new Date(nowMs).getUTCFullYear() + 50;
    year = latest - ((latest - year) % 100);
  }
  // A day that is not in its month would be one of the next.
  if (new Date(Date.UTC(year, month, day)).getUTCDate() !== day) return NaN;
  return Date.UTC(year, month, day, hour, minute, second);
}

module.exports = { LONGEST_MS, retryAfterMs };
