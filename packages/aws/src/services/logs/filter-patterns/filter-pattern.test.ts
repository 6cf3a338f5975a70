import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { compileFilterPattern } from "./filter-pattern.ts";
import { parsePatternRegex } from "./pattern-regex.ts";
import { compileWildcards } from "./pattern-values.ts";

const matches = (pattern: string, message: string) => compileFilterPattern(pattern)(message);
const refused = (pattern: string, message: RegExp) =>
  assert.throws(() => compileFilterPattern(pattern), { code: "InvalidParameterException", message });

/** Checks for each message whether the pattern matches it. */
function cases(pattern: string, expected: Readonly<Record<string, boolean>>): void {
  for (const [message, isMatch] of Object.entries(expected)) {
    assert.equal(matches(pattern, message), isMatch, `${pattern} over ${message}`);
  }
}

test("a pattern's terms must all occur, of its ?terms at least one, of its -terms none; %text% is a regular expression", () => {
  cases("", { anything: true, "": true });
  cases("ERROR 500", { "500 is an ERROR": true, "ERROR 404": false, "error 500": false });
  cases('"is an"', { "500 is an ERROR": true, "an is": false });
  cases('"a \\"quoted\\" word"', { 'say a "quoted" word': true, "a quoted word": false });
  cases("?WARN ?ERROR", { "a WARN": true, fine: false });
  cases("ERROR -ping", { "ERROR in ping": false, "ERROR in pong": true });
  cases('-"health check"', { "a health check": false, check: true });
  cases("100% sure", { "100% sure": true, "100 sure": false });
});

test("regular expressions support classes, repetitions, anchors and alternatives, alone and among terms", () => {
  cases("%AUTHORIZED%", { "[ERROR 401] UNAUTHORIZED REQUEST": true, "[ERROR 400] BAD": false });
  cases("%^[A-Z]+ \\d{3}$%", { "ERROR 404": true, "ERROR 4045": false, "an ERROR 404": false });
  cases("%4\\d\\d|5\\d\\d%", { "status 503": true, "status 302": false });
  cases("GET %10\\.0\\.\\d+%", { "GET 10.0.77": true, "PUT 10.0.77": false, "GET 10x0.77": false });
});

test("a pattern in braces matches JSON messages by conditions on their fields", () => {
  const message = JSON.stringify({
    level: "ERROR",
    code: 404,
    size: 1.5e-3,
    ok: true,
    none: null,
    "a.b": "dot",
    list: [{ id: 1 }, { id: 2 }],
    deep: { name: "model-7" },
  });
  for (const [pattern, isMatch] of [
    ['{ $.level = "ERROR" }', true],
    ["{ $.level = ERROR }", true],
    ['{ $.level = "ERR*" }', true],
    ['{ $.level != "ERROR" }', false],
    ['{ $.absent != "ERROR" }', false],
    ["{ $.code = 404 && $.size < 1e-2 }", true],
    ["{ $.code >= 405 || $.ok IS TRUE }", true],
    ["{ ($.code = 1 || $.code = 404) && $.ok IS FALSE }", false],
    ["{ $.none IS NULL }", true],
    ["{ $.absent IS NULL }", false],
    ["{ $.absent NOT EXISTS }", true],
    ["{ $.none NOT EXISTS }", false],
    ["{ $.list[1].id = 2 }", true],
    ["{ $.list[2].id = 2 }", false],
    ["{ $.list[*].id = 1 }", true],
    ['{ $["a.b"] = "dot" }', true],
    ["{ $.deep.name = %model-[0-9]+% }", true],
    ["{ $.deep.name = *-7 }", true],
    ["{ $.code = 4* }", true],
    ["{ $.constructor NOT EXISTS }", true],
  ] as const) {
    assert.equal(matches(pattern, message), isMatch, pattern);
  }
  cases("{ $.a = 1 }", { "a = 1": false, "[1]": false, '{"a":1': false, '  {"a":1}': true });
});

test("a pattern in brackets matches space-separated fields, exactly as many as it has unless it contains an ellipsis", () => {
  const line = '127.0.0.1 - alice [10/Oct/2000:13:25:15 -0700] "GET /apache_pb.gif HTTP/1.0" 404 2326';
  for (const [pattern, isMatch] of [
    ["[ip, user, username, timestamp, request, status_code, bytes]", true],
    ["[ip, user, username, timestamp, request, status_code]", false],
    ["[ip, user, username, timestamp, request, status_code = 4*, bytes > 1000]", true],
    ["[ip, user, username, timestamp, request, status_code = 404 || status_code = 410, bytes]", true],
    ["[..., status_code != 404, bytes]", false],
    ["[ip, ..., bytes >= 2326 && bytes <= 2326]", true],
    ['[ip, user, username, timestamp, request = "*apache*", ...]', true],
    ["[ip = %127\\.0\\.0\\.[1-9]%, ...]", true],
    ["[w1, w2, w3, w4, w5, w6, w7, w8, ...]", false],
    ["[...]", true],
  ] as const) {
    assert.equal(matches(pattern, line), isMatch, pattern);
  }
});

