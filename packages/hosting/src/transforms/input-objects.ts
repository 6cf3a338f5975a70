import { readToBuffer } from "@galatea/base";
import { nullIfAbsent, type ObjectStore } from "../objects/index.ts";
import { isFolderPlaceholder, parseS3Uri } from "../definitions/index.ts";
import { outputKey, siblingKey } from "./object-names.ts";
import { transformClientError } from "./transform-error.ts";
import type { S3Location, TransformPlan } from "./transform-request.ts";
import type { TransformProgress } from "./transform-state.ts";

/** An object to transform. */
export interface InputObject {
  readonly place: S3Location;
  readonly output: S3Location;
  /** Position in the order of the input. */
  readonly ordinal: number;
  /** The key of another existing input with the same output key; null for almost all keys. */
  readonly siblingKey: string | null;
}

const listedAtOnce = 1000;
const manifestBytesMax = 16 * 2 ** 20;

/**
 * Yields the objects of a job in the order of its input, starting after the recorded progress. At most one listing page
 * is in memory.
 */
export async function* listInputObjects(
  store: Pick<ObjectStore, "list" | "get" | "head">,
  plan: TransformPlan,
  progress: Pick<TransformProgress, "after">,
): AsyncGenerator<InputObject> {
  if (plan.source.kind === "prefix") yield* listedObjects(store, plan, progress);
  else yield* manifestObjects(store, plan, progress);
}

async function* listedObjects(
  store: Pick<ObjectStore, "list" | "head">,
  { source, target }: TransformPlan,
  { after }: Pick<TransformProgress, "after">,
): AsyncGenerator<InputObject> {
  let ordinal = (after?.ordinal ?? -1) + 1;
  for (let startAfter: string | null = after?.key ?? ""; startAfter !== null;) {
    const query = { prefix: source.key, delimiter: "", startAfter, keysMax: listedAtOnce };
    const page = await store.list(source.bucket, query);
    for (const { key, byteLength } of page.objects) {
      if (isFolderPlaceholder({ key, byteLength })) continue;
      const output = { bucket: target.bucket, key: outputKey(key, source.key, target) };
      const location = { bucket: source.bucket, key };
      yield { place: location, output, ordinal, siblingKey: await findSiblingOutput(store, location, source.key) };
      ordinal += 1;
    }
    startAfter = page.nextStartAfter;
  }
}

/**
 * Resolves with the key of another input object with the same output key; null if there is none. For example, the
 * prefix `in/data` matches `in/datax` and `in/data/datax`, whose outputs have the same key.
 */
async function findSiblingOutput(
  store: Pick<ObjectStore, "head">,
  { bucket, key }: S3Location,
  prefix: string,
): Promise<string | null> {
  const fake = siblingKey(key, prefix);
  if (fake === null) return null;
  return (await nullIfAbsent(store.head(bucket, fake))) === null ? null : fake;
}

async function* manifestObjects(
  store: Pick<ObjectStore, "get">,
  { source, target }: TransformPlan,
  { after }: Pick<TransformProgress, "after">,
): AsyncGenerator<InputObject> {
  const { body } = await store.get(source.bucket, source.key);
  const tooLong = () => transformClientError(`the manifest is longer than ${manifestBytesMax} bytes`);
  const text = await readToBuffer(body, manifestBytesMax, tooLong).finally(() => body.destroy());
  const { prefix, names } = parseManifest(text.toString("utf8"));
  const listed = new Set(names);
  for (const [ordinal, name] of names.entries()) {
    if (ordinal <= (after?.ordinal ?? -1)) continue;
    const location = { bucket: prefix.bucket, key: prefix.key + name };
    const output = { bucket: target.bucket, key: outputKey(location.key, prefix.key, target) };
    const fake = siblingKey(location.key, prefix.key);
    const isListed = fake !== null && listed.has(fake.slice(prefix.key.length));
    yield { place: location, output, ordinal, siblingKey: isListed ? fake : null };
  }
}

/** Parses a manifest: `[{"prefix": "s3://bucket/folder/"}, "name", ...]`. Repeated names count once. */
export function parseManifest(text: string): { readonly prefix: S3Location; readonly names: readonly string[] } {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    throw transformClientError("the manifest is not JSON", { cause: error });
  }
  const [head, ...names] = Array.isArray(entries) ? (entries as unknown[]) : [];
  const uri = (head as { readonly prefix?: unknown } | undefined)?.prefix;
  const prefix = typeof uri === "string" ? parseS3Uri(uri) : null;
  if (prefix === null) throw transformClientError('the manifest does not begin with {"prefix": "s3://..."}');
  const isName = (name: unknown): name is string => typeof name === "string" && name !== "";
  if (!names.every(isName)) throw transformClientError("the manifest has an entry that is not the name of an object");
  return { prefix, names: [...new Set(names)] };
}
