/** `galatea backup` of a running platform, and `galatea restore` of a stopped one. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { CreateModelCommand, paginateListModels } from "@aws-sdk/client-sagemaker";
import { bucket, image, Platform } from "./platform.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));

let platform: Platform;
before(async () => {
  platform = await Platform.open(undefined, { flags: ["--snapshot-days=0"] });
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

async function galatea(...args: readonly string[]) {
  const child = spawn(process.execPath, [main, ...args, "--data", platform.workspace.data]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += String(chunk)));
  child.stderr.on("data", (chunk: Buffer) => (stderr += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

const createModel = (ModelName: string) =>
  platform.sagemaker.send(
    new CreateModelCommand({
      ModelName,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: { Image: image, ModelDataUrl: `s3://${bucket}/m.tar.gz` },
    }),
  );

async function models(): Promise<readonly string[]> {
  const names: string[] = [];
  const query = { SortBy: "CreationTime", SortOrder: "Ascending" } as const;
  for await (const page of paginateListModels({ client: platform.sagemaker }, query)) {
    names.push(...(page.Models ?? []).map(({ ModelName = "" }) => ModelName));
  }
  return names;
}

test("a backup contains everything that was acknowledged before it, and a restore returns the platform to that state", async () => {
  const { data, directory } = platform.workspace;
  const file = join(directory, "backup.db");
  const created: string[] = [];
  const create = async () => {
    const name = `model-${created.length}`;
    await createModel(name);
    created.push(name);
  };
  for (let count = 0; count < 5; count += 1) await create();
  const backup = galatea("backup", file);
  const state = { isMade: false };
  void backup.then(() => (state.isMade = true));
  while (!state.isMade) await create();
  assert.deepEqual(await backup, { code: 0, stdout: `The records of '${data}' are in '${file}'\n`, stderr: "" });
  await create();

  assert.deepEqual(await galatea("restore", file), {
    code: 1,
    stdout: "",
    stderr: `galatea restore: a platform uses '${data}'; stop it first\n`,
  });
  assert.deepEqual(await models(), created);
  await platform.stop();
  const restored = await galatea("restore", file);
  assert.deepEqual([restored.code, restored.stderr], [0, ""]);
  assert.match(
    restored.stdout,
    /were replaced by those of '.*backup\.db'; the former ones are kept as galatea\.db\.replaced-1/,
  );

  await platform.startAgain();
  const found = await models();
  assert.ok(found.length >= 5 && found.length < created.length, `${found.length} of ${created.length}`);
  assert.deepEqual(found, created.slice(0, found.length));
  assert.doesNotMatch(platform.log(), /damaged|lost/);
  await createModel("after");
  assert.deepEqual(await readdir(join(data, "snapshots")), [], "--snapshot-days=0 makes none");
});

test("a backup over an existing file, and a restore of a file that is not a backup, are rejected in one line and change nothing", async () => {
  const { data, directory } = platform.workspace;
  const file = join(directory, "other");
  await writeFile(file, "text");
  const before = await models();
  assert.deepEqual(await galatea("backup", file), {
    code: 1,
    stdout: "",
    stderr: `galatea backup: '${file}' exists; choose another file\n`,
  });
  await platform.stop();
  for (const [path, reason] of [
    [file, `'${file}' is not a backup of records: Error: file is not a database`],
    [join(directory, "none"), `'${join(directory, "none")}' does not exist`],
    [
      join(data, "records", "metrics.db"),
      `'${join(data, "records", "metrics.db")}' is not a backup of records: it lists unknown migrations: metrics-1`,
    ],
  ] as const) {
    assert.deepEqual(await galatea("restore", path), { code: 1, stdout: "", stderr: `galatea restore: ${reason}\n` });
  }
  await platform.startAgain();
  assert.deepEqual(await models(), before);
});
