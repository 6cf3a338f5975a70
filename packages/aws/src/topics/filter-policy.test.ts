import assert from "node:assert/strict";
import { test } from "node:test";
import { FilteredMessage, evaluateFilter, parseFilterPolicy, type FilterPolicy } from "./filter-policy.ts";
import type { MessageAttribute } from "./message-format.ts";
import type { FilterScope } from "./topic.ts";

const text = (value: string): MessageAttribute => ({ Type: "String", Value: value });
const number = (value: number): MessageAttribute => ({ Type: "Number", Value: String(value) });
const list = (...values: readonly unknown[]): MessageAttribute => ({
  Type: "String.Array",
  Value: JSON.stringify(values),
});

const verdict = (
  policy: object,
  scope: FilterScope,
  message: { readonly text?: string; readonly attributes?: Readonly<Record<string, MessageAttribute>> },
) => {
  const looked = new FilteredMessage({ text: "", attributes: {}, ...message });
  return lookedAt(parseFilterPolicy({ policy: JSON.stringify(policy), scope }), looked).verdict;
};

/** Evaluates a filter to its end, and returns its verdict and its number of steps. */
function lookedAt(policy: FilterPolicy, message: FilteredMessage) {
  const looking = evaluateFilter(policy, message);
  for (let chunkCount = 1; ; chunkCount += 1) {
    const chunk = looking.next();
    if (chunk.done === true) return { verdict: chunk.value, pieces: chunkCount };
  }
}

/** A rule, the attributes that it accepts, and the attributes that it rejects. */
const rules: readonly [rule: unknown, passing: readonly MessageAttribute[], kept: readonly MessageAttribute[]][] = [
  ["rugby", [text("rugby"), list("x", "rugby")], [text("Rugby"), text("rugby "), list("x"), number(1)]],
  [1.5, [number(1.5), list(1, 1.5)], [number(1), text("1.5")]],
  [true, [list(true)], [text("true"), list(false)]],
  [null, [list(null)], [text("null"), list()]],
  [{ prefix: "bas" }, [text("baseball"), list("x", "bass")], [text("abas"), number(3)]],
  [{ suffix: "ball" }, [text("baseball")], [text("balls")]],
  [{ "equals-ignore-case": "TENNIS" }, [text("tennis"), text("Tennis")], [text("tennis2")]],
  [{ wildcard: "a*b*c" }, [text("abc"), text("axxbyyc"), text("abbcc")], [text("ab"), text("acb"), text("xabc")]],
  [{ wildcard: "*" }, [text("anything")], [number(1)]],
  [{ wildcard: "ab*ba" }, [text("abba"), text("abxba")], [text("aba")]],
  [{ "anything-but": "x" }, [text("y"), number(1), list("x", "y")], [text("x"), list("x")]],
  [{ "anything-but": ["x", 1] }, [text("y"), number(2)], [text("x"), number(1)]],
  [{ "anything-but": { prefix: "order-" } }, [text("x")], [text("order-1")]],
  [{ numeric: ["=", 301.5] }, [number(301.5), list("x", 301.5)], [number(301), text("301.5")]],
  [{ numeric: [">", 0, "<=", 150] }, [number(0.01), number(150)], [number(0), number(150.01)]],
  [{ numeric: ["<", -1] }, [number(-2)], [number(-1)]],
  [{ cidr: "10.0.0.0/24" }, [text("10.0.0.255")], [text("10.0.1.0"), text("no address")]],
  [{ exists: true }, [text("x"), number(0)], [{ Type: "Binary", Value: "AA==" }]],
];

for (const [rule, passing, kept] of rules) {
  test(`the filter rule ${JSON.stringify(rule)} matches an attribute as SNS does`, () => {
    for (const attribute of passing) {
      assert.equal(verdict({ a: [rule] }, "MessageAttributes", { attributes: { a: attribute } }), "passes");
    }
    for (const attribute of kept) {
      const found = verdict({ a: [rule] }, "MessageAttributes", { attributes: { a: attribute } });
      assert.equal(found, "attributes-differ", JSON.stringify(attribute));
    }
  });
}

