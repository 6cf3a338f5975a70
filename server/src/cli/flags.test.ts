import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "./flags.ts";
import { serveFlags } from "./serve-flags.ts";

test("--log-verbose takes a level, and true and false in any case, as tritonserver's ParseIntBoolOption does", () => {
  const verbose = (text: string) => parseFlags([`--log-verbose=${text}`], serveFlags).values.get("log-verbose");
  assert.deepEqual(["true", "FALSE", "0", "2"].map(verbose), [1, 0, 0, 2]);
  for (const text of ["yes", "constructor"])
    assert.throws(() => verbose(text), {
      message: `Invalid option value. Got ${text} for --log-verbose, expected an integer`,
    });
});

test("the last port there is is taken, the next is not", () => {
  const port = (text: string) => parseFlags([`--metrics-port=${text}`], serveFlags).values.get("metrics-port");
  assert.equal(port("65535"), 65535);
  assert.throws(() => port("65536"), /expected at most 65535$/);
});
