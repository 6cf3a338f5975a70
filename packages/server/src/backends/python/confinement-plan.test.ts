import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findCgroups } from "./cgroups.ts";
import { confinementRows, createConfinementPlan, type MachineFacts, type TenantOptions } from "./confinement-plan.ts";
import { UserSlice } from "./user-slice.ts";

const options: TenantOptions = {
  users: { first: 2_000_000_000, count: 8192 },
  readPaths: ["/shared"],
  writePaths: ["/out"],
  fixedPaths: [{ path: "/opt/ml/model", leadsTo: "model" }],
  tcpPorts: [443],
  gpuDevices: () => [],
  opensPort: true,
  memoryBytesMax: null,
  allMemoryBytesMax: 1000,
  processesMax: 64,
  scratchBytesMax: 500,
  directory: "/own",
  dataDirectory: null,
  slicesDirectory: "/slices",
};
const complete: MachineFacts = {
  landlock: 7,
  isRoot: true,
  usersMapped: true,
  views: true,
  ownPaths: false,
  environmentPaths: [],
};
const parts = {
  user: 2_000_000_007,
  cgroups: [],
  isMemoryBounded: true,
  scratchDirectory: null,
  readPaths: ["/model"],
  modelDirectory: "/model",
};

test("with all privileges the plan has every confinement and nothing is missing", () => {
  const rows = confinementRows(options, complete, { usersMissing: null, cgroupsMissing: null });
  assert.deepEqual(
    rows.filter((row) => row.missing !== null),
    [],
  );
  const plan = createConfinementPlan(options, complete, "/own/root", parts);
  assert.deepEqual(
    [plan.user, plan.view, plan.scratch, plan.read],
    [2_000_000_007, "/own/root", "/tmp", ["/model", "/shared"]],
  );
  assert.deepEqual([plan.tcp, plan.opensPort], [[443], true]);
  assert.equal(createConfinementPlan({ ...options, tcpPorts: [] }, complete, "/own/root", parts).opensPort, false);
  assert.deepEqual(plan.write, ["/out"]);
  assert.deepEqual(plan.links, [["/opt/ml/model", "/model"]]);
  assert.deepEqual(plan.limits, { RLIMIT_CORE: 1, RLIMIT_NPROC: 64 });
});

test("without root the plan uses Landlock and limits, and lists what is missing", () => {
  const facts: MachineFacts = { ...complete, isRoot: false, usersMapped: false, views: false };
  const missing = {
    usersMissing: "the server does not run as root",
    cgroupsMissing: "control groups cannot be created",
  };
  const rows = confinementRows(options, facts, missing).filter((row) => row.missing !== null);
  assert.deepEqual(
    rows.map((row) => row.what),
    ["users", "view", "memory", "processes", "disk"],
  );
  const plan = createConfinementPlan(options, facts, "/own/root", {
    ...parts,
    user: null,
    isMemoryBounded: false,
    scratchDirectory: "/own/1",
  });
  assert.deepEqual([plan.user, plan.view, plan.scratch, plan.dropsCapabilities], [null, null, "/own/1", false]);
  assert.deepEqual(plan.limits, { RLIMIT_CORE: 1, RLIMIT_DATA: 1000, RLIMIT_FSIZE: 500 });
});

test("a kernel without Landlock, and an older version, are reported with what they do not restrict", () => {
  const told = (landlock: number) =>
    confinementRows(options, { ...complete, landlock }, { usersMissing: null, cgroupsMissing: null })
      .filter((row) => row.missing !== null)
      .map((row) => row.what);
  assert.deepEqual(told(0), ["files", "network", "signals"]);
  assert.deepEqual(told(3), ["network", "signals"]);
  assert.deepEqual(told(5), ["signals"]);
});

test("control groups are found in both versions, also in a container that sees only its own subtree", () => {
  const first =
    "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n36 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids";
  assert.deepEqual(findCgroups("8:pids:/a\n4:memory:/b\n0::/c", first), [
    { version: 1, controllers: ["memory"], directory: "/sys/fs/cgroup/memory/b" },
    { version: 1, controllers: ["pids"], directory: "/sys/fs/cgroup/pids/a" },
  ]);
  const second = "31 23 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw";
  assert.deepEqual(findCgroups("0::/docker/x/own", second), [
    { version: 2, controllers: ["memory", "pids"], directory: "/sys/fs/cgroup/own" },
  ]);
});

test("a user id belongs to one tenant while that exists, and other servers use other ids", () => {
  const directory = mkdtempSync(join(tmpdir(), "galatea-users-"));
  try {
    using one = UserSlice.open({ first: 5000, count: 8192 }, directory)!;
    using other = UserSlice.open({ first: 5000, count: 8192 }, directory)!;
    assert.equal(UserSlice.open({ first: 5000, count: 8192 }, directory), null);
    const used = Array.from({ length: 4096 }, () => one.take()!);
    assert.equal(new Set(used).size, 4096);
    assert.equal(one.take(), null);
    assert.ok(!used.includes(other.take()!));
    const [user = 0] = used;
    assert.ok(!one.isFree(user) && !one.isFree(1));
    one.release(user);
    assert.ok(one.isFree(user));
    assert.equal(one.take(), null);
    one.free(user);
    assert.equal(one.take(), user);
    assert.ok(!one.isFree(user));
  } finally {
    rmSync(directory, { recursive: true });
  }
});
