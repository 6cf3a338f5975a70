import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startGalatea } from "../../conformance/environments/index.ts";
import { ScriptedPlatform } from "../../conformance/sagemaker/scripted-platform.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const tensor = { datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
const body = JSON.stringify({
  inputs: [
    { name: "INPUT0", ...tensor },
    { name: "INPUT1", ...tensor },
  ],
});

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[] }[];
}

/** Fails for a metric or a label that a dashboard uses and an exposition lacks. */
function checkDashboard(name: string, exposition: string): void {
  const { panels } = JSON.parse(readFileSync(at(name), "utf8")) as Dashboard;
  const lines = exposition.split("\n");
  const missing = panels
    .flatMap(({ targets }) => targets)
    .flatMap(({ expr, legendFormat }) => {
      const metrics = [...expr.matchAll(/\b(?:nv|galatea|process)_\w+/g)].map(([metric]) => metric);
      assert.ok(metrics.length > 0, expr);
      const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => `${label}="`);
      const isThere = (metric: string) =>
        lines.some((line) => /^\w+/.exec(line)?.[0] === metric && labels.every((label) => line.includes(label)));
      return metrics.filter((metric) => !isThere(metric)).map((metric) => `${metric} with ${labels.join(", ")}`);
    });
  assert.deepEqual(missing, []);
}

test("every metric and label of the dashboard of galatea serve exists in a scrape", async () => {
  const server = await startGalatea({ repositories: [at("../add_sub/models")] });
  try {
    await fetch(`http://127.0.0.1:${server.httpPort}/v2/models/add_sub/infer`, { method: "POST", body });
    const scrape = await fetch(`http://127.0.0.1:${server.metricsPort}/metrics`);
    checkDashboard("serve.json", await scrape.text());
  } finally {
    await server.stop();
  }
});

test("every metric and label of the dashboard of galatea up exists in a scrape with the owner's key", async () => {
  await using platform = await ScriptedPlatform.open();
  await platform.run(at("../add_sub/deploy.py"), ["demo"]);
  await platform.run("-c", [
    `import boto3; boto3.client("sagemaker-runtime").invoke_endpoint(EndpointName="demo", ContentType="application/json", Body='${body}')`,
  ]);
  const variables = await platform.variables();
  const key = `${variables["AWS_ACCESS_KEY_ID"]}:${variables["AWS_SECRET_ACCESS_KEY"]}`;
  const scrape = await fetch(`${variables["AWS_ENDPOINT_URL"]}/metrics`, {
    headers: { authorization: `Basic ${Buffer.from(key).toString("base64")}` },
  });
  checkDashboard("up.json", await scrape.text());
});