test("a message passes if every key matches one of its rules, including exists: false", () => {
  const policy = { a: ["x", { prefix: "y" }], b: [{ exists: false }] };
  const asked = (attributes: Readonly<Record<string, MessageAttribute>>) =>
    verdict(policy, "MessageAttributes", { attributes });
  assert.equal(asked({ a: text("x") }), "passes");
  assert.equal(asked({ a: text("yz"), c: text("c") }), "passes");
  assert.equal(asked({ a: text("x"), b: text("b") }), "attributes-differ");
  assert.equal(asked({}), "no-attributes");
  assert.equal(verdict({ b: [{ exists: false }] }, "MessageAttributes", {}), "passes");
  assert.equal(verdict({}, "MessageAttributes", {}), "passes");
  // `constructor` is a member of every JavaScript object, but not of a message's attributes.
  assert.equal(
    verdict({ constructor: [{ exists: true }] }, "MessageAttributes", { attributes: { a: text("x") } }),
    "attributes-differ",
  );
});

test("a filter on the body handles nested keys, arrays, $or, and bodies that are not objects", () => {
  const policy = { store: ["shop"], order: { items: { price: [{ numeric: [">", 10] }] } } };
  const asked = (body: unknown) => verdict(policy, "MessageBody", { text: JSON.stringify(body) });
  assert.equal(asked({ store: "shop", order: { items: { price: 11 } } }), "passes");
  assert.equal(asked({ store: "shop", order: { items: [{ price: 1 }, { price: 11 }] } }), "passes");
  assert.equal(asked({ store: "shop", order: { items: [{ price: 1 }] } }), "body-differs");
  assert.equal(asked({ store: "shop", order: {} }), "body-differs");
  assert.equal(asked([{ store: "shop" }]), "no-body");
  assert.equal(verdict(policy, "MessageBody", { text: "no JSON" }), "no-body");
  const either = { kind: ["x"], $or: [{ a: [1] }, { b: { c: [2] } }] };
  const chosen = (body: object) => verdict(either, "MessageBody", { text: JSON.stringify(body) });
  assert.equal(chosen({ kind: "x", a: 1 }), "passes");
  assert.equal(chosen({ kind: "x", b: { c: 2 } }), "passes");
  assert.equal(chosen({ kind: "x", a: 2, b: { c: 1 } }), "body-differs");
  assert.equal(chosen({ a: 1 }), "body-differs");
});

test("a body with a hundred thousand nested arrays does not overflow the stack", () => {
  const deep = `{"a":${"[".repeat(100_000)}1${"]".repeat(100_000)}}`;
  assert.equal(verdict({ a: [1] }, "MessageBody", { text: deep }), "passes");
});

