// The standard field RateLimit as text: what is left in it is another number with nearly every
// request, and the rest is mostly the same.
//
// The engine puts a text that is made of parts together when somebody looks at its letters, as Node
// does with every field, and takes longer over it than over all of a check. So it is made of the codes
// of its letters, which gives it whole. These are kept for each rule and each number of digits, as
// clients come in turns; and only the digits are written anew.
'use strict';

const ZERO = 48;

/** The text for a rule and a number of digits. */
class Form {
  #begin;
  #left = -1;
  #more = -1;
  #text = '';
  /** @type {number[] | null} Those of the letters, once a second text is made that differs only in digits. */
  #codes = null;

  /** @param {string} begin What stands before the digits. */
  constructor(begin) {
    this.#begin = begin;
  }

  /**
   * @param {number} left
   * @param {number} more
   */
  of(left, more) {
    if (more !== this.#more) {
      this.#text = `${this.#begin}${left}${more > 0 ? `;t=${more}` : ''}`;
      this.#codes = null;
      this.#more = more;
    } else if (left !== this.#left) {
      this.#codes ??= toCodes(this.#text);
      this.#text = counted(this.#codes, this.#begin.length, left);
    }
    this.#left = left;
    return this.#text;
  }
}

/** @param {string} text */
function toCodes(text) {
  const codes = [];
  for (let i = 0; i < text.length; i += 1) codes.push(text.charCodeAt(i));
  return codes;
}

/**
 * The text with another number of as many digits.
 * @param {number[]} codes
 * @param {number} from Where the digits begin.
 * @param {number} left
 */
function counted(codes, from, left) {
  let at = from + digitsOf(left);
  for (let rest = left; at > from; ) {
    const digit = rest % 10;
    at -= 1;
    codes[at] = ZERO + digit;
    rest = (rest - digit) / 10;
  }
  return String.fromCharCode.apply(null, codes);
}

/** @param {number} number */
function digitsOf(number) {
  let digits = 1;
  for (let above = 10; number >= above; above *= 10) digits += 1;
  return digits;
}

class Value {
  #begins;
  /** @type {Form[][]} By rule and number of digits. */
  #forms;

  /** @param {string[]} names Of the rules, as the field has them: ASCII. */
  constructor(names) {
    this.#begins = names.map((name) => `${name};r=`);
    this.#forms = names.map(() => []);
  }

  /**
   * @param {number} index Of the rule.
   * @param {number} left How much is left: a whole number, not negative.
   * @param {number} more The seconds until there is more; 0: it is full.
   */
  of(index, left, more) {
    const digits = digitsOf(left);
    const form = (this.#forms[index][digits] ??= new Form(this.#begins[index]));
    return form.of(left, more);
  }
}

exports.Value = Value;
