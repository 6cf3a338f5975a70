import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startGalatea } from "../../conformance/environments/index.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const readme = readFileSync(at("../../README.md"), "utf8");

test("the first request of README.md gets the response that README.md prints", async () => {
  const body = /^curl -s localhost:8000\/v2\/models\/add_sub\/infer -d '([^']*)'$/m.exec(readme)?.[1];
  const printed = /^\{"model_name":"add_sub".*$/m.exec(readme)?.[0];
  assert.ok(body !== undefined && printed !== undefined, "README.md has the request and its response");
  const server = await startGalatea({ repositories: [at("models")] });
  try {
    const url = `http://127.0.0.1:${server.httpPort}/v2/models/add_sub/infer`;
    const response = await fetch(url, { method: "POST", body });
    assert.equal(response.status, 200);
    assert.equal(await response.text(), printed);
  } finally {
    await server.stop();
  }
});
