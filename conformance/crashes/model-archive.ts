import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create } from "tar";

/** A LightGBM model with one leaf, which returns 2 for every row. */
const leaf =
  "tree\nversion=v4\nmax_feature_idx=1\nobjective=regression\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=2\n\nend of trees\n";

const config = `backend: "fil" max_batch_size: 8 instance_group { kind: KIND_CPU }
input { name: "input__0" data_type: TYPE_FP32 dims: 2 } output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
parameters { key: "model_type" value { string_value: "lightgbm" } }
parameters { key: "is_classifier" value { string_value: "false" } }
`;

/** Returns an archive of a Triton repository with a model that needs no Python. */
export async function modelArchive(): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), "gal-archive-"));
  try {
    for (const [path, text] of [
      ["leaf/config.pbtxt", config],
      ["leaf/1/model.txt", leaf],
    ] as const) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), text);
    }
    const file = join(directory, "model.tar.gz");
    await create({ gzip: true, cwd: directory, file }, ["leaf"]);
    return await readFile(file);
  } finally {
    await rm(directory, { recursive: true });
  }
}

export const requestBody = JSON.stringify({
  inputs: [{ name: "input__0", shape: [1, 2], datatype: "FP32", data: [1, 2] }],
});
