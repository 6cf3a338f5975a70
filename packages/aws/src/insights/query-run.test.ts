import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { QueryLimitExceeded } from "./aggregation.ts";
import { parseQuery } from "./parse-query.ts";
import { QueryError } from "./query.ts";
import { QueryRun } from "./query-run.ts";

const startMs = Date.UTC(2026, 10, 23, 2, 40);

const event = (message: string, index = 0) => ({
  timestampMs: startMs + index * 1000,
  ingestedMs: startMs + index * 1000,
  message,
  stream: `s${index % 2}`,
  log: "000000000000:g",
  pointer: `p${index}`,
});

function rowsOf(query: string, messages: readonly string[], limit = 10_000): readonly Record<string, string>[] {
  const run = new QueryRun(query, { limit, nowMs: startMs });
  for (const [index, message] of messages.entries()) run.add(event(message, index));
  return run.end().rows.map((row) => Object.fromEntries(row.filter(([name]) => name !== "@ptr")));
}

const requests = [
  '{"path":"/a","ms":12,"status":200,"ok":true,"user":{"name":"ann","tags":["x","y"]}}',
  '{"path":"/b","ms":30,"status":404,"ok":false,"user":{"name":"bob"}}',
  '{"path":"/a","ms":20,"status":500}',
  "GET /c took 7 ms",
  "GET /d took 9.5 ms",
];
const indexes = (condition: string) =>
  rowsOf(`fields @message | filter ${condition} | sort @timestamp asc`, requests).map((row) =>
    requests.indexOf(row["@message"] ?? ""),
  );

test("bin() with a very short or very long period does not block the event loop", () => {
  assert.deepEqual(rowsOf("stats count(*) as n by bin(1e-300) as at", ["x"]), [{ n: "1" }]);
  assert.deepEqual(rowsOf("stats count(*) as n by bin(1e300) as at", ["x"]), [
    { at: "1970-01-01 00:00:00.000", n: "1" },
  ]);
});

test("a query without fields returns @timestamp, @message and @ptr, newest event first", () => {
  const run = new QueryRun("limit 2", { limit: 10_000, nowMs: startMs });
  for (const [index, message] of requests.entries()) run.add(event(message, index));
  assert.deepEqual(run.end(), {
    rows: [
      [
        ["@timestamp", "2026-11-23 02:40:04.000"],
        ["@message", requests[4]],
        ["@ptr", "p4"],
      ],
      [
        ["@timestamp", "2026-11-23 02:40:03.000"],
        ["@message", requests[3]],
        ["@ptr", "p3"],
      ],
    ],
    recordsMatched: 5,
  });
});

test("filter compares numbers and strings, and supports like, in, and, or, not and parentheses", () => {
  for (const [condition, expected] of [
    ["status = 200", [0]],
    ['status = "200"', [0]],
    ["status >= 404", [1, 2]],
    ["ms < 20 and status = 200", [0]],
    ["ms > 15 or @message like /took \\d+ ms/", [1, 2, 3]],
    ["not (status = 200 or status = 404)", [2, 3, 4]],
    ['@message like "GET"', [3, 4]],
    ['@message not like "GET" and ispresent(ok)', [0, 1]],
    ["@message =~ /(?i)get/", [3, 4]],
    ["status in [200, 500]", [0, 2]],
    ['path not in ["/a", "/b"]', [3, 4]],
    ['user.name = "ann"', [0]],
    ["user.tags.1 = 'y'", [0]],
    ["user.tags[0] = 'x'", [0]],
    ["ok = 1", [0]],
    ["`path` != '/a'", [1, 3, 4]],
    ["ms * 2 + 1 > 40 / 1", [1, 2]],
    ["strlen(path) = 2 and substr(path, 1) = 'b'", [1]],
    ["-ms < -20", [1]],
    ["2 ^ 3 ^ 2 = 512", [0, 1, 2, 3, 4]],
    ["ms / 0 = 1", []],
    ["@logStream = 's1'", [1, 3]],
    ["ispresent(nothing)", []],
  ] as const) {
    assert.deepEqual(indexes(condition), expected, condition);
  }
});

test("stats computes counts, sums, averages and percentiles by group, also by bin()", () => {
  assert.deepEqual(rowsOf("stats count(*), avg(ms) as mean, max(ms), sum(ms) by path | sort path asc", requests), [
    { path: "/a", "count(*)": "2", mean: "16", "max(ms)": "20", "sum(ms)": "32" },
    { path: "/b", "count(*)": "1", mean: "30", "max(ms)": "30", "sum(ms)": "30" },
    { "count(*)": "2" },
  ]);
  assert.deepEqual(rowsOf("stats count(*) by bin(2s) as at | sort at asc", requests), [
    { at: "2026-11-23 02:40:00.000", "count(*)": "2" },
    { at: "2026-11-23 02:40:02.000", "count(*)": "2" },
    { at: "2026-11-23 02:40:04.000", "count(*)": "1" },
  ]);
  assert.deepEqual(
    rowsOf(
      "stats pct(ms, 50) as p, min(ms) as m, count_distinct(path) as d, earliest(status) as e, latest(status) as l, stddev(ms) as s",
      requests,
    ),
    [{ p: "20", m: "12", d: "2", e: "200", l: "500", s: "7.36357401146" }],
  );
  assert.deepEqual(rowsOf("filter nothing = 1 | stats count(*) as n, avg(ms) as a", requests), [{ n: "0" }]);
  assert.deepEqual(rowsOf("stats count(*) as n by path | stats max(n) as most", requests), [{ most: "2" }]);
});

