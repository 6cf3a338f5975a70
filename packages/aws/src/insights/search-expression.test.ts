import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { RegexError, LinearTimeRegex } from "./search-expression.ts";

const found = (source: string, text: string) => new LinearTimeRegex(source).find(text);

test("groups, alternatives, lazy and greedy quantifiers, anchors and classes match as in JavaScript", () => {
  const lines = [
    "",
    "a",
    "aab",
    "user=ann, took 12.5 ms",
    "GET /a/b 404\n",
    "foo_bar foo-bar",
    "\u001b[31mred\u0000",
    "ÄÖ ß",
  ];
  const sources = [
    "(\\w+)=(?<name>[a-z]+)",
    "took (?:(\\d+)(?:\\.(\\d+))?) (ms|s)",
    "^(GET|POST) (\\S*?) ([45]\\d\\d)",
    "\\bbar\\b",
    "o\\B",
    "a{2,3}?b?",
    "(a|aa)(b?)$",
    "[^\\x00-\\x1f]+$",
    "[\\w.-]+$",
    "x*",
    "(b)|(a)",
    "\\u00c4.",
    "[\\]\\-a]",
  ];
  for (const source of sources) {
    for (const line of lines) {
      const expected = new RegExp(source).exec(line);
      assert.deepEqual(
        found(source, line),
        expected === null ? null : [...expected].map((each) => each ?? null),
        `${source} in ${line}`,
      );
    }
  }
});

test("(?i) at the beginning makes the match case-insensitive", () => {
  assert.deepEqual(found("(?i)error [a-c]", "an ERROR B"), ["ERROR B"]);
  assert.equal(found("error", "ERROR"), null);
});

test("Unicode classes, RE2's named groups and flags at any position are supported", () => {
  assert.deepEqual(found("(?P<word>\\p{L}+)", "1 Äß"), ["Äß", "Äß"]);
  assert.deepEqual(new LinearTimeRegex("(a)(?<b>b)(?P<c>c)").names, [null, "b", "c"]);
  assert.deepEqual(found("a(?i:b)", "ab aB"), ["ab"]);
});

test("lookarounds, back-references and invalid expressions are rejected", () => {
  for (const source of [
    "(a)\\1",
    "(?=a)",
    "(?<!a)b",
    "(a",
    "a)",
    "[a",
    "*a",
    "a**",
    "a{2,1}",
    "a{9999}",
    "(?:(?:a{1000}){1000})",
    "(?:(?:(?:(?:){1000}){1000}){1000}){1000}",
    `(?:${"a".repeat(100)}){30}`,
    "(?:[)]{1000}){2}\\p{L}{900}",
    "\\Qa\\E",
    "\\",
    "[z-a]",
  ]) {
    assert.throws(() => new LinearTimeRegex(source), RegexError, source);
  }
  assert.throws(() => new LinearTimeRegex("(".repeat(4000) + ")".repeat(4000)), RegexError);
});

test("expressions that make a backtracking engine exponential take time linear in the text", () => {
  for (const source of ["^(a+)+$", "^(a|aa)+$", "(.*)*x", "(a?){30}a{30}$", "(x+x+)+y"]) {
    const before = process.cpuUsage();
    new LinearTimeRegex(source).find(`${"a".repeat(20_000)}${"x".repeat(100)}!`);
    const { user } = process.cpuUsage(before);
    assert(user < 20_000_000, `${source}: ${user} us`);
  }
});

/**
 * Expressions in which every part consumes a character. Engines differ about repetitions of empty matches, so these are
 * excluded.
 */
const expression = fc.letrec<{ all: string }>((tie) => ({
  all: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    fc.constantFrom("a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\d"),
    fc.tuple(tie("all"), tie("all")).map(([a, b]) => `${a}${b}`),
    fc.tuple(tie("all"), tie("all")).map(([a, b]) => `(${a}|${b})`),
    fc.tuple(tie("all"), fc.constantFrom("+", "+?", "{1,2}", "{2}")).map(([a, sign]) => `(?:${a})${sign}`),
    fc
      .tuple(tie("all"), tie("all"), fc.constantFrom("*", "?", "*?", "??"))
      .map(([a, b, sign]) => `(?:${a})${sign}${b}`),
  ),
}));

test("property: a search finds the same match at the same position as JavaScript's RegExp", () => {
  fc.assert(
    fc.property(
      expression.all,
      fc.string({ unit: fc.constantFrom("a", "b", "c", "1", " "), maxLength: 8 }),
      (source, text) => {
        assert.equal(found(source, text)?.[0] ?? null, new RegExp(source).exec(text)?.[0] ?? null);
        assert.equal(new LinearTimeRegex(source).matches(text), new RegExp(source).test(text));
      },
    ),
    { numRuns: 2000 },
  );
});
