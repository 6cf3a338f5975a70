import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { filesBelow, packages, reachedFrom, root } from "./source-tree.ts";
import { filesOf, suites } from "./suites.ts";

const files = ["conformance", "examples", "bench", "cluster"]
  .flatMap((each) => filesBelow(join(root, each)))
  // `npm run cluster` runs these inside a Kubernetes cluster.
  .filter(({ name }) => !name.startsWith("cluster/tests/"));

test("every test file of conformance, examples, bench and cluster is in one row of the suites, and every row has files", () => {
  const listed = suites.flatMap((suite) => suite.files.flatMap((glob) => filesOf([{ ...suite, files: [glob] }])));
  const tests = files.flatMap(({ name, isTest }) => (isTest ? [name] : []));
  assert.deepEqual(listed.toSorted(), tests.toSorted());
  for (const suite of suites)
    for (const glob of suite.files) assert.ok(filesOf([{ ...suite, files: [glob] }]).length > 0, glob);
});

test("`npm test` installs no framework and trains no trees, because their packages are hundreds of megabytes", () => {
  const large = ["environments/frameworks.ts", "trees/generated-models.ts"].map((name) =>
    join(root, "conformance", name),
  );
  const known = [...files, ...filesBelow(packages)];
  for (const path of large) assert.ok(known.some((file) => file.path === path));
  const reaching = filesOf(suites.filter(({ run }) => run === "test")).filter((path) => {
    const reached = reachedFrom(join(root, path), known);
    return large.some((each) => reached.has(each));
  });
  assert.deepEqual(reaching, []);
});
