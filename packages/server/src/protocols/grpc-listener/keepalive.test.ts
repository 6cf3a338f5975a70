import assert from "node:assert/strict";
import { test } from "node:test";
import { PingStrikes } from "./keepalive.ts";
import { usualKeepalive } from "./keepalive-fixture.ts";

const options = { ...usualKeepalive, receivedPingIntervalMinMs: 100, pingStrikesMax: 2 };
const hourMs = 3_600_000;

/** Returns the times of the pings that exceed the limit if the server sends only acknowledgements. */
function tooMany(strikes: PingStrikes, hasCalls: boolean, atMs: readonly number[]): number[] {
  return atMs.filter((ms) => strikes.pinged(ms * 1e6, hasCalls, 0));
}

test("pings that arrive too fast are strikes, and the one after the last allowed closes the connection", () => {
  assert.deepEqual(tooMany(new PingStrikes(options), true, [0, 99, 198, 297]), [297]);
  assert.deepEqual(tooMany(new PingStrikes(options), true, [0, 100, 200, 300, 400]), []);
});

test("permitted pings between them do not reset the strikes", () => {
  const strikes = new PingStrikes(options);
  assert.deepEqual(tooMany(strikes, true, [0, 1, 101, 102, 202]), []);
  assert.deepEqual(tooMany(strikes, true, [203]), [203]);
});

test("data that the server sends resets the strikes; acknowledgements of pings do not", () => {
  const strikes = new PingStrikes(options);
  const pinged = (sentBytes: number) => strikes.pinged(0, true, sentBytes);
  // The server may send acknowledgements one by one, or those of several pings together.
  assert.deepEqual([0, 17, 34, 51].map(pinged), [false, false, false, true]);
  const together = new PingStrikes(options);
  assert.deepEqual(
    [100, 100, 100, 151].map((bytes) => together.pinged(0, true, bytes)),
    [false, false, false, true],
  );
  const sending = new PingStrikes(options);
  for (let pings = 0; pings < 100; pings++) assert.equal(sending.pinged(0, true, pings * (17 + 9)), false);
});

test("without a call one ping in two hours is allowed, unless the server permits pings without calls", () => {
  const everyHour = [0, 1, 2, 3].map((hours) => hours * hourMs);
  assert.deepEqual(tooMany(new PingStrikes(options), false, everyHour), [3 * hourMs]);
  assert.deepEqual(tooMany(new PingStrikes({ ...options, permitWithoutCalls: true }), false, everyHour), []);
  assert.deepEqual(
    tooMany(
      new PingStrikes(options),
      false,
      everyHour.map((ms) => 2 * ms),
    ),
    [],
  );
});

test("without a limit of strikes no connection is closed", () => {
  const pings = Array.from({ length: 100 }, (_, ms) => ms);
  assert.deepEqual(tooMany(new PingStrikes({ ...options, pingStrikesMax: 0 }), true, pings), []);
});
