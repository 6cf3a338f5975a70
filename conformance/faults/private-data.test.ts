/** Other users of the machine can read nothing in a platform's data directory. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { hostileArchive } from "./hostile-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix } from "./platform.ts";
import type { Workspace } from "./serving.ts";

const isRoot = process.getuid?.() === 0;
const othersBits = 0o077;
const nobody = 65_534;
const secret = "the-neighbour's-secret";
const ownDirectories = ["objects", "records", "logs", "instances", "clients", "cache"];
const archive = hostileArchive(Buffer.alloc(100_000, 7));

/** Other users may traverse the path to the data directory, so that only the directory's own modes protect it. */
const openWay = ({ directory }: Workspace) => Promise.resolve(chmodSync(directory, 0o755));

/** Returns what a process of another user of this machine can list or read in the data directory; only root can start one. */
function readByOthers(data: string): readonly string[] {
  if (!isRoot) return [];
  const program =
    'while read -r path; do if [ -d "$path" ]; then ls "$path"; else head -c 1 "$path"; fi </dev/null >/dev/null 2>&1 && echo "$path"; done; true';
  // The other entries are links to environments that all suites share.
  const real = readdirSync(data).filter((name) => !lstatSync(join(data, name)).isSymbolicLink());
  const paths = real.flatMap((name) => [join(data, name), ...pathsBelow(join(data, name))]);
  const { status, stdout, stderr, error } = spawnSync("/bin/sh", ["-c", program], {
    input: [data, ...paths].map((path) => `${path}\n`).join(""),
    uid: nobody,
    gid: nobody,
    cwd: "/",
    encoding: "utf8",
  });
  assert.equal(status, 0, `${stderr}${String(error)}`);
  return stdout.split("\n").filter((path) => path !== "");
}

/** Returns the paths of the data directory and of its own directories and files whose modes permit access to others. */
function openPaths(data: string): readonly string[] {
  const paths = ["", ...ownDirectories, ...["records", "clients"].flatMap((name) => filesOf(data, name))];
  return paths.filter((path) => (statSync(join(data, path)).mode & othersBits) !== 0);
}
const pathsBelow = (path: string) =>
  lstatSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name))
    : [];
const filesOf = (data: string, name: string) => readdirSync(join(data, name)).map((file) => join(name, file));

async function openEndpoint(platform: Platform): Promise<void> {
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}one.tar.gz`, Body: archive }));
  await createEndpoint(platform, { name: "private", environment: { PASSWORD: secret } });
  await endpointIs(platform, "private", "InService");
  assert.match(await invoke(platform, "private", "one.tar.gz", faultyRequest("pid")), /\d/);
}

test("another user of the machine cannot read a data directory that the platform created", async () => {
  await using platform = await Platform.open(openWay);
  const { data } = platform.workspace;
  await openEndpoint(platform);
  assert.deepEqual(openPaths(data), []);
  assert.deepEqual(readByOthers(data), []);
});

test("a start restricts permissions that an earlier release left open, and leaves other files unchanged", async () => {
  await using platform = await Platform.open(openWay);
  const { data } = platform.workspace;
  await openEndpoint(platform);
  await platform.stop();
  for (const path of ["", ...ownDirectories]) chmodSync(join(data, path), 0o755);
  for (const path of filesOf(data, "records")) chmodSync(join(data, path), 0o644);
  if (isRoot) assert.ok(readByOthers(data).includes(join(data, "records", "galatea.db")));
  await platform.startAgain();
  assert.deepEqual(openPaths(data), []);
  assert.deepEqual(readByOthers(data), []);
  await endpointIs(platform, "private", "InService");
  assert.match(await invoke(platform, "private", "one.tar.gz", faultyRequest("pid")), /\d/);
});

test("a root directory with other files is left unchanged, and the log says so", async () => {
  await using platform = await Platform.open(async (workspace) => {
    await openWay(workspace);
    mkdirSync(join(workspace.data, "records"));
    writeFileSync(join(workspace.data, "notes.txt"), "everybody's");
    chmodSync(workspace.data, 0o755);
  });
  const { data } = platform.workspace;
  assert.equal(lstatSync(data).mode & 0o777, 0o755);
  assert.deepEqual(
    openPaths(data).filter((path) => path !== ""),
    [],
  );
  if (isRoot) assert.deepEqual(readByOthers(data).toSorted(), [data, join(data, "notes.txt")]);
  assert.match(
    platform.log(),
    /other users of this machine can enter .* it holds 'notes\.txt', which is not Galatea's/,
  );
});
