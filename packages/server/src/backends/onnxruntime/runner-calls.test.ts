import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";
import { openSocketPair } from "@galatea/base/system";
import { RunnerCaller } from "./runner-calls.ts";

test("sending a descriptor to a runner that has just ended fails with the runner's end, not with the kernel's error", async (t) => {
  const control = openSocketPair();
  const descriptors = openSocketPair();
  const closed = Promise.withResolvers<void>();
  const calls = new RunnerCaller({ controlFd: control.ours, descriptorFd: descriptors.ours }, closed.resolve);
  const input = openSync("/dev/null", "r");
  t.after(() => [input, descriptors.ours].forEach((fd) => closeSync(fd)));
  // A process that ends closes its sockets one after another. The server acts between two closes.
  closeSync(descriptors.theirs);

  const call = calls.callWith("arena", { arena: 1, byteLength: 4096 }, input);
  await Promise.race([closed.promise, call]);
  calls.fail(new Error("it was killed"));

  await assert.rejects(call, { message: "it was killed" });
  closeSync(control.theirs);
});
