import { createWriteStream } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { makeSharedDirectory, sharedFileMode } from "@galatea/base";
import { ArchiveError, type ArchiveUnpacker, type ObjectStore } from "../objects/index.ts";
import { isFolderPlaceholder, parseS3Uri, type ContainerDefinition } from "../definitions/index.ts";
import { ModelDataError } from "../instances/index.ts";

/** Reasons that mean the archive itself is invalid. Errors with other reasons are reported as failed downloads. */
const notArchives: ReadonlySet<ArchiveError["reason"]> = new Set(["damaged", "unsafe", "clash", "limit"]);

/**
 * Downloads a model's data from its ModelDataUrl or ModelDataSource to `directory`, which must not exist. On failure, rejects with ModelDataError
 * and removes the directory.
 */
export async function downloadModelData(
  container: ContainerDefinition,
  directory: string,
  options: {
    readonly store: ObjectStore;
    readonly unpacker: ArchiveUnpacker;
    readonly containerName: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const source = container.ModelDataSource?.S3DataSource;
  const uri = source?.S3Uri ?? container.ModelDataUrl;
  if (uri === undefined) {
    await makeSharedDirectory(directory);
    return;
  }
  try {
    const location = parseS3Uri(uri);
    if (location === null) throw new Error("it is not an S3 location such as s3://bucket/model.tar.gz");
    if (source === undefined || source.CompressionType === "Gzip") {
      const { body } = await options.store.get(location.bucket, location.key);
      await options.unpacker.unpack(body, directory, { signal: options.signal });
    } else if (source.S3DataType === "S3Object") {
      await downloadObject(location, join(directory, location.key.slice(location.key.lastIndexOf("/") + 1)), options);
    } else {
      await downloadPrefix(location, directory, options);
    }
  } catch (error) {
    if (options.signal.aborted) throw options.signal.reason;
    await rm(directory, { recursive: true, force: true });
    const why = error instanceof Error ? error.message : String(error);
    if (error instanceof ArchiveError && notArchives.has(error.reason)) {
      throw new ModelDataError(
        `Failed to extract model data archive for container "${options.containerName}" from URL "${uri}". Please ensure that the object located ` +
          `at the URL is a valid tar.gz archive. (${why})`,
        { cause: error },
      );
    }
    throw new ModelDataError(
      `Failed to download model data for container "${options.containerName}" from URL: "${uri}". Please ensure that ` +
        "there is an object located at the URL and that the role passed to CreateModel has permissions to download the " +
        `object. (${why})`,
      { cause: error },
    );
  }
}

async function downloadPrefix(
  location: { readonly bucket: string; readonly key: string },
  directory: string,
  options: { readonly store: ObjectStore; readonly signal: AbortSignal },
): Promise<void> {
  let startAfter = "";
  for (let objectCount = 0; ;) {
    const page = await options.store.list(location.bucket, {
      prefix: location.key,
      delimiter: "",
      startAfter,
      keysMax: 1000,
    });
    for (const { key, byteLength } of page.objects) {
      if (isFolderPlaceholder({ key, byteLength })) continue;
      const relative = key.slice(location.key.length).replace(/^\//, "");
      if (!isSafeRelative(relative)) throw new Error(`the key ${key} does not name a file below the prefix`);
      await downloadObject({ bucket: location.bucket, key }, join(directory, relative), options);
      objectCount += 1;
    }
    if (page.nextStartAfter === null) {
      if (objectCount === 0) throw new Error("there is no object under the prefix");
      return;
    }
    startAfter = page.nextStartAfter;
  }
}

async function downloadObject(
  location: { readonly bucket: string; readonly key: string },
  path: string,
  options: { readonly store: ObjectStore; readonly signal: AbortSignal },
): Promise<void> {
  await makeSharedDirectory(dirname(path));
  const { body } = await options.store.get(location.bucket, location.key);
  await pipeline(body, createWriteStream(path, { flags: "wx" }), { signal: options.signal });
  await chmod(path, sharedFileMode);
}

function isSafeRelative(path: string): boolean {
  return path
    .split("/")
    .every(
      (segment) =>
        segment !== "" &&
        segment !== "." &&
        segment !== ".." &&
        !segment.includes("\0") &&
        Buffer.byteLength(segment) <= 255,
    );
}
