import assert from "node:assert/strict";
import { test } from "node:test";
import { newProbeState, evaluateProbe, type ProbeResult } from "./health.ts";

const limits = { missedPingsMax: 3, busyMsMax: 600_000 };

/** Returns the reason to replace the container after checks ten seconds apart; null if it is not replaced. */
function verdict(looks: readonly Partial<ProbeResult>[]): string | null {
  let health = evaluateProbe(newProbeState(0), { atMs: 0, isAnswered: true, workedNs: 0, isLate: false }, limits);
  for (const [index, look] of looks.entries()) {
    if (typeof health === "string") return health;
    const atMs = (index + 1) * 10_000;
    health = evaluateProbe(health, { atMs, isAnswered: false, workedNs: 0, isLate: false, ...look }, limits);
  }
  return typeof health === "string" ? health : null;
}

test("a container that neither responds to pings nor uses CPU is replaced after three checks", () => {
  assert.equal(verdict([{}, {}]), null);
  assert.equal(verdict([{}, {}, {}]), "did not respond to 3 pings and used no CPU");
});

test("a container that uses CPU is kept for ten minutes without responding to pings", () => {
  const working = Array.from({ length: 59 }, (_, index) => ({ workedNs: (index + 1) * 1e7 }));
  assert.equal(verdict(working), null);
  const endless = Array.from({ length: 70 }, (_, index) => ({ workedNs: (index + 1) * 1e7 }));
  assert.equal(verdict(endless), "used CPU without responding to pings for 610 s");
});

test("a successful ping, or a delay of the platform itself, resets the count", () => {
  assert.equal(verdict([{}, {}, { isAnswered: true }, {}, {}]), null);
  assert.equal(verdict([{}, {}, { isLate: true }, {}, {}]), null);
});

test("pings alone decide where CPU use cannot be measured", () => {
  const unknown = { workedNs: null };
  assert.equal(verdict([unknown, unknown, unknown]), "did not respond to 3 pings and used no CPU");
});
