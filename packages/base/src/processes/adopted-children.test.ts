import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFamilyMark, unknownFamily } from "./adopted-children.ts";

test("a family is known by its limit; a limit that was lowered is of no family, and none is nobody's", () => {
  const limits = (soft: string, hard: string) =>
    `Max realtime timeout      ${soft}            ${hard}            us        \n`;
  assert.equal(parseFamilyMark(limits("1000000000007", "1000000000007")), 7);
  assert.equal(parseFamilyMark(limits("1000000000007", "unlimited")), 7);
  assert.equal(parseFamilyMark(limits("1000000", "1000000")), unknownFamily);
  assert.equal(parseFamilyMark(limits("1004294967296", "1004294967296")), unknownFamily);
  assert.equal(parseFamilyMark(limits("unlimited", "unlimited")), null);
});
