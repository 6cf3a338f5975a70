import { randomUUID } from "node:crypto";
import { access, constants, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { asDiskError, DiskError, makeDirectory } from "@galatea/base";
import type { GraphTensor, OnnxType } from "@galatea/server/onnx-file";
import { ConversionError } from "./conversion-error.ts";

/** A model's directory in a model repository. */
export interface ModelDirectory {
  readonly repository: string;
  readonly name: string;
}

interface WrittenTensors {
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
}

const nameForm = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$/;

/**
 * Creates `<repository>/<name>` with `1/model.onnx`, which the callback `write` writes, and a config.pbtxt for the
 * written tensors. The model is created completely or not at all. Throws ConversionError if the name exists, and
 * DiskError for a failed write.
 */
export async function addToRepository<Written extends WrittenTensors>(
  { name, ...location }: ModelDirectory,
  batchMax: number,
  write: (target: string) => Promise<Written>,
): Promise<Written> {
  if (!nameForm.test(name)) throw new ConversionError(`'${name}' is not a valid name for a model`);
  const repository = resolve(location.repository);
  const target = join(repository, name);
  await makeDirectory(repository);
  if ((await stat(target).catch(() => null)) !== null)
    throw new ConversionError(`'${target}' is there already; remove it, or take another --name`);
  const making = join(await workDirectory(repository), `.${name}.${randomUUID()}`);
  try {
    await mkdir(join(making, "1"), { recursive: true });
    const written = await write(join(making, "1", "model.onnx"));
    await writeFile(join(making, "config.pbtxt"), configText(name, batchMax, written));
    await rename(making, target);
    return written;
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    if (["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw new ConversionError(`'${target}' was created meanwhile; remove it, or take another --name`);
    // The error then names the path that the caller requested instead of a temporary path.
    throw asDiskError(error instanceof DiskError ? error.cause : error, `'${target}'`);
  }
}

/**
 * Returns the directory for temporary files. This is the repository's parent if it is writable and on the same disk,
 * because servers search no models there. Otherwise, it is the repository itself.
 */
async function workDirectory(repository: string): Promise<string> {
  const parent = dirname(repository);
  const [own, above] = await Promise.all([stat(repository), stat(parent)]);
  const writable = await access(parent, constants.W_OK).then(
    () => true,
    () => false,
  );
  return basename(repository) !== "" && writable && own.dev === above.dev ? parent : repository;
}

const configTypes: Partial<Readonly<Record<OnnxType, string>>> = {
  INT64: "TYPE_INT64",
  INT32: "TYPE_INT32",
  FLOAT: "TYPE_FP32",
};

/** Returns the text of a config.pbtxt. The first dimension of every tensor is the batch. */
function configText(name: string, batchMax: number, { inputs, outputs }: WrittenTensors): string {
  const tensor = ({ name: own, type, dims }: GraphTensor) =>
    [
      "  {",
      `    name: "${own}"`,
      `    data_type: ${configTypes[type]}`,
      `    dims: [ ${dims
        .slice(1)
        .map((dim) => (typeof dim === "number" ? dim : -1))
        .join(", ")} ]`,
      "  }",
    ].join("\n");
  const list = (field: string, tensors: readonly GraphTensor[]) =>
    `${field} [\n${tensors.map(tensor).join(",\n")}\n]\n`;
  return [
    `name: "${name}"\n`,
    `backend: "onnxruntime"\n`,
    `max_batch_size: ${batchMax}\n`,
    list("input", inputs),
    list("output", outputs),
  ].join("");
}