test("the error for an invalid pattern gives the reason and the position", () => {
  refused("{ $.a = }", /expected a value at character 9/);
  refused("{ $.a }", /expected a comparison, IS or NOT EXISTS/);
  refused("{ $.a = 1", /expected '}' at the end/);
  refused("{ $.a = 1 } x", /nothing may follow the closing brace/);
  refused('{ $.a > "x" }', /> compares numbers only/);
  refused("{ $ = 1 }", /expected a property after \$/);
  refused("[a, ..., b, ...]", /only once/);
  refused("[a", /expected ']'/);
  refused('"open', /not closed/);
  refused("%a{3,2}%", /is less than its minimum/);
  refused("%a{100}%", /too long/);
  refused("%(a)%", /unsupported character/);
  refused("%a% %b% -%c%", /at most 2 regular expressions/);
  refused("{ $.a = %a% || $.a = %b% || $.a = %c% }", /at most 2 regular expressions/);
  refused("[a = %a% || a = %b%, c = %c%]", /at most 2 regular expressions/);
  refused("{ $.a[*].b[*] = 1 }", /a selector may have one wildcard, at character 14/);
  refused("{ $.* = 1 || $.a.* = 2 || $[*] = 3 || $.b[*] = 4 }", /at most 3 wildcards/);
});

test("matching takes time linear in the length of hostile messages and patterns", () => {
  const long = "a".repeat(256 * 1024);
  assert.equal(compileFilterPattern(`%${"a*".repeat(63)}b%`)(long), false);
  assert.equal(compileFilterPattern("[...,x=1]")("[ ".repeat(128 * 1024)), false);
  assert.equal(compileFilterPattern(`{ ${"(".repeat(300)}$.a = 1${")".repeat(300)} }`)('{"a":1}'), true);
  assert.equal(compileFilterPattern("{ $.*.a = 1 }")(`{"a":${"[".repeat(5000)}${"]".repeat(5000)}}`), false);
});

const letters = fc.array(fc.constantFrom("a", "b", "1", "-"), { maxLength: 12 }).map((all) => all.join(""));
const chunk = fc
  .tuple(
    fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "\\-"),
    fc.constantFrom("", "*", "+", "?", "{2}", "{1,2}", "{0,}"),
  )
  .map((parts) => parts.join(""));
const alternative = fc
  .tuple(fc.constantFrom("", "^"), fc.array(chunk, { minLength: 1, maxLength: 5 }), fc.constantFrom("", "$"))
  .map(([start, segments, end]) => `${start}${segments.join("")}${end}`);

test("property: short regular expressions match exactly the messages that JavaScript's RegExp matches", () => {
  fc.assert(
    fc.property(fc.array(alternative, { minLength: 1, maxLength: 3 }), letters, (alternatives, message) => {
      const source = alternatives.join("|");
      assert.equal(parsePatternRegex(source)(message), new RegExp(source).test(message), `${source} over ${message}`);
    }),
    { numRuns: 2000 },
  );
});

test("property: long regular expressions over every kind of character match exactly the messages that JavaScript's RegExp matches", () => {
  const character = fc.constantFrom("a", "b", "\n", "\u00e9", "\u4e2d", "\uffff");
  const many = fc.tuple(
    fc.constantFrom("a", "[^b]", ".", "[a\u00e0-\u4fff]", "\\D", "[\\W]"),
    fc.integer({ min: 20, max: 45 }),
  );
  // Generates only few elements, because JavaScript's RegExp, which this test compares with, tries all ways to split
  // the characters among repetitions.
  const some = fc.array(chunk, { maxLength: 2 }).map((all) => all.join(""));
  const long = fc
    .tuple(fc.constantFrom("", "^"), some, many, some, fc.constantFrom("", "$"))
    .map(([start, before, [repeated, count], after, end]) => ({
      source: `${start}${before}${repeated}{${count - 12},${count}}${after}${end}|^b?\u4e2d$`,
      count,
    }));
  fc.assert(
    fc.property(
      long,
      fc.array(character, { maxLength: 3 }),
      character,
      fc.integer({ min: -14, max: 2 }),
      fc.array(character, { maxLength: 3 }),
      ({ source, count }, before, repeated, more, after) => {
        const message = [...before, repeated.repeat(count + more), ...after].join("");
        assert.equal(
          parsePatternRegex(source)(message),
          new RegExp(source, "s").test(message),
          `${source} over ${message}`,
        );
      },
    ),
    { numRuns: 3000 },
  );
});

test("property: wildcards match exactly the messages that the equivalent regular expression matches", () => {
  const pattern = fc.array(fc.constantFrom("a", "b", "*"), { maxLength: 8 }).map((all) => all.join(""));
  fc.assert(
    fc.property(pattern, letters, (input, message) => {
      assert.equal(compileWildcards(input)(message), new RegExp(`^${input.replaceAll("*", ".*")}$`).test(message));
    }),
    { numRuns: 2000 },
  );
});

test("property: any text is parsed as a pattern or rejected, and a pattern of words matches messages that contain them", () => {
  const grammar = fc.array(
    fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      "$",
      ".a",
      "=",
      "!=",
      "1",
      '"',
      "%",
      "*",
      "&&",
      "||",
      "(",
      ")",
      "...",
      ",",
      " ",
      "IS NULL",
      "-",
      "?",
    ),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        grammar.map((all) => all.join("")),
        fc.string(),
      ),
      fc.string(),
      (pattern, message) => {
        try {
          assert.equal(typeof compileFilterPattern(pattern)(message), "boolean");
        } catch (error) {
          assert.equal((error as { code?: string }).code, "InvalidParameterException", String(error));
        }
      },
    ),
    { numRuns: 3000 },
  );
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{1,5}$/), { maxLength: 5 }), (words) => {
      assert.ok(matches(words.join(" "), `<${words.toReversed().join("> <")}>`));
    }),
  );
});
