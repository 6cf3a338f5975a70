import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { Progress } from "./progress.ts";

function shown(live: boolean, signal = new AbortController().signal): { text: () => string; progress: Progress } {
  let text = "";
  return { text: () => text, progress: new Progress({ live, out: { write: (more) => (text += more) }, signal }) };
}

test("late details of an earlier step do not replace the line of the current step", async () => {
  const { text, progress } = shown(true);
  let late: (words: string) => void = () => {};
  await progress.step("first", async (detail) => {
    late = detail;
  });
  await progress.step("second", async () => {
    late("words of the first");
    // The line is drawn every 100 ms.
    await eventually(() => /\.\.\. second \(0\.[1-9] s\)|\.\.\. second \([1-9]/.test(text()));
  });
  assert.doesNotMatch(text(), /words of the first/);
});

test("an aborted signal ends the running step with its reason, and further steps do not start", async () => {
  const stopping = new AbortController();
  const { text, progress } = shown(false, stopping.signal);
  const step = progress.step("endless", () => new Promise(() => {}));
  stopping.abort(new Error("enough"));
  await assert.rejects(step, /^Error: enough$/);
  await assert.rejects(
    progress.step("next", () => assert.fail("it began")),
    /^Error: enough$/,
  );
  assert.match(text(), /^ {2}endless: stopped, \d+ ms\n$/);
});

test("a failed step prints that it failed", async () => {
  const { text, progress } = shown(false);
  await assert.rejects(
    progress.step("broken", () => Promise.reject(new Error("why"))),
    /^Error: why$/,
  );
  assert.match(text(), /^ {2}broken: failed, \d+ ms\n$/);
});

test("without a terminal a long step prints its detail every 5 s", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { text, progress } = shown(false);
  const { promise, resolve } = Promise.withResolvers<void>();
  const step = progress.step("long", (detail) => {
    detail("20 MB");
    return promise;
  });
  t.mock.timers.tick(10_000);
  resolve();
  await step;
  assert.match(text(), /^( {2}\.\.\. long: 20 MB \(\d+\.\d s\)\n){2} {2}long: done, \d+ ms\n$/);
});
