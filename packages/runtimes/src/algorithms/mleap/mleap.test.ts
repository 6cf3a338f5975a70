import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import type { ColumnSchema } from "./data-schema.ts";
import type { LeapStep } from "./leap-step.ts";
import { LeapFailure, LeapRow, type LeapScalar, type LeapValue } from "./leap-values.ts";
import { readSparkModel } from "./spark-model.ts";
import { columnValue } from "./spark-values.ts";

/**
 * Bundles written by MLeap 0.20.0, rows, and MLeap's results for these rows. `conformance/mleap` documents how to
 * create the file. NaN and infinities are strings, because JSON cannot represent them.
 */
interface BundleVector {
  readonly name: string;
  readonly input: readonly VectorColumn[];
  readonly outputs: readonly VectorColumn[];
  readonly rows: readonly (readonly unknown[])[];
  readonly answers: readonly (readonly unknown[] | { readonly error: string })[];
  readonly files: Readonly<Record<string, string>>;
}

interface VectorColumn {
  readonly name: string;
  readonly type: ColumnSchema["base"];
  readonly struct: ColumnSchema["struct"];
}

const vectors = JSON.parse(
  readFileSync(new URL("../../../../../conformance/vectors/mleap-bundles.json", import.meta.url), "utf8"),
) as readonly BundleVector[];
const vector = (name: string) => vectors.find((each) => each.name === name) as BundleVector;

