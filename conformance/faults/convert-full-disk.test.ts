/** `galatea convert` on a disk that becomes full, and under a file size limit: it prints an error and leaves no files. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readGolden, writeCheckpoint } from "../../packages/tools/src/conversion/golden-fixture.ts";
import { mayMount } from "./mount.ts";

const program = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
let directory: string;
let source: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-convert-disk-"));
  source = join(directory, "source");
  await writeCheckpoint(source, await readGolden("bert"));
});
after(() => rm(directory, { recursive: true }));

/** Exit code and output of the program, whose process has a file size limit in KiB. */
function convert(args: readonly string[], fileKibibytesMax: number | null = null) {
  const words = [process.execPath, program, "convert", source, ...args];
  // Bash, because its `ulimit -f` counts KiB. Other shells may count blocks of 512 bytes.
  const limited = ["bash", "-c", `ulimit -f ${fileKibibytesMax ?? "unlimited"} && exec "$@"`, "bash", ...words];
  const { status, stdout, stderr } = spawnSync(limited[0] as string, limited.slice(1), { encoding: "utf8" });
  return { status, stdout, stderr };
}

/** Both options for the target of the model. */
const ways = (location: string) => [
  { args: [join(location, "model.onnx")], made: join(location, "model.onnx") },
  { args: ["--repository", join(location, "models"), "--name=encoder"], made: join(location, "models", "encoder") },
];

test("when a file size limit is reached, nothing is left behind, at any limit", async () => {
  const location = join(directory, "limited");
  await mkdir(location);
  const [complete] = ways(location);
  assert.equal(convert(complete?.args ?? []).status, 0);
  const { size } = await stat(complete?.made ?? "");
  await rm(complete?.made ?? "");
  const kibibytes = Math.floor((size - 1) / 1024);
  for (const limit of [0, 1, kibibytes >> 1, kibibytes]) {
    for (const { args, made } of ways(location)) {
      const { status, stdout, stderr } = convert(args, limit);
      assert.deepEqual([status, stdout], [1, ""], stderr);
      assert.equal(stderr, `galatea convert: '${made}' would be larger than a file may be\n`);
      assert.deepEqual(
        (await readdir(location, { recursive: true })).filter((name) => name !== "models"),
        [],
      );
    }
  }
});

if (mayMount()) {
  test("on a full disk nothing is left behind and the earlier model is kept; with free space the model is written", async () => {
    const location = join(directory, "small");
    await mkdir(location);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=192k", "tmpfs", location], { stdio: "pipe" });
    try {
      const filler = join(location, "filler");
      await writeFile(join(location, "model.onnx"), "another model");
      for (const freeKibibytes of [4, 16]) {
        await writeFile(filler, Buffer.alloc((188 - freeKibibytes) * 1024));
        for (const { args, made } of ways(location)) {
          const { status, stdout, stderr } = convert(args);
          assert.deepEqual([status, stdout], [1, ""], stderr);
          assert.equal(stderr, `galatea convert: the disk that holds '${made}' is full\n`);
          assert.deepEqual(
            (await readdir(location, { recursive: true })).filter((name) => name !== "models").toSorted(),
            ["filler", "model.onnx"],
          );
          assert.equal((await stat(join(location, "model.onnx"))).size, "another model".length);
        }
      }
      await rm(filler);
      const [{ args, made }] = ways(location) as [ReturnType<typeof ways>[number]];
      assert.equal(convert(args).status, 0);
      assert.ok((await stat(made)).size > 16 * 1024);
    } finally {
      execFileSync("umount", [location]);
    }
  });
}
