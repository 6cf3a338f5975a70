import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../../conformance/environments/index.ts";
import { countsBetween } from "./hosting.ts";
import { howToCall } from "./tables.ts";

const run = promisify(execFile);
const sentence = `It's "quoted" — ça va? $HOME \\ 日本`;

/** Returns the printed commands, which are the indented paragraphs. */
const commandsOf = (text: string) => text.split("\n\n").filter((each) => each.startsWith("  "));

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  return body;
}

test("the printed commands run as pasted and invoke the endpoint with the sentence", async () => {
  const requested: { url: string | undefined; target: unknown; body: unknown }[] = [];
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const target = request.headers["x-amzn-sagemaker-target-model"];
      requested.push({ url: request.url, target, body: JSON.parse(body) });
      response.setHeader("content-type", "application/json").end(`{"answer":"fine"}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const directory = await mkdtemp(join(tmpdir(), "gal-story-"));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const location = { url, root: "/some where/galatea", data: "/data" };
    const commands = commandsOf(
      howToCall(location, { endpoint: "sentence-embeddings", archive: "tenant-07.tar.gz", sentence }),
    );
    assert.equal(commands.length, 3);
    const [env = "", curl = "", program = ""] = commands;
    const { port } = new URL(url);
    assert.equal(env.trim(), `eval "$(cd '/some where/galatea' && npx galatea env --port=${port} --data='/data')"`);
    const variables = {
      AWS_ENDPOINT_URL: url,
      AWS_DEFAULT_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "key",
      AWS_SECRET_ACCESS_KEY: "secret",
    };
    const install = "python3 -m venv .venv && .venv/bin/pip install --quiet boto3 && ";
    assert.ok(program.trim().startsWith(install));
    // The test replaces this environment by that of the suites, which has boto3.
    const { python } = await ensureEnvironment(cacheDirectory(process.env), "clients");
    await mkdir(join(directory, ".venv/bin"), { recursive: true });
    await writeFile(join(directory, ".venv/bin/python"), `#!/bin/sh\nexec '${python}' "$@"\n`, { mode: 0o755 });
    for (const command of [curl, program.replace(install, "")]) {
      const { stdout } = await run("sh", ["-c", command], { cwd: directory, env: { ...process.env, ...variables } });
      assert.match(stdout, /"answer":"fine"/);
    }
    const expected = {
      url: "/endpoints/sentence-embeddings/invocations",
      target: "tenant-07.tar.gz",
      body: { inputs: [{ name: "TEXT", shape: [1, 1], datatype: "BYTES", data: [sentence] }] },
    };
    assert.deepEqual(requested, [expected, expected]);
  } finally {
    server.close();
    await rm(directory, { recursive: true });
  }
});

test("counts of an earlier story are subtracted", () => {
  const counts = countsBetween({ loads: 30, unloads: 8 }, { loads: 60, unloads: 16 });
  assert.deepEqual(counts, { loads: 30, unloads: 8 });
});