test("parse extracts fields with globs and with groups of regular expressions", () => {
  assert.deepEqual(
    rowsOf('parse @message "GET * took * ms" as path2, took | filter ispresent(took) | display path2, took', requests),
    [
      { path2: "/d", took: "9.5" },
      { path2: "/c", took: "7" },
    ],
  );
  assert.deepEqual(rowsOf("parse @message /took (?<took>[\\d.]+)/ | stats sum(took) as all", requests), [
    { all: "16.5" },
  ]);
  assert.deepEqual(rowsOf("parse @message /GET (\\S+)/ as p | filter p = '/c' | display p", requests), [{ p: "/c" }]);
});

test("sort, limit, dedup and display order, cut, deduplicate and choose fields", () => {
  assert.deepEqual(rowsOf("fields ms | sort ms desc, path | limit 2", requests), [{ ms: "30" }, { ms: "20" }]);
  assert.deepEqual(rowsOf("dedup path | filter ispresent(path) | display path, ms", requests), [
    { path: "/a", ms: "20" },
    { path: "/b", ms: "30" },
  ]);
  assert.deepEqual(
    rowsOf("fields concat(path, '!') as p, toupper(user.name) | filter ms = 12 # only this\n| display p", requests),
    [{ p: "/a!" }],
  );
});

test("an invalid query is rejected with the position of the error", () => {
  for (const [query, offset] of [
    ["", 0],
    ["fields", 6],
    ["filter status >", 15],
    ["filter (a = 1", 13],
    ["fields a | | limit 1", 11],
    ["limit 0", 6],
    ["limit 10001", 6],
    ["fields f(a)", 7],
    ["filter @message like /(a/", 21],
    ["parse @message 'a * b *' as x", 15],
    ["stats median by a", 13],
    ["pattern @message", 0],
    ["fields a;", 8],
    [`filter ${"(".repeat(100)}a${")".repeat(100)}`, 57],
  ] as const) {
    assert.throws(
      () => parseQuery(query),
      (error) => error instanceof QueryError && error.startOffset === offset,
      query,
    );
  }
});

test("the number of groups and distinct values, and the number and length of rows, are limited", () => {
  const run = new QueryRun("stats count(*) by @message", { limit: 10_000, nowMs: 0 });
  assert.throws(() => {
    for (let index = 0; index <= 10_000; index++) run.add(event(String(index)));
  }, QueryLimitExceeded);
  const long = new QueryRun("fields @message", { limit: 10_000, nowMs: 0 });
  for (let index = 0; index < 100; index++) long.add(event(String(index).padEnd(200_000, "x"), index));
  const { rows, recordsMatched } = long.end();
  assert.deepEqual([rows.length, recordsMatched, rows[0]?.[0]?.[1].slice(0, 3)], [41, 100, "99x"]);
});

test("property: any text either parses as a query or is rejected as a malformed query", () => {
  const word = fc.constantFrom(
    "fields",
    "filter",
    "stats",
    "count(*)",
    "by",
    "|",
    "(",
    ")",
    "a",
    "@message",
    "like",
    "/x/",
    "'t'",
    "1",
    "5m",
    ",",
    "=",
    "not",
    "in",
    "[",
    "]",
    "parse",
    "as",
    "*",
    "-",
    "limit",
    "bin(",
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(word, { maxLength: 12 }).map((words) => words.join(" ")),
  );
  fc.assert(
    fc.property(text, (query) => {
      try {
        rowsOf(query, requests);
      } catch (error) {
        assert(error instanceof QueryError, String(error));
      }
    }),
    { numRuns: 3000 },
  );
});

test("property: sort with limit returns the first rows of the full order, and sums of groups equal the sum over events", () => {
  const value = fc.oneof(fc.integer({ min: -50, max: 50 }), fc.constant(null));
  fc.assert(
    fc.property(
      fc.array(fc.record({ v: value, g: fc.integer({ min: 0, max: 3 }) }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      (events, limit) => {
        const lines = events.map((each) => JSON.stringify(each));
        const sorted = events.toSorted((a, b) =>
          a.v === null || b.v === null ? Number(a.v === null) - Number(b.v === null) : b.v - a.v,
        );
        assert.deepEqual(
          rowsOf(`fields v | sort v desc | limit ${limit}`, lines).map(({ v }) => (v === undefined ? null : Number(v))),
          sorted.slice(0, limit).map(({ v }) => v),
        );
        const sums = new Map<number, number>();
        for (const { v, g } of events) sums.set(g, (sums.get(g) ?? 0) + (v ?? 0));
        const found = rowsOf("stats sum(v) as s, count(*) by g", lines).map(
          ({ g, s }) => [Number(g), Number(s ?? 0)] as const,
        );
        assert.deepEqual(new Map(found), sums);
      },
    ),
  );
});
