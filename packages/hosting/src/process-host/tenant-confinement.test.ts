import assert from "node:assert/strict";
import { test } from "node:test";
import { isolationGaps, readIsolationCapabilities } from "./tenant-confinement.ts";

const all = (1n << 41n) - 1n;

test("root with all capabilities on a current kernel has no isolation gaps", () => {
  assert.deepEqual(isolationGaps({ isRoot: true, capabilities: all, landlock: 6 }), {});
});

test("each isolation gap is reported with its reason, for other users, fewer capabilities and older kernels", () => {
  const asUser = isolationGaps({ isRoot: false, capabilities: 0n, landlock: 7 });
  assert.deepEqual(Object.keys(asUser), ["users", "view", "disk"]);
  assert.equal(asUser.users, "the platform does not run as root");
  const inContainer = isolationGaps({ isRoot: true, capabilities: all & ~(1n << 21n), landlock: 7 });
  assert.deepEqual(Object.keys(inContainer), ["view", "disk"]);
  const withoutUsers = isolationGaps({ isRoot: true, capabilities: all & ~(1n << 7n), landlock: 7 });
  assert.deepEqual(withoutUsers, { users: "root lacks CAP_SETUID, CAP_SETGID or CAP_SETPCAP" });
  const gapsOf = (landlock: number) => Object.keys(isolationGaps({ isRoot: true, capabilities: all, landlock }));
  assert.deepEqual([0, 3, 4, 6].map(gapsOf), [
    ["files", "network", "signals"],
    ["network", "signals"],
    ["signals"],
    [],
  ]);
});

test("the isolation capabilities of this process are read from the kernel", () => {
  const { isRoot, capabilities, landlock } = readIsolationCapabilities();
  assert.equal(isRoot, process.geteuid?.() === 0);
  assert.ok(capabilities >= 0n && landlock >= 0);
});
