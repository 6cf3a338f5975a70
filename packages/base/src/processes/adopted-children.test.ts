import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFamilyMark, unknownFamily } from "./adopted-children.ts";

test("a process family is recognised by its resource limit; a lowered or missing limit belongs to no family", () => {
  const limits = (soft: string, hard: string) =>
    `Max realtime timeout      ${soft}            ${hard}            us        \n`;
  assert.equal(parseFamilyMark(limits("1000000000007", "1000000000007")), 7);
  assert.equal(parseFamilyMark(limits("1000000000007", "unlimited")), 7);
  assert.equal(parseFamilyMark(limits("1000000", "1000000")), unknownFamily);
  assert.equal(parseFamilyMark(limits("1004294967296", "1004294967296")), unknownFamily);
  assert.equal(parseFamilyMark(limits("unlimited", "unlimited")), null);
});
