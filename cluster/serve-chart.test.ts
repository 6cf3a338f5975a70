import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { serveFlags } from "../packages/galatea/src/options/serve-flags.ts";
import { schemaDifferences, type Schema } from "./values-schema.ts";

const root = join(import.meta.dirname, "..");
const textOf = (path: string) => readFileSync(join(root, path), "utf8");
const chartFile = (path: string) => textOf(join("charts/galatea-serve", path));
const { version } = JSON.parse(textOf("packages/galatea/package.json")) as { readonly version: string };

/** Returns the names of the flags in a list of container arguments. */
const flagsIn = (text: string) => [...text.matchAll(/^ +- --([a-z-]+)=/gm)].map(([, name = ""]) => name);
const unknown = (names: readonly string[]) => names.filter((name) => !(name in serveFlags));

test("the chart of the inference server and the program have the same version", () => {
  const chart = parse(chartFile("Chart.yaml")) as Readonly<Record<string, string>>;
  assert.deepEqual([chart["version"], chart["appVersion"]], [version, version]);
});

test("its values match its schema", () => {
  const values = parse(chartFile("values.yaml")) as Readonly<Record<string, unknown>>;
  const schema = JSON.parse(chartFile("values.schema.json")) as Schema;
  // Helm adds `global` to the values of every chart.
  assert.deepEqual(schemaDifferences("values", { ...values, global: {} }, schema), []);
});

test("its Deployment passes flags that `galatea serve` has", () => {
  const names = flagsIn(chartFile("templates/deployment.yaml"));
  assert.ok(names.length >= 3);
  assert.deepEqual(unknown(names), []);
});

test("KServe's runtime passes flags that `galatea serve` has, and the image has the program's version", () => {
  const text = chartFile("kserve-runtime.yaml");
  assert.deepEqual(unknown(flagsIn(text)), []);
  const { spec } = parse(text) as { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  assert.deepEqual(
    spec.containers.map(({ image }) => image),
    [`galatea:${version}`],
  );
});
