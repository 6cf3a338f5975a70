import assert from "node:assert/strict";
import { test } from "node:test";
import { unsignedAccess, type UnsignedAccess } from "./unsigned-access.ts";

const nothing: UnsignedAccess = {
  platformMetrics: false,
  endpointMetrics: false,
  confinementGaps: false,
  stsTunnel: false,
};
const local = { ...nothing, platformMetrics: true, confinementGaps: true, stsTunnel: true };
const owner = { ...nothing, platformMetrics: true, endpointMetrics: true, confinementGaps: true };

const stranger = { isOpen: false, hasOwnerKey: false };

test("a program of this machine can read data without names of endpoints, from each form of a loopback address", () => {
  for (const remoteAddress of ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
    assert.deepEqual(unsignedAccess({ ...stranger, remoteAddress }), local, remoteAddress);
});

test("callers from other addresses, and callers that disconnected, have no access", () => {
  for (const remoteAddress of [
    "10.0.0.1",
    "128.0.0.1",
    "::2",
    "::11",
    "fe80::1",
    "::ffff:10.127.0.1",
    "1127.0.0.1",
    undefined,
  ])
    assert.deepEqual(unsignedAccess({ ...stranger, remoteAddress }), nothing, remoteAddress);
});

test("the owner's key and an open platform give all metrics, and no tunnel to another machine", () => {
  for (const more of [{ hasOwnerKey: true }, { isOpen: true }]) {
    assert.deepEqual(unsignedAccess({ ...stranger, ...more, remoteAddress: "10.0.0.1" }), owner);
    assert.deepEqual(unsignedAccess({ ...stranger, ...more, remoteAddress: "::1" }), { ...owner, stsTunnel: true });
  }
});
