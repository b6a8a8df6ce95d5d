// The standard field RateLimit as text: what is left in it is another number with nearly every
// request, and the rest is the same.
//
// The engine puts a text that is made of parts together when somebody looks at its letters, as Node
// does with every field, and takes longer over it than over all of a check. So it is made of the codes
// of its letters, which gives it whole; and of these only the digits are written anew.
'use strict';

const ZERO = 48;

class Value {
  /** @type {string[]} How it begins for each rule. */
  #begins;
  #index = -1;
  #left = 0;
  #more = 0;
  #text = '';
  /** Of the letters of the text. */
  #codes = [ZERO];
  /** Where in the text the digits of what is left end. */
  #end = 0;
  /** The numbers from here, and below there, have as many digits. */
  #least = 0;
  #above = 0;

  /** @param {string[]} names Of the rules, as the field has them. */
  constructor(names) {
    this.#begins = names.map((name) => `${name};r=`);
  }

  /**
   * @param {number} index Of the rule.
   * @param {number} left How much is left: a whole number, not negative.
   * @param {number} more The seconds until there is more; 0: it is full.
   */
  of(index, left, more) {
    if (index !== this.#index || more !== this.#more || left < this.#least || left >= this.#above) {
      this.#begin(index, left, more);
    } else if (left !== this.#left) {
      this.#count(left);
    }
    return this.#text;
  }

  /**
   * @param {number} index
   * @param {number} left
   * @param {number} more
   */
  #begin(index, left, more) {
    const time = more > 0 ? `;t=${more}` : '';
    const digits = String(left).length;
    this.#index = index;
    this.#left = left;
    this.#more = more;
    this.#text = `${this.#begins[index]}${left}${time}`;
    this.#codes = Array.from(this.#text, (letter) => letter.charCodeAt(0));
    this.#end = this.#text.length - time.length;
    this.#least = digits === 1 ? 0 : 10 ** (digits - 1);
    this.#above = 10 ** digits;
  }

  /** @param {number} left With as many digits as before. */
  #count(left) {
    let at = this.#end;
    let rest = left;
    do {
      const digit = rest % 10;
      at -= 1;
      this.#codes[at] = ZERO + digit;
      rest = (rest - digit) / 10;
    } while (rest > 0);
    this.#left = left;
    this.#text = String.fromCharCode.apply(null, this.#codes);
  }
}

exports.Value = Value;