function inFolder<Result>(files: Readonly<Record<string, string>>, use: (directory: string) => Result): Result {
  const directory = mkdtempSync(join(tmpdir(), "galatea-mleap-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
    return use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const modelOf = (files: Readonly<Record<string, string>>): LeapStep => inFolder(files, readSparkModel);

function rowOf({ input }: BundleVector, values: readonly unknown[]): LeapRow {
  const row = new LeapRow();
  for (const [index, { name, type, struct }] of input.entries()) {
    const value = values[index] ?? null;
    const isNull = value === null;
    row.set(
      name,
      isNull ? { kind: "scalar", base: type, value: null } : columnValue({ name, base: type, struct }, value),
    );
  }
  return row;
}

function plain(value: LeapValue): unknown {
  const scalar = (each: LeapScalar | null) =>
    typeof each === "number" && !Number.isFinite(each) ? String(each) : typeof each === "bigint" ? Number(each) : each;
  return value.kind === "scalar" ? scalar(value.value) : Array.from<LeapScalar, unknown>(value.values, scalar);
}

function assertClose(actual: unknown, expected: unknown, about: string): void {
  if (Array.isArray(actual) && Array.isArray(expected)) {
    assert.equal(actual.length, expected.length, about);
    for (const [at, each] of actual.entries()) assertClose(each, expected[at], `${about}[${at}]`);
  } else if (typeof actual === "number" && typeof expected === "number") {
    assert.ok(
      Math.abs(actual - expected) <= 1e-12 * Math.max(1, Math.abs(expected)),
      `${about}: ${actual} ${expected}`,
    );
  } else assert.equal(actual, expected, about);
}

for (const bundle of vectors) {
  test(`the bundle '${bundle.name}' transforms each row as MLeap does`, () => {
    const model = modelOf(bundle.files);
    assert.ok(bundle.answers.some(Array.isArray), "the response has a row");
    for (const [at, result] of bundle.answers.entries()) {
      const row = rowOf(bundle, bundle.rows[at] as readonly unknown[]);
      const about = `${bundle.name} row ${at}`;
      if (!Array.isArray(result)) {
        assert.throws(() => model(row), LeapFailure, about);
        continue;
      }
      model(row);
      for (const [index, { name, type }] of bundle.outputs.entries()) {
        const value = row.get(name);
        assertClose(plain(value), result[index], `${about}, ${name}`);
        assert.equal(value.kind === "vector" ? "double" : value.base, type, `${about}, type of ${name}`);
      }
    }
  });
}

function outcome(files: Readonly<Record<string, string>>, bundle: BundleVector): string {
  let model: LeapStep;
  try {
    model = modelOf(files);
  } catch (error) {
    assert.ok(error instanceof InferenceError, `${String(error)}\n${(error as Error).stack}`);
    return "refused";
  }
  try {
    model(rowOf(bundle, bundle.rows[0] as readonly unknown[]));
    return "answered";
  } catch (error) {
    assert.ok(error instanceof LeapFailure, `${String(error)}\n${(error as Error).stack}`);
    return "failed";
  }
}

test("a bundle with truncated, missing or corrupt files is rejected with an InferenceError", () => {
  const names = ["abalone", "buckets", "scalers", "words", "trees", "forest-classifier", "multinomial"];
  fc.assert(
    fc.property(
      fc.constantFrom(...names.map(vector)),
      fc.nat(),
      fc.nat(),
      fc.oneof(fc.constant(null), fc.constant(""), fc.string({ maxLength: 3 })),
      (bundle, whichFile, where, instead) => {
        const [name, text] = Object.entries(bundle.files)[whichFile % Object.keys(bundle.files).length] as [
          string,
          string,
        ];
        const at = where % (text.length + 1);
        const changed = instead === null ? text.slice(0, at) : text.slice(0, at) + instead + text.slice(at + 1);
        outcome({ ...bundle.files, [name]: changed }, bundle);
      },
    ),
    { numRuns: 200 },
  );
  for (const bundle of vectors) {
    for (const name of Object.keys(bundle.files)) {
      const files = Object.fromEntries(Object.entries(bundle.files).filter(([each]) => each !== name));
      assert.equal(outcome(files, bundle), "refused", name);
    }
  }
});

const pipelineOf = (nodes: readonly string[]) =>
  JSON.stringify({ op: "pipeline", attributes: { nodes: { type: "list", string: nodes } } });
const emptyShape = JSON.stringify({ name: "x", shape: { inputs: [], outputs: [] } });
const withRoot = (model: string, more: Readonly<Record<string, string>> = {}) => ({
  "bundle.json": '{"format":"json"}',
  "root/model.json": model,
  "root/node.json": emptyShape,
  ...more,
});

test("a pipeline that contains itself or names a folder outside of the bundle is rejected", () => {
  for (const name of ["..", "../root", "a/b", "", "x\0y", "y".repeat(300)]) {
    assert.throws(() => modelOf(withRoot(pipelineOf([name]))), /the bundle has (a step with the name|no)/, name);
  }
  inFolder(withRoot(pipelineOf(["again"])), (directory) => {
    symlinkSync(join(directory, "root"), join(directory, "root", "again.node"));
    assert.throws(() => readSparkModel(directory), /deeper than 32 folders/);
  });
  inFolder(withRoot(pipelineOf(["again", "again"])), (directory) => {
    symlinkSync(join(directory, "root"), join(directory, "root", "again.node"));
    assert.throws(() => readSparkModel(directory), /deeper than 32 folders|more than 10000 steps/);
  });
});

test("the error for an unsupported transformer or bundle format names it", () => {
  assert.throws(
    () => modelOf(withRoot('{"op":"word_to_vector"}')),
    /'root' of the bundle is a 'word_to_vector', which is not supported; supported are: pipeline, string_indexer,/,
  );
  assert.throws(
    () => modelOf({ ...withRoot("{}"), "bundle.json": '{"format":"protobuf"}' }),
    /the bundle has the format 'protobuf', only json is supported/,
  );
});

test("a row fails when its vectors would exceed 16,777,216 elements, whatever sizes the model declares", () => {
  const shape = JSON.stringify({
    name: "x",
    shape: { inputs: [{ port: "input0", name: "a" }], outputs: [{ port: "output0", name: "b" }] },
  });
  const encoder = JSON.stringify({
    op: "one_hot_encoder",
    attributes: {
      category_sizes: { type: "list", int: [2 ** 31 - 1] },
      handle_invalid: { string: "error" },
      drop_last: {},
    },
  });
  const model = modelOf({ ...withRoot(encoder), "root/node.json": shape });
  const row = new LeapRow();
  row.set("a", { kind: "scalar", base: "double", value: 1 });
  assert.throws(() => model(row), /a row's vectors have more than 16777216 elements/);
});

test("a Java pattern runs only if it has the same meaning in JavaScript; others are rejected", () => {
  const tokens = (regex: string, text: string) => {
    const shape = { inputs: [{ port: "input", name: "t" }], outputs: [{ port: "output", name: "w" }] };
    const attributes = {
      regex: { string: regex },
      match_gaps: { boolean: true },
      token_min_length: { int: 1 },
      lowercase_text: {},
    };
    const model = modelOf({
      ...withRoot(JSON.stringify({ op: "regex_tokenizer", attributes })),
      "root/node.json": JSON.stringify({ name: "x", shape }),
    });
    const row = new LeapRow();
    row.set("t", { kind: "scalar", base: "string", value: text });
    model(row);
    return plain(row.get("w"));
  };
  assert.deepEqual(tokens("\\s+", "a b\u00a0c\td"), ["a", "b\u00a0c", "d"]);
  assert.deepEqual(tokens("[\\s,]+", "a, b"), ["a", "b"]);
  for (const regex of ["a++", "(?i)a", "[a&&b]", "[a[b]]", "\\Qa\\E", "a{2}+", "("]) {
    assert.throws(() => tokens(regex, "a"), InferenceError, regex);
  }
});
