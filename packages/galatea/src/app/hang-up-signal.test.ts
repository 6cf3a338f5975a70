import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { ListBucketsCommand, S3Client } from "@aws-sdk/client-s3";
import { GetSessionTokenCommand, STSClient } from "@aws-sdk/client-sts";
import { createCertificate } from "@galatea/base/certificates";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { readProcessStart } from "@galatea/base/processes";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-hang-up-"));
});
after(() => rm(root, { recursive: true, force: true }));

interface Started extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Resolves with the next match in the output. The search continues after the previous match. */
  seen(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Starts a process in a session of its own without a terminal, as a service manager does. */
function started(command: string, args: readonly string[]): Started {
  const env = { ...process.env, HOME: root, TMPDIR: root };
  const child = spawn(command, args, { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += String(chunk)));
  return {
    child,
    async seen(pattern) {
      await eventually(() => pattern.test(text) || child.exitCode !== null || child.signalCode !== null);
      const found = pattern.exec(text);
      assert.ok(found !== null, `${child.signalCode ?? child.exitCode}: ${text}`);
      text = text.slice(found.index + found[0].length);
      return found;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}

/** Copies scripts/start.js to an otherwise empty checkout, and returns its path. */
async function startScript(): Promise<string> {
  const checkout = join(root, "checkout");
  await mkdir(join(checkout, "scripts"), { recursive: true });
  await mkdir(join(checkout, "node_modules"), { recursive: true });
  const scripts = fileURLToPath(new URL("../../../../scripts/", import.meta.url));
  for (const name of ["start.js", "running-programs.js"])
    await cp(join(scripts, name), join(checkout, "scripts", name));
  await writeFile(join(checkout, "package.json"), `{"type":"module"}`);
  for (const path of ["package-lock.json", "node_modules/.package-lock.json"])
    await writeFile(join(checkout, path), `{"packages":{}}`);
  return join(checkout, "scripts/start.js");
}

const secretOf = (id: string) => `the-secret-of-${id}`;

async function writeKeys(path: string, ids: readonly string[]): Promise<void> {
  const profiles = ids.map((id) => `[${id}]\naws_access_key_id = ${id}\naws_secret_access_key = ${secretOf(id)}\n`);
  await writeFile(path, profiles.join(""));
}

test("on SIGHUP, also through scripts/start.js, a platform accepts the keys that its file contains now, and no others", async () => {
  const keys = join(root, "keys");
  for (const launcher of [[], [await startScript()]]) {
    await writeKeys(keys, ["KEPT", "REMOVED"]);
    const args = ["up", "--port=0", `--data=${join(root, `data-${launcher.length}`)}`, `--credentials=${keys}`];
    await using platform = started(process.execPath, [...launcher, main, ...args]);
    const [, endpoint = ""] = await platform.seen(/at (http:\S+)/);
    const at = (accessKeyId: string, secretAccessKey = secretOf(accessKeyId), sessionToken?: string) => ({
      endpoint,
      region: "us-east-1",
      maxAttempts: 1,
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
    });
    const createResponse = (client: ReturnType<typeof at>) =>
      new S3Client(client).send(new ListBucketsCommand({})).then(
        () => "answered",
        (error: Error) => error.name,
      );
    const { Credentials: lent } = await new STSClient(at("REMOVED")).send(new GetSessionTokenCommand({}));
    const session = at(lent!.AccessKeyId!, lent!.SecretAccessKey, lent!.SessionToken);
    const { Credentials: lentAgain } = await new STSClient(session).send(new GetSessionTokenCommand({}));
    const chained = at(lentAgain!.AccessKeyId!, lentAgain!.SecretAccessKey, lentAgain!.SessionToken);
    const responses = async () => [
      await createResponse(at("KEPT")),
      await createResponse(at("REMOVED")),
      await createResponse(session),
      await createResponse(chained),
      await createResponse(at("ADDED")),
    ];
    const refused = "InvalidAccessKeyId";
    assert.deepEqual(await responses(), ["answered", "answered", "answered", "answered", refused]);
    await writeKeys(keys, ["KEPT", "ADDED"]);
    platform.child.kill("SIGHUP");
    await platform.seen(/SIGHUP: keys reloaded; all other keys are rejected from now on path=\S+ keys=2/);
    assert.deepEqual(await responses(), ["answered", refused, refused, refused, "answered"]);
    await writeFile(keys, "[default]\n");
    platform.child.kill("SIGHUP");
    await platform.seen(/SIGHUP: keys not reloaded: \S+ has no aws_access_key_id/);
    assert.deepEqual(await responses(), ["answered", refused, refused, refused, "answered"]);
  }
});

function certificate(): { certificatePem: string; keyPem: string } {
  const hourMs = 3_600_000;
  const span = { notBefore: new Date(Date.now() - hourMs), notAfter: new Date(Date.now() + hourMs) };
  return createCertificate({ names: ["localhost"], ...span });
}

async function shownCertificate(port: number): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  await once(socket, "secureConnect");
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test("on SIGHUP, a server presents its current certificate files to new connections and reopens its log file", async () => {
  const [cert, key, log] = ["cert.pem", "key.pem", "server.log"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  const write = async ({ certificatePem, keyPem }: ReturnType<typeof certificate>) => {
    await writeFile(cert, certificatePem);
    await writeFile(key, keyPem);
  };
  await write(certificate());
  await mkdir(join(root, "models"));
  await using server = started(process.execPath, [
    main,
    "serve",
    `--model-repository=${join(root, "models")}`,
    "--allow-http=false",
    "--allow-metrics=false",
    "--grpc-address=127.0.0.1",
    "--grpc-port=0",
    "--grpc-use-ssl=true",
    `--grpc-server-cert=${cert}`,
    `--grpc-server-key=${key}`,
    `--log-file=${log}`,
    `--data=${join(root, "serve")}`,
  ]);
  const logged = async (pattern: RegExp) => {
    let found: RegExpExecArray | null = null;
    await eventually(async () => (found = pattern.exec(await readFile(log, "utf8").catch(() => ""))) !== null);
    return found!;
  };
  const port = Number((await logged(/Started GRPCInferenceService at 127\.0\.0\.1:(\d+)/))[1]);
  const first = await shownCertificate(port);
  await rename(log, `${log}.1`);
  await write(certificate());
  server.child.kill("SIGHUP");
  await logged(/SIGHUP: certificates reloaded/);
  const second = await shownCertificate(port);
  assert.notEqual(second, first);
  await writeFile(key, "no key");
  server.child.kill("SIGHUP");
  await logged(/SIGHUP: certificates not reloaded: /);
  assert.equal(await shownCertificate(port), second);
});

/**
 * A Python program that runs a command in a terminal of its own, and closes the terminal once the command has printed
 * "is up".
 */
const inTerminal = `import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
text = b""
while b"is up at" not in text:
    text += os.read(terminal, 4096)
sys.stdout.write(text.decode()); sys.stdout.flush()
os.close(terminal)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
`;

test("a platform stops when its terminal closes, and keeps running if nohup started it", async () => {
  const up = (data: string) => [process.execPath, main, "up", "--port=0", `--data=${join(root, data)}`];
  await using ending = started("python3", ["-c", inTerminal, ...up("ending")]);
  const [code] = (await once(ending.child, "close")) as [number];
  assert.equal(code, 0);
  const log = join(root, "nohup.log");
  const script = `nohup "$@" > ${log} 2>&1 & echo pid $!; until grep "is up at" ${log}; do sleep 0.1; done; wait`;
  await using staying = started("python3", ["-c", inTerminal, "sh", "-c", script, "sh", ...up("staying")]);
  const [, pid] = await staying.seen(/pid (\d+)/);
  const [, url = ""] = await staying.seen(/at (http:\S+)/);
  try {
    await eventually(async () => (await readFile(log, "utf8")).includes("SIGHUP: keys reloaded"));
    assert.ok((await fetch(`${url}/health`)).status > 0);
  } finally {
    process.kill(Number(pid), "SIGTERM");
    await eventually(() => readProcessStart(Number(pid)) === null);
  }
});
