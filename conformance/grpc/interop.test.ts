import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { serverTls, writeIdentity } from "./identities.ts";
import { interopCases } from "./interop-cases.ts";
import { openInteropService } from "./interop-service.ts";
import { testTimeoutMs } from "../../packages/base/src/core/eventually-fixture.ts";

const program = fileURLToPath(new URL("interop_client.py", import.meta.url));
/** The cases of grpcio that the Go client does not have. */
const ownCases = ["client_compressed_unary"];
let directory: string;
let python: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-interop-"));
  ({ python } = await ensureEnvironment(cacheDirectory(process.env), "clients"));
});
after(() => rm(directory, { recursive: true, force: true }));

async function askCases(...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(python, [program, ...args], { timeout: testTimeoutMs });
  return JSON.parse(stdout);
}

const allPassed = Object.fromEntries([...interopCases, ...ownCases].map((name) => [name, "passed"]));

test("grpcio passes gRPC's interop cases", async () => {
  const listener = await openInteropService(null);
  try {
    assert.deepEqual(await askCases(String(listener.port)), allPassed);
  } finally {
    await listener.close(AbortSignal.abort());
  }
});

test("grpcio passes them over TLS", async () => {
  const server = await writeIdentity(directory, "server", "localhost");
  const listener = await openInteropService(serverTls(server));
  try {
    assert.deepEqual(await askCases(String(listener.port), server.certificate), allPassed);
  } finally {
    await listener.close(AbortSignal.abort());
  }
});
