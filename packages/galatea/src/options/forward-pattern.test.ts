import assert from "node:assert/strict";
import { test } from "node:test";
import { forwardPattern } from "./forward-pattern.ts";

test("a pattern matches anywhere in a header name, case-insensitively unless it begins with (?-i)", () => {
  const finds = (pattern: string, name: string) => forwardPattern(pattern, "f")?.test(name);
  assert.equal(finds("MY_HEADER.*", "my_header_1"), true);
  assert.equal(finds("MY_HEADER.*", "not-my_header"), true);
  assert.equal(finds("(?i)MY_HEADER.*", "my_header_1"), true);
  assert.equal(finds("(?-i)MY_HEADER.*", "my_header_1"), false);
  assert.equal(finds("^x-a$", "x-ab"), false);
  assert.equal(forwardPattern("", "f"), null);
  assert.throws(() => forwardPattern("(", "f"), /^UsageError: invalid argument for --f, got: \(: /);
});
