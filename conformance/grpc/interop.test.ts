import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createCertificate } from "../../server/src/aws/client-environment/certificate.ts";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { interopCases } from "./interop-cases.ts";
import { openInteropService } from "./interop-service.ts";

const program = fileURLToPath(new URL("interop_client.py", import.meta.url));
/** The cases that grpcio asks and the Go client does not know. */
const ownCases = ["client_compressed_unary"];
let directory: string;
let python: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-interop-"));
  ({ python } = await ensureEnvironment(cacheDirectory(process.env), "clients"));
});
after(() => rm(directory, { recursive: true, force: true }));

async function askCases(...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(python, [program, ...args], { timeout: 120_000 });
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
  const now = Date.now();
  const { certificatePem, keyPem } = createCertificate({
    names: ["localhost"],
    notBefore: new Date(now - 86_400_000),
    notAfter: new Date(now + 86_400_000),
  });
  const roots = join(directory, "roots.pem");
  await writeFile(roots, certificatePem);
  const listener = await openInteropService({
    certificate: Buffer.from(certificatePem),
    key: Buffer.from(keyPem),
    clientRoots: null,
  });
  try {
    assert.deepEqual(await askCases(String(listener.port), roots), allPassed);
  } finally {
    await listener.close(AbortSignal.abort());
  }
});
