import { InferenceError, type LoopTurns } from "../../base/index.ts";
import type { Engine, IndexEntry, LoadOverride } from "../../engine/index.ts";
import { JsonScanner, unescapeJsonString } from "../../tensor/index.ts";
import { readWholeBody, reply, replyJson, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import {
  booleanAt,
  eachMember,
  parsingRequestJson,
  stringAt,
  walkedDocument,
  wholeTextBytesMax,
} from "../infer-codec/index.ts";

export interface RepositoryRoutes {
  readonly engine: Engine;
  readonly limits: HttpLimits;
  /** In which long documents are read. */
  readonly turns: LoopTurns;
}

/** Base64 of a file goes through one JavaScript string, which has this length at most. */
const fileTextBytesMax = 2 ** 29 - 64;

/** A checked document, or null for an empty body. Between the pieces of a long one others have the loop. */
async function readJson(
  exchange: Exchange,
  { turns }: RepositoryRoutes,
  limits: HttpLimits,
): Promise<JsonScanner | null> {
  const body = await readWholeBody(exchange, limits);
  if (body.length === 0) return null;
  const isLong = body.length > wholeTextBytesMax;
  const scanner = isLong ? await walkedDocument(body, { turns, signal: exchange.signal }) : new JsonScanner(body);
  const startAt = scanner.at;
  parsingRequestJson(() => {
    if (scanner.peek() === -1) scanner.fail("The document is empty.", scanner.at);
    scanner.skipValue();
    scanner.finish();
  });
  scanner.at = startAt;
  return scanner;
}

/** Of documents that carry no files: --http-max-input-size, as for other JSON. */
function smallBodies(limits: HttpLimits): HttpLimits {
  return { ...limits, bodyBytesMax: Math.min(limits.bodyBytesMax, limits.inputBytesMax) };
}

/** Where the values of the wanted members of the document's root object lie; a root of another kind has none. */
function membersOf(scanner: JsonScanner | null): ReadonlyMap<string, number> {
  const members = new Map<string, number>();
  if (scanner !== null && scanner.peek() === 0x7b) eachMember(scanner, scanner.at, (name, at) => members.set(name, at));
  return members;
}

/** Calls `visit` for each member of `parameters`, when there are any. */
function eachParameter(
  scanner: JsonScanner | null,
  visit: (scanner: JsonScanner, name: string, at: number) => void,
): void {
  const at = membersOf(scanner).get("parameters");
  if (scanner === null || at === undefined) return;
  if (scanner.bytes[at] !== 0x7b) throw internal("attempt to get members for non-object");
  eachMember(scanner, at, (name, valueAt) => visit(scanner, name, valueAt));
}

function internal(text: string): InferenceError {
  return new InferenceError("INTERNAL", text);
}

export async function answerIndex(exchange: Exchange, routes: RepositoryRoutes): Promise<void> {
  const scanner = await readJson(exchange, routes, smallBodies(routes.limits));
  const readyAt = membersOf(scanner).get("ready");
  const readyOnly =
    scanner !== null &&
    readyAt !== undefined &&
    booleanAt(
      scanner,
      readyAt,
      () => new InferenceError("INVALID_ARG", "Invalid value for 'ready': expected a boolean"),
    );
  replyJson(exchange, (await routes.engine.repositoryIndex(readyOnly)).map(indexRow));
}

/** Members without a value are left out, as Triton does. */
function indexRow(entry: IndexEntry): Record<string, string> {
  return {
    name: entry.name,
    ...(entry.version === "" ? {} : { version: entry.version }),
    ...(entry.state === "" ? {} : { state: entry.state }),
    ...(entry.reason === "" ? {} : { reason: entry.reason }),
  };
}

export async function answerLoad(exchange: Exchange, routes: RepositoryRoutes, modelName: string): Promise<void> {
  const scanner = await readJson(exchange, routes, routes.limits);
  const override = readOverride(scanner);
  await routes.engine.loadModel(modelName, override, exchange.signal);
  replyDone(exchange);
}

function readOverride(scanner: JsonScanner | null): LoadOverride | null {
  let configJson: string | null = null;
  const files = new Map<string, Uint8Array>();
  eachParameter(scanner, (document, name, at) => {
    if (name === "config") configJson = stringAt(document, at, internal);
    else if (name.startsWith("file:")) files.set(name.slice("file:".length), fileContent(document, name, at));
    else throw internal("unexpected error on creating Triton parameter");
  });
  return configJson === null && files.size === 0 ? null : { configJson, files };
}

function fileContent(document: JsonScanner, name: string, at: number): Uint8Array {
  document.at = at;
  if (document.peek() !== 0x22) throw internal("attempt to access JSON non-string as string");
  document.skipString();
  const textBytes = document.at - at;
  if (textBytes > fileTextBytesMax) {
    throw new InferenceError("INVALID_ARG", `parameter '${name}' exceeds ${fileTextBytesMax} bytes of base64`);
  }
  document.at = at;
  const text = Buffer.allocUnsafeSlow(textBytes);
  const length = unescapeJsonString(document, text, 0);
  const encoded = text.toString("latin1", 0, length);
  const content = Buffer.from(encoded, "base64");
  // node drops what is no base64; Triton gives up on the whole load.
  if (content.length < Math.floor((encoded.replaceAll("=", "").length * 3) / 4)) {
    throw new InferenceError("INVALID_ARG", `parameter '${name}' is not valid base64`);
  }
  return content;
}

export async function answerUnload(exchange: Exchange, routes: RepositoryRoutes, modelName: string): Promise<void> {
  const scanner = await readJson(exchange, routes, smallBodies(routes.limits));
  let unloadDependents = false;
  eachParameter(scanner, (document, name, at) => {
    if (name !== "unload_dependents") return;
    unloadDependents = booleanAt(document, at, (text) => new InferenceError("INVALID_ARG", text));
  });
  await routes.engine.unloadModel(modelName, unloadDependents);
  replyDone(exchange);
}

function replyDone(exchange: Exchange): void {
  reply(exchange, 200, "application/json", "");
}
