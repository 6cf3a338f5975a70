import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import {
  linearLearnerFiles,
  savedLinearModels,
} from "../../../packages/runtimes/src/algorithms/linear-learner/linear-models-fixture.ts";
import { zipOf } from "../../../packages/runtimes/src/formats/zip-fixture.ts";
import {
  type AlgorithmName,
  readAlgorithmModel,
} from "../../../packages/runtimes/src/algorithms-backend/algorithm-models.ts";
import { InferenceError } from "@galatea/base";
import { mutated } from "../mutations.ts";
import type { FuzzTarget } from "../target.ts";

/** Files of an archive, and a request of its model. */
interface Archive {
  readonly files: Readonly<Record<string, Buffer>>;
  readonly settings: Readonly<Record<string, string>>;
  readonly body: string;
}

interface XgboostVectors {
  readonly models: readonly { readonly files: Readonly<Record<string, string>> }[];
}

interface BundleVector {
  readonly input: readonly { readonly name: string; readonly type: string; readonly struct: string }[];
  readonly outputs: BundleVector["input"];
  readonly rows: readonly (readonly unknown[])[];
  readonly files: Readonly<Record<string, string>>;
}

function vectors(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), "utf8"));
}

const counts = [0, 1, 2, 0x7fff_ffff, -1, 0x8000_0000].map((count) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(count));
  return bytes;
});
const texts = ["[", "]", "{", "}", ",", ":", '"', "0", "-1", "1e999", "NaN", "null", "2147483648", "\\ud800"];
/** Instructions of pickles, alone and in pairs that create and call objects. */
const pickleWords = [
  ..."()]}.0NRbcehjqrstuX\x80\x81\x85\x86\x87\x88\x89\x8c\x8d\x8e\x93\x94\x95\x96".split(""),
  "cxgboost.core\nBooster\n",
  "c_codecs\nencode\n",
  "cposix\nsystem\n",
  "cbuiltins\nbytearray\n",
  "\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
  "X\xff\xff\xff\x7f",
  "r\xff\xff\xff\xff",
].map((word) => Buffer.from(word, "latin1"));

const boosters = (vectors("xgboost-models") as XgboostVectors).models.flatMap(({ files }) =>
  Object.values(files).map((text) => Buffer.from(text, "base64")),
);
const xgboostArchives = mutated(fc.constantFrom(...boosters), [...counts, ...texts, ...pickleWords]).map(
  (bytes): Archive => ({ files: { "xgboost-model": bytes }, settings: {}, body: "1,2,3,4\n,,,-1e30" }),
);

/** Changes the whole archive or a file in it. Few inputs change the archive, because its checksum rejects most of them. */
const linearArchives = fc.constantFrom(...Object.values(savedLinearModels)).chain((model) => {
  const files = linearLearnerFiles(model);
  const of = (name: keyof typeof files, words: readonly (string | Buffer)[]) =>
    mutated(fc.constant(files[name]), words).map((bytes) => zipOf({ ...files, [name]: bytes }));
  return fc
    .oneof(
      mutated(fc.constant(zipOf(files)), ["PK\x01\x02", "PK\x03\x04", "PK\x05\x06", ...counts]),
      of("mx-mod-0000.params", counts),
      of("mx-mod-symbol.json", [...texts, '"op":"FullyConnected"', '"inputs":[[0,0,0]]', '"broadcast_mul"']),
    )
    .map((bytes): Archive => ({ files: { "model_algo-1": bytes }, settings: {}, body: "1,2,3,4" }));
});

const bundleWords = [
  ...texts,
  '"type":"list"',
  '"double":[1]',
  '"size":4294967295',
  '"op":"pipeline"',
  '"base":"scalar"',
];
const bundleArchives = fc
  .constantFrom(...(vectors("mleap-bundles") as readonly BundleVector[]))
  .chain(({ files, input, outputs, rows }) => {
    const schema = { input, output: outputs.at(-1) };
    const complete = Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]));
    return fc.constantFrom(...Object.keys(complete)).chain((name) =>
      mutated(fc.constant(complete[name] as Buffer), bundleWords).map((bytes): Archive => ({
        files: { ...complete, [name]: bytes },
        settings: { SAGEMAKER_SPARKML_SCHEMA: JSON.stringify(schema) },
        body: JSON.stringify({ data: rows[0] }),
      })),
    );
  });

function archiveTarget(
  row: Pick<FuzzTarget<Archive>, "name" | "about" | "share" | "inputs">,
  algorithm: AlgorithmName,
): FuzzTarget<Archive> {
  return {
    ...row,
    open: () => {
      const directory = mkdtempSync(join(tmpdir(), "galatea-fuzz-"));
      return Promise.resolve({
        attempt: (archive) => attempt(algorithm, join(directory, "model"), archive),
        [Symbol.asyncDispose]: () => {
          rmSync(directory, { recursive: true });
          return Promise.resolve();
        },
      });
    },
  };
}

/** Reads the model and invokes it once: it responds, or rejects the request. */
function attempt(algorithm: AlgorithmName, directory: string, { files, settings, body }: Archive): boolean {
  rmSync(directory, { recursive: true, force: true });
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), bytes);
  }
  try {
    const model = readAlgorithmModel({ algorithm, directory, settings });
    const contentType = algorithm === "sparkml" ? "application/json" : "text/csv";
    const { status } = model.invoke({ bytes: Buffer.from(body), contentType, accept: "" });
    model.discard();
    assert.ok([200, 400, 415].includes(status), String(status));
    return true;
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    assert.ok(["INVALID_ARG", "UNSUPPORTED"].includes(error.code), `${error.code}: ${error.message}`);
    // One of them is the list of the permitted contents of Spark ML bundles.
    assert.ok(error.message.length > 10 && error.message.length < 1500, error.message);
    return false;
  }
}

export const xgboostFiles = archiveTarget(
  {
    name: "xgboost-files",
    about: "XGBoost's JSON, UBJSON, binary form and pickles",
    share: 0.012,
    inputs: xgboostArchives,
  },
  "xgboost",
);
export const linearLearnerArchives = archiveTarget(
  {
    name: "linear-archives",
    about: "linear learner's archives, their symbols and parameters",
    share: 0.012,
    inputs: linearArchives,
  },
  "linear_learner",
);
export const mleapBundles = archiveTarget(
  { name: "mleap-bundles", about: "pipelines of Spark ML as MLeap bundles", share: 0.004, inputs: bundleArchives },
  "sparkml",
);
