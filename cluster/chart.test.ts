import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { gatewayFlags } from "../packages/galatea/src/options/gateway-flags.ts";
import { upFlags } from "../packages/galatea/src/options/up-flags.ts";
import { missingPackages } from "./programs.ts";
import { schemaDifferences, type Schema } from "./values-schema.ts";

const root = join(import.meta.dirname, "..");
const textOf = (path: string) => readFileSync(join(root, path), "utf8");
const chartFile = (path: string) => textOf(join("charts/galatea", path));

test("the chart and the program have the same version", () => {
  const chart = parse(chartFile("Chart.yaml")) as Readonly<Record<string, string>>;
  const { version } = JSON.parse(textOf("packages/galatea/package.json")) as { readonly version: string };
  assert.deepEqual([chart["version"], chart["appVersion"]], [version, version]);
});

test("values.yaml matches its schema, and the schema rejects all other values", () => {
  const values = parse(chartFile("values.yaml")) as Readonly<Record<string, unknown>>;
  const schema = JSON.parse(chartFile("values.schema.json")) as Schema;
  // Helm adds `global` to the values of every chart.
  assert.deepEqual(schemaDifferences("values", { ...values, global: {} }, schema), []);
  const changed = { ...values, global: {}, region: 1, replica: 3 };
  assert.deepEqual(schemaDifferences("values", changed, schema), [
    "values.region is of type integer, the schema's is string",
    "values.replica is not in the schema",
  ]);
});

for (const [template, command, flags, count] of [
  ["stateful-set", "up", upFlags, 13],
  ["gateways", "gateway", gatewayFlags, 3],
] as const) {
  test(`the template ${template} passes flags that \`galatea ${command}\` has`, () => {
    const text = chartFile(`templates/${template}.yaml`);
    const names = [...text.matchAll(/^ +- --([a-z-]+)(?:=|$)/gm)].map(([, name = ""]) => name);
    assert.equal(names.length, count);
    assert.deepEqual(
      names.filter((name) => !(name in flags)),
      [],
    );
  });
}

test("with one replica the Service selects the platform, and with more of them gateways; the schema then requires records and objects", () => {
  const schema = JSON.parse(chartFile("values.schema.json")) as {
    readonly if: object;
    readonly then: { readonly properties: Readonly<Record<string, { readonly minLength: number }>> };
  };
  assert.deepEqual(schema.if, { properties: { replicas: { minimum: 2 } } });
  assert.deepEqual(schema.then, { properties: { records: { minLength: 1 }, objects: { minLength: 1 } } });
  const several = "gt (int .Values.replicas) 1";
  assert.match(
    chartFile("templates/service.yaml"),
    /selector: .*\(gt \(int \.Values\.replicas\) 1 \| ternary "galatea\.gatewaySelector" "galatea\.selector"\)/,
  );
  assert.ok(chartFile("templates/gateways.yaml").startsWith(`{{- if ${several} }}`));
  const statefulSet = chartFile("templates/stateful-set.yaml");
  assert.ok(statefulSet.includes(`$probe := ${several} | ternary "/health" "/ping"`));
  assert.equal([...statefulSet.matchAll(/httpGet: \{path: \{\{ \$probe \}\}, port: http\}/g)].length, 3);
  // A standby must not lose its pod's place in the order of an update: the update waits until each pod is ready.
  assert.doesNotMatch(statefulSet, /OnDelete|publishNotReadyAddresses/);
});

test("the packages reported for missing programs are those that cluster/README.md installs", () => {
  const line = /^apt-get install (.*)$/m.exec(textOf("cluster/README.md"))?.[1] ?? "";
  const missing = missingPackages("/nonexistent");
  for (const name of missing.filter((each) => !/^(golang|util-linux)/.test(each)))
    assert.ok(line.split(" ").includes(name), name);
});
