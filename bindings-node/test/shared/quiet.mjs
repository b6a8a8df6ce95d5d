// A reporter for node --test: what failed and why, then one line. Thousands of vectors that passed
// are not worth reading.
import { inspect } from 'node:util';

/**
 * @param {AsyncIterable<{ type: string, data: any }>} source
 */
export default async function* quiet(source) {
  let passed = 0;
  let failed = 0;
  let stderr = '';
  for await (const { type, data } of source) {
    if (type === 'test:diagnostic' && data.nesting > 0) yield `${data.message}\n`;
    // Panics that are expected write there too.
    if (type === 'test:stderr') stderr += data.message;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const isSuite = data.details.type === 'suite';
    if (type === 'test:pass') {
      if (!isSuite) passed += 1;
      continue;
    }
    if (!isSuite) failed += 1;
    const { error } = data.details;
    yield `\nFAILED ${data.name} (${data.file ?? 'no file'})\n${inspect(error?.cause ?? error)}\n`;
  }
  if (failed > 0) yield stderr;
  yield `${passed} passed, ${failed} failed\n`;
  // A pattern that matches no file must not look like success.
  if (passed === 0) process.exitCode = 1;
}
