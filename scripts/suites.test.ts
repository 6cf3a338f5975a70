import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { filesBelow, reachedFrom, root, source } from "./source-tree.ts";
import { suitePaths } from "./suites.ts";

test("`npm test -- --core` leaves out the suites that set frameworks up, and no others", () => {
  const files = ["conformance", "examples", "bench"].flatMap((each) => filesBelow(join(root, each)));
  const setsUp = join(root, "conformance/environments/frameworks.ts");
  assert.ok(files.some(({ path }) => path === setsUp));
  const known = [...files, ...filesBelow(source)];
  const inFrameworks = suitePaths({ core: false }).filter((path) => reachedFrom(join(root, path), known).has(setsUp));
  const core = new Set(suitePaths({ core: true }));
  assert.deepEqual(
    suitePaths({ core: false }).filter((path) => !core.has(path)),
    inFrameworks,
  );
  assert.ok(core.size > 0 && inFrameworks.length > 0);
});
