// A reporter for node --test, which prints failures and one summary line. It hides passed tests and the output of
// files without failures, because expected panics write, too.
import { inspect } from 'node:util';

/**
 * @param {AsyncIterable<{ type: string, data: any }>} source
 */
export default async function* quiet(source) {
  let passed = 0;
  /** @type {{ file: string, text: string }[]} */
  const failures = [];
  /** @type {Map<string, string>} */
  const written = new Map();
  for await (const { type, data } of source) {
    if (type === 'test:diagnostic' && data.nesting > 0) yield `${data.message}\n`;
    if (type === 'test:stderr') written.set(data.file, (written.get(data.file) ?? '') + data.message);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { type: kind, error } = data.details;
    if (type === 'test:pass') {
      if (kind !== 'suite') passed += 1;
      continue;
    }
    // The suites around a failed test also fail, without further information.
    if (error?.failureType === 'subtestsFailed') continue;
    const file = data.file ?? 'no file';
    failures.push({ file, text: `\nFAILED ${data.name} (${file})\n${inspect(error?.cause ?? error)}\n` });
  }
  // Prints failures after the output of their files, because readers start at the end of a log.
  for (const file of new Set(failures.map((failure) => failure.file))) yield written.get(file) ?? '';
  for (const { text } of failures) yield text;
  yield `${passed} passed, ${failures.length} failed\n`;
  // A pattern that matches no file is a failure.
  if (passed === 0) process.exitCode = 1;
}
