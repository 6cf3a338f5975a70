import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as fc from "fast-check";
import { ensureFramework } from "../../environments/index.ts";
import { infer, load, unload } from "../../faults/http-client.ts";
import type { Serving, Workspace } from "../../faults/serving.ts";
import { mutated } from "../mutations.ts";
import { attackServer } from "../served.ts";
import type { FuzzTarget } from "../target.ts";

const fileOf = (name: string) => readFileSync(new URL(`../pipelines/${name}.dali`, import.meta.url));
const words = [
  ..."ExternalSource Copy Cast Reshape PythonFunction DumpImage readers__File decoders__Image value device cpu gpu mixed".split(
    " ",
  ),
  ..."dtype ndim sequence_length num_threads shape".split(" "),
  ...["\x08", "\x12\x00", "\x2a", "\x3a", "\x40\x9d\xf4\xf9\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\x07"].map(
    (bytes) => Buffer.from(bytes, "latin1"),
  ),
];

const tensors =
  'input { name: "value" data_type: TYPE_FP32 dims: -1 } output { name: "out" data_type: TYPE_FP32 dims: -1 }';
const config = (decoupled: boolean) => ({
  backend: "dali",
  max_batch_size: 4,
  output: [{ name: "out", data_type: "TYPE_FP32", dims: [-1] }],
  model_transaction_policy: { decoupled },
});
const requested = JSON.stringify({ inputs: [{ name: "value", datatype: "FP32", shape: [1, 2], data: [1, 2] }] });
const statuses: ReadonlySet<number> = new Set([200, 400, 500, 501, 503]);

/** Another DALI model is loaded first, so that its interpreter is running before the first attack. */
async function writeNeighbour({ repository }: Workspace): Promise<void> {
  await ensureFramework("dali");
  await mkdir(join(repository, "doubled", "1"), { recursive: true });
  await writeFile(join(repository, "doubled", "1", "model.dali"), fileOf("double"));
  await writeFile(join(repository, "doubled", "config.pbtxt"), `backend: "dali" max_batch_size: 4 ${tensors}`);
}

/** Serialized pipelines that DALI builds and runs in their own worker: the server and other DALI models continue. */
export const daliFile: FuzzTarget<{ readonly bytes: Buffer; readonly decoupled: boolean }> = {
  name: "dali-file",
  about: "serialized pipelines of DALI, loaded and run by a server",
  share: 0.001,
  inputs: fc.record({
    bytes: mutated(fc.constantFrom(fileOf("decode"), fileOf("double"), fileOf("video")), words),
    decoupled: fc.boolean(),
  }),
  open: () => attackServer(attempt, { flags: ["--load-model=doubled"], write: writeNeighbour }),
};

async function attempt(
  { bytes, decoupled }: { readonly bytes: Buffer; readonly decoupled: boolean },
  { server }: Serving,
): Promise<boolean> {
  const { httpPort } = server;
  const parameters = { config: JSON.stringify(config(decoupled)), "file:1/model.dali": bytes.toString("base64") };
  const loaded = await load(httpPort, "fuzzed", { parameters });
  assert.ok(loaded.status === 200 || loaded.status === 400, `load: ${loaded.status} ${loaded.body.toString()}`);
  const isLoaded = loaded.status === 200;
  if (isLoaded) {
    const response = await infer(httpPort, "fuzzed", requested);
    assert.ok(statuses.has(response.status), `infer: ${response.status} ${response.body.toString()}`);
    assert.equal((await unload(httpPort, "fuzzed")).status, 200);
  }
  const doubled = await infer(httpPort, "doubled", requested);
  assert.match(doubled.body.toString(), /"data":\[2\.0,4\.0\]/);
  return isLoaded;
}
