// A reporter for node --test: one line, and before it what failed and why. Thousands of vectors that
// passed are not worth reading, nor what files wrote that did not fail: panics that are expected
// write too.
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
    // Where a test failed, what it stands in failed too, with nothing more to say.
    if (error?.failureType === 'subtestsFailed') continue;
    const file = data.file ?? 'no file';
    failures.push({ file, text: `\nFAILED ${data.name} (${file})\n${inspect(error?.cause ?? error)}\n` });
  }
  // The end of a log is what is read: failures come after what their files wrote.
  for (const file of new Set(failures.map((failure) => failure.file))) yield written.get(file) ?? '';
  for (const { text } of failures) yield text;
  yield `${passed} passed, ${failures.length} failed\n`;
  // A pattern that matches no file must not look like success.
  if (passed === 0) process.exitCode = 1;
}
