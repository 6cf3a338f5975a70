import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { MetricName } from "@galatea/base/metrics";
import { parseMetricSearch } from "./metric-search.ts";

const metric = (namespace: string, metricName: string, dimensions: Readonly<Record<string, string>>): MetricName => ({
  namespace,
  metricName,
  dimensions: Object.entries(dimensions).map(([name, value]) => ({ name, value })),
});
const metrics = [
  metric("AWS/SageMaker", "Invocations", { EndpointName: "prod-a", VariantName: "AllTraffic" }),
  metric("AWS/SageMaker", "InvocationsPerInstance", { EndpointName: "prod-a", VariantName: "AllTraffic" }),
  metric("AWS/SageMaker", "Invocations", { EndpointName: "test", VariantName: "blue", EndpointConfigName: "c" }),
  metric("/aws/sagemaker/Endpoints", "GPUUtilization", { EndpointName: "prod-a", VariantName: "AllTraffic" }),
  metric("mine", "Latency", {}),
];

test("SEARCH finds metrics by namespace, dimensions, exact values and words, and by combinations of these", () => {
  for (const [text, expected] of [
    ["", [0, 1, 2, 3, 4]],
    ["{AWS/SageMaker,EndpointName,VariantName}", [0, 1]],
    ['{AWS/SageMaker,VariantName,EndpointName} MetricName="Invocations"', [0]],
    ["{AWS/SageMaker,EndpointName,VariantName,EndpointConfigName}", [2]],
    ["{mine}", [4]],
    ["Invocations", [0, 1, 2]],
    ["invocations per instance", [1]],
    ['"per instance"', [1]],
    ['MetricName="invocations"', []],
    ["MetricName=invocations", [0, 1, 2]],
    ["EndpointName=prod", [0, 1, 3]],
    ['EndpointName="prod"', []],
    ["utilization OR latency", [3, 4]],
    ["invocations NOT prod", [2]],
    ["invocations AND (blue OR instance)", [1, 2]],
    ['Namespace="mine"', [4]],
    ["VariantName=constructor", []],
  ] as const) {
    const matches = parseMetricSearch(text);
    assert.deepEqual(
      metrics.flatMap((each, index) => (matches(each) ? [index] : [])),
      expected,
      text,
    );
  }
});

test("the error for an invalid SEARCH expression says what is wrong", () => {
  for (const [text, message] of [
    ["(a", /an unmatched \(/],
    ["a)", /an unmatched \)/],
    ["a OR", /no term at its end/],
    ["NOT", /no term at its end/],
    ["AND a", /no term before AND/],
    ['a="', /an invalid term/],
    ["(".repeat(40), /nested too deeply/],
    ["NOT ".repeat(40), /nested too deeply/],
    ["a".repeat(2000), /1024 characters/],
  ] as const) {
    assert.throws(() => parseMetricSearch(text), { code: "ValidationError", message }, text);
  }
});

test("property: any text is parsed as a search or rejected, and a metric is found by its namespace, name and dimensions", () => {
  const grammar = fc.array(fc.constantFrom("{", "}", "(", ")", "a", "=", '"', " ", "AND ", "OR ", "NOT ", ","), {
    maxLength: 15,
  });
  fc.assert(
    fc.property(
      fc.oneof(
        grammar.map((all) => all.join("")),
        fc.string(),
      ),
      (text) => {
        try {
          for (const each of metrics) assert.equal(typeof parseMetricSearch(text)(each), "boolean");
        } catch (error) {
          assert.equal((error as { readonly code?: string }).code, "ValidationError", String(error));
        }
      },
    ),
    { numRuns: 2000 },
  );
  fc.assert(
    fc.property(fc.constantFrom(...metrics), (each) => {
      const schema = `{${[each.namespace, ...each.dimensions.map(({ name }) => name)].join(",")}}`;
      const terms = each.dimensions.map(({ name, value }) => `${name}="${value}"`);
      assert.ok(parseMetricSearch(`${schema} MetricName="${each.metricName}" ${terms.join(" ")}`)(each));
    }),
  );
});
