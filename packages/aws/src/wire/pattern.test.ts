import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { asServiceModel } from "../spec/index.ts";
import { compilePattern, patternInputCharsMax } from "./pattern.ts";
import { threadCpuMs } from "@galatea/base/core/cpu-time-fixture.ts";

test("patterns match the whole value, and Java's character classes have Java's meaning", () => {
  assert.equal(compilePattern("a|b")?.test("ab"), false);
  assert.equal(compilePattern("\\A\\S[\\p{Print}]*\\z")?.test("x/y z"), true);
  assert.equal(compilePattern("\\A\\S[\\p{Print}]*\\z")?.test("x\ny"), false);
  assert.equal(compilePattern("\\p{ASCII}*")?.test("\u00e9"), false);
  assert.equal(compilePattern("[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*")?.test("h\u00e9 1"), true);
  assert.equal(compilePattern("x${1,128}"), null);
});

test("every pattern of the AWS models compiles, and no input makes one run long", () => {
  const folder = new URL("../spec/gen/", import.meta.url);
  for (const service of readdirSync(folder).filter((file) => file.endsWith(".json"))) {
    const model = asServiceModel(JSON.parse(readFileSync(new URL(service, folder), "utf8")));
    for (const [name, shape] of Object.entries(model.shapes)) {
      if (shape.type !== "string" || shape.pattern === undefined) continue;
      const expression = compilePattern(shape.pattern);
      assert.ok(expression !== null, `${service} ${name}: ${shape.pattern}`);
      const length = Math.min(shape.max ?? patternInputCharsMax, patternInputCharsMax);
      for (const unit of ["a", "-", "a-", "/", "s3://a", "arn:aws:iam::", "0", " "]) {
        const startMs = threadCpuMs();
        expression.test(`${unit.repeat(length / unit.length)}\u0001`.slice(-length));
        const tookMs = threadCpuMs() - startMs;
        assert.ok(tookMs < 250, `${service} ${name} took ${tookMs} ms for ${length} of '${unit}': ${shape.pattern}`);
      }
    }
  }
});
