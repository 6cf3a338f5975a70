import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("synchronous and asynchronous calls have stack for C code that needs more than a mebibyte", () => {
  // glibc's `regcomp` recurses once per parenthesis. A pattern with 2,000 of them needs between 1 and 2 MiB of stack.
  const script = `
    import { koffi } from ${JSON.stringify(new URL("./koffi.ts", import.meta.url).href)};
    koffi.config(JSON.parse(process.argv[1]));
    const regcomp = koffi.load(null).func("int regcomp(void *compiled, void *pattern, int flags)");
    const held = [Buffer.alloc(256), Buffer.from("(".repeat(2000) + "a" + ")".repeat(2000) + "\\0")];
    const end = (error, result) => (process.exitCode = error === null && held.length === 2 ? result : 1);
    if (process.argv[2] === "async") regcomp.async(...held, 1, end);
    else end(null, regcomp(...held, 1));
  `;
  const run = (kind: string, config: object) =>
    spawnSync(process.execPath, ["--input-type=module-typescript", "-e", script, JSON.stringify(config), kind]);
  for (const kind of ["async", "sync"]) {
    const ours = run(kind, {});
    assert.deepEqual([ours.status, ours.signal], [0, null], ours.stderr.toString());
    const small = run(kind, { [`${kind}_stack_size`]: 1024 * 1024 });
    assert.notEqual(small.status, 0, "the call fits into 1 MiB: it proves nothing");
  }
});