const refusals: readonly [policy: string, scope: FilterScope, words: string][] = [
  ["{", "MessageBody", "FilterPolicy: failed to parse JSON."],
  ["[]", "MessageBody", "FilterPolicy: Filter policy must be an object"],
  ['{"a":"x"}', "MessageBody", 'FilterPolicy: "a" must be an object or an array'],
  ['{"a":[]}', "MessageBody", "FilterPolicy: Empty arrays are not allowed"],
  [
    '{"a":{"b":["x"]}}',
    "MessageAttributes",
    "Filter policy scope MessageAttributes does not support nested filter policy",
  ],
  [
    '{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"f":["x"]}',
    "MessageBody",
    "FilterPolicy: Filter policy can not have more than 5 keys",
  ],
  [JSON.stringify({ a: Array(151).fill("x") }), "MessageBody", "FilterPolicy: Filter policy is too complex"],
  // Each list counts its length times its depth. With four values instead of nine, this policy has (4 * 3) * (3 * 2) =
  // 72 combinations; with nine values it has 162.
  [
    JSON.stringify({ a: { b: { c: Array(9).fill("x") } }, d: { e: ["1", "2", "3"] } }),
    "MessageBody",
    "FilterPolicy: Filter policy is too complex",
  ],
  [`${'{"a":'.repeat(200)}["x"]${"}".repeat(200)}`, "MessageBody", "FilterPolicy: Filter policy is too complex"],
  [
    `${'{"$or":[{},'.repeat(18_000)}{"a":["x"]}${"]}".repeat(18_000)}`,
    "MessageBody",
    "FilterPolicy: Filter policy is too complex",
  ],
  [
    `{"a":[${'{"anything-but":'.repeat(15_000)}"x"${"}".repeat(15_000)}]}`,
    "MessageBody",
    "FilterPolicy: Unsupported anything-but pattern: anything-but",
  ],
  ['{"a":[["x"]]}', "MessageBody", "FilterPolicy: Match value must be String, number, true, false, or null"],
  ['{"a":[{"prefix":"x","suffix":"y"}]}', "MessageBody", "FilterPolicy: Only one key allowed in match expression"],
  ['{"a":[{"prefix":1}]}', "MessageBody", "FilterPolicy: prefix match pattern must be a string"],
  ['{"a":[{"like":"x"}]}', "MessageBody", "FilterPolicy: Unrecognized match type like"],
  ['{"a":[{"exists":"yes"}]}', "MessageBody", "FilterPolicy: exists match pattern must be either true or false."],
  ['{"a":[{"numeric":["=","1"]}]}', "MessageBody", "FilterPolicy: Value of equals must be numeric"],
  ['{"a":[{"numeric":["<>",1]}]}', "MessageBody", "FilterPolicy: Unrecognized numeric range operator: <>"],
  ['{"a":[{"numeric":[">",5,"<",5]}]}', "MessageBody", "FilterPolicy: Bottom must be less than top"],
  ['{"a":[{"numeric":["<",5,">",1]}]}', "MessageBody", "FilterPolicy: Too many elements in numeric expression"],
  ['{"a":[{"anything-but":{"exists":true}}]}', "MessageBody", "FilterPolicy: Unsupported anything-but pattern: exists"],
  ['{"a":[{"cidr":"10.0.0.0"}]}', "MessageBody", "FilterPolicy: Malformed CIDR, one '/' required"],
];

for (const [policy, scope, words] of refusals) {
  test(`an invalid filter policy gets SNS's error text: ${policy.slice(0, 40)}`, () => {
    assert.throws(() => parseFilterPolicy({ policy, scope }, "Attributes Reason: "), {
      code: "InvalidParameter",
      message: `Invalid parameter: Attributes Reason: ${words}`,
    });
  });
}

/**
 * Slow comparisons with a message of the maximum length, and the minimum number of steps that they must take. A policy
 * may have five times as many rules.
 */
const slow: readonly [what: string, rules: readonly unknown[], value: unknown, piecesMin: number][] = [
  [
    "addresses in networks",
    Array.from({ length: 30 }, (_, position) => ({ cidr: `10.${position}.0.0/24` })),
    Array.from({ length: 22_000 }, (_, position) => `1.1.${position >> 8}.${position & 255}`),
    140,
  ],
  [
    "positions in a text",
    Array.from({ length: 30 }, () => ({ wildcard: `*${"a".repeat(99)}b*` })),
    "a".repeat(260_000),
    15,
  ],
  [
    "numbers",
    Array.from({ length: 30 }, (_, position) => -position - 1),
    Array.from({ length: 125_000 }, () => 1),
    750,
  ],
];

for (const [what, rulesOfName, value, piecesMin] of slow) {
  test(`matching ${what} yields to the event loop`, () => {
    const policy = parseFilterPolicy({ policy: JSON.stringify({ a: rulesOfName }), scope: "MessageBody" });
    const message = new FilteredMessage({ text: JSON.stringify({ a: value }), attributes: {} });
    const { verdict: found, pieces } = lookedAt(policy, message);
    assert.equal(found, "body-differs");
    assert.ok(pieces >= piecesMin, `${pieces} pieces`);
  });
}
