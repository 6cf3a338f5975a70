import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment, startGalatea, type RunningServer } from "../environments/index.ts";
import { writeIdentity, type Identity } from "./identities.ts";
import { testTimeoutMs } from "../../packages/base/src/core/eventually-fixture.ts";

const program = fileURLToPath(new URL("tls_client.py", import.meta.url));
let directory: string;
let repository: string;
let python: string;

let server: Identity;
let client: Identity;
let stranger: Identity;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-tls-"));
  repository = join(directory, "repository");
  await mkdir(repository);
  ({ python } = await ensureEnvironment(cacheDirectory(process.env), "clients"));
  server = await writeIdentity(directory, "server", "localhost");
  client = await writeIdentity(directory, "client", "client.example");
  stranger = await writeIdentity(directory, "stranger", "stranger.example");
});
after(() => rm(directory, { recursive: true, force: true }));

function start(...flags: string[]): Promise<RunningServer> {
  const own = [`--grpc-server-cert=${server.certificate}`, `--grpc-server-key=${server.key}`];
  return startGalatea({ repositories: [repository], flags: [...own, ...flags] });
}

/** The result of tritonclient: "live", or a status. */
async function asks({ grpcPort }: RunningServer, roots: Identity, as: Identity | null): Promise<string> {
  const identity = as === null ? [] : [as.key, as.certificate];
  const args = [program, String(grpcPort), roots.certificate, ...identity];
  const { stdout } = await promisify(execFile)(python, args, { timeout: testTimeoutMs });
  return stdout.trim();
}

test("with --grpc-use-ssl a client that trusts the certificate is served, and one that does not breaks off", async () => {
  const running = await start("--grpc-use-ssl=true");
  try {
    assert.equal(await asks(running, server, null), "live");
    assert.equal(await asks(running, stranger, null), "StatusCode.UNAVAILABLE");
  } finally {
    await running.stop();
  }
});

test("with --grpc-use-ssl-mutual only clients whose certificate the given root has signed are served", async () => {
  const running = await start("--grpc-use-ssl-mutual=true", `--grpc-root-cert=${client.certificate}`);
  try {
    assert.equal(await asks(running, server, client), "live");
    assert.equal(await asks(running, server, null), "StatusCode.UNAVAILABLE");
    assert.equal(await asks(running, server, stranger), "StatusCode.UNAVAILABLE");
  } finally {
    await running.stop();
  }
});
