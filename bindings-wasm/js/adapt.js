// The exports of the WebAssembly module as the native part that the API needs (`surface.d.ts`).
'use strict';

/** @import { Native } from './surface.js' */

/**
 * @typedef {typeof import('./dthrottle.js')} Glue The script of wasm-bindgen.
 */

const { NUMBERS } = require('./api/records.js');

const encoder = new TextEncoder();

/** @param {import('./surface.js').Tag} tag */
const toBytes = (tag) => (typeof tag === 'string' ? encoder.encode(tag) : tag);

/**
 * @param {Glue} glue
 * @returns {Native}
 */
function adapt(glue) {
  // Handles and clocks are opaque for the API.
  const wasm = /** @type {any} */ (glue);
  const { fromConfig, fromToml, fromFile, domain, name, ruleNames, ruleLimits } = wasm;
  const { ruleWindows, tableName, stats, start, clusterStats, events } = wasm;
  const { badCost, close, now, advance, set } = wasm;
  const { busyFromConfig, busyTurn, busyOnBusy, busyOnOk, busyLimit, busyRate } = wasm;
  const { webCheckAllow, webTraits, webFieldNames, webPolicy, webMethods, webDomainName, webTableName, webDomain } = wasm;
  const { webIsExempt, webRefusal, webCountFailure, webCounts, webWarnings, webClose } = wasm;
  const { busyForget, busyStart, busyStats, busyNode, busyClose } = wasm;

  /** The numbers that `src/common/web.rs` writes. */
  const webAnswer = new Float64Array(NUMBERS + 7);
  let decision = new Float64Array(0);
  /** The numbers of the last decision, in the memory of the module. */
  function answer() {
    // Growth of the memory makes earlier views empty.
    if (decision.length === 0) {
      const { buffer } = /** @type {{ buffer: ArrayBuffer }} */ (wasm.memoryOfModule());
      decision = new Float64Array(buffer, wasm.answerAt(), NUMBERS);
    }
    return decision;
  }

  return {
    ...{ fromConfig, fromToml, fromFile, domain, name, ruleNames, ruleLimits },
    ...{ ruleWindows, tableName, stats, start, clusterStats, events },
    ...{ badCost, close, now, advance, set },
    newClock: (followsHost = false) => wasm.newClock(followsHost),
    ...{ busyFromConfig, busyTurn, busyOnBusy, busyOnOk, busyLimit, busyRate },
    ...{ busyForget, busyStart, busyStats, busyNode, busyClose },

    ...{ webCheckAllow, webTraits, webFieldNames, webPolicy, webMethods, webDomainName, webTableName, webDomain },
    ...{ webIsExempt, webRefusal, webCountFailure, webCounts, webWarnings, webClose },
    webOpen(encoded, throttle, clock, _within, _application, namePart, isTemplate) {
      const call = throttle ? wasm.webOpenThrottle : wasm.webOpenClock;
      return call(encoded, throttle ?? clock, namePart, isTemplate);
    },
    webAnswer,
    webId: (web) => /** @type {any} */ (web),
    webDecide: (web, peer, client, forwarded, kind, tag, cost, isGone) =>
      wasm.webDecide(web, peer, client, forwarded, kind, toBytes(tag ?? ''), cost, isGone, webAnswer),
    webEndDelay: (web, kind, tag, taken, isGone) => wasm.webEndDelay(web, kind, toBytes(tag), taken, isGone),
    webFinish: (web, kind, tag, taken, isSuccess) => wasm.webFinish(web, kind, toBytes(tag), taken, isSuccess),
    webTag: (kind, tag) => wasm.webTag(kind, toBytes(tag)),
    webReset: (web, tag) => wasm.webReset(web, toBytes(tag)),

    // The handle itself is the id, because a lookup would not be faster.
    domainId: (handle) => /** @type {any} */ (handle),

    check(id, tag, cost, maxDelayMs, partial, allowDebt) {
      const call = typeof tag === 'string' ? wasm.check : wasm.checkBytes;
      call(id, tag, cost, maxDelayMs, partial, allowDebt);
      return answer();
    },
    peek(id, tag, cost, maxDelayMs, partial, allowDebt) {
      const call = typeof tag === 'string' ? wasm.peek : wasm.peekBytes;
      call(id, tag, cost, maxDelayMs, partial, allowDebt);
      return answer();
    },
    allow(id, tag, cost) {
      const call = typeof tag === 'string' ? wasm.allow : wasm.allowBytes;
      return call(id, tag, cost);
    },
    allowMany(handle, tags) {
      const parts = tags.map(toBytes);
      const lengths = Uint32Array.from(parts, (part) => part.length);
      const all = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
      let at = 0;
      for (const part of parts) {
        all.set(part, at);
        at += part.length;
      }
      const allowed = /** @type {Uint8Array} */ (wasm.allowMany(handle, all, lengths));
      return Array.from(allowed, (truth) => truth !== 0);
    },
    refund(handle, tag, cost) {
      const call = typeof tag === 'string' ? wasm.refund : wasm.refundBytes;
      call(handle, tag, cost);
    },
    reset(handle, tag) {
      const call = typeof tag === 'string' ? wasm.reset : wasm.resetBytes;
      call(handle, tag);
    },
    chargeLocal(handle, tag, cost, ageMs) {
      const call = typeof tag === 'string' ? wasm.chargeLocal : wasm.chargeLocalBytes;
      call(handle, tag, cost, ageMs);
    },
    charge(handle, tag, cost) {
      const call = typeof tag === 'string' ? wasm.charge : wasm.chargeBytes;
      return call(handle, tag, cost);
    },
  };
}

module.exports = { adapt };
