import { readWhole } from "../../base/index.ts";
import type { ObjectStore } from "../../blobs/index.ts";
import { parseS3Uri } from "../definitions/index.ts";
import { outputKey } from "./object-names.ts";
import { clientError } from "./transform-error.ts";
import type { S3Place, TransformPlan } from "./transform-request.ts";
import type { TransformProgress } from "./transform-state.ts";

/** An object that is to be transformed. */
export interface InputObject {
  readonly place: S3Place;
  readonly output: S3Place;
  /** Its place in the order of the input. */
  readonly ordinal: number;
}

const listedAtOnce = 1000;
const manifestBytesMax = 16 * 2 ** 20;

/** The objects of a job in the order of its input, those after where it has come to; never more than a page of them in memory. */
export async function* inputObjects(
  store: Pick<ObjectStore, "list" | "get">,
  plan: TransformPlan,
  progress: Pick<TransformProgress, "after">,
): AsyncGenerator<InputObject> {
  if (plan.source.kind === "prefix") yield* listedObjects(store, plan, progress);
  else yield* manifestObjects(store, plan, progress);
}

async function* listedObjects(
  store: Pick<ObjectStore, "list">,
  { source, target }: TransformPlan,
  { after }: Pick<TransformProgress, "after">,
): AsyncGenerator<InputObject> {
  let ordinal = (after?.ordinal ?? -1) + 1;
  for (let startAfter: string | null = after?.key ?? ""; startAfter !== null;) {
    const query = { prefix: source.key, delimiter: "", startAfter, keysMax: listedAtOnce };
    const page = await store.list(source.bucket, query);
    for (const { key, byteLength } of page.objects) {
      // What consoles make of folders.
      if (key.endsWith("/") && byteLength === 0) continue;
      const output = { bucket: target.bucket, key: outputKey(key, source.key, target) };
      yield { place: { bucket: source.bucket, key }, output, ordinal };
      ordinal += 1;
    }
    startAfter = page.nextStartAfter;
  }
}

async function* manifestObjects(
  store: Pick<ObjectStore, "get">,
  { source, target }: TransformPlan,
  { after }: Pick<TransformProgress, "after">,
): AsyncGenerator<InputObject> {
  const { body } = await store.get(source.bucket, source.key);
  const tooLong = () => clientError(`the manifest is longer than ${manifestBytesMax} bytes`);
  const text = await readWhole(body, manifestBytesMax, tooLong).finally(() => body.destroy());
  const { prefix, names } = readManifest(text.toString("utf8"));
  for (const [ordinal, name] of names.entries()) {
    if (ordinal <= (after?.ordinal ?? -1)) continue;
    const place = { bucket: prefix.bucket, key: prefix.key + name };
    yield { place, output: { bucket: target.bucket, key: outputKey(place.key, prefix.key, target) }, ordinal };
  }
}

/** `[{"prefix": "s3://bucket/folder/"}, "name", ...]`; a name that stands there twice counts once. */
export function readManifest(text: string): { readonly prefix: S3Place; readonly names: readonly string[] } {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    throw clientError("the manifest is no JSON", { cause: error });
  }
  const [head, ...names] = Array.isArray(entries) ? (entries as unknown[]) : [];
  const uri = (head as { readonly prefix?: unknown } | undefined)?.prefix;
  const prefix = typeof uri === "string" ? parseS3Uri(uri) : null;
  if (prefix === null) throw clientError('the manifest does not begin with {"prefix": "s3://..."}');
  const isName = (name: unknown): name is string => typeof name === "string" && name !== "";
  if (!names.every(isName)) throw clientError("the manifest has an entry that is no name of an object");
  return { prefix, names: [...new Set(names)] };
}
