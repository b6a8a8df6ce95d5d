// Which rule decided the last check, for middleware: it names this rule to clients. A decision names a
// rule only if that refused, and its figures alone do not tell rules with one burst apart.
'use strict';

/** The index of the rule; -1 if there is none. Whoever asks must look before anybody asks again. */
const last = { deciding: -1 };

module.exports = { last };
