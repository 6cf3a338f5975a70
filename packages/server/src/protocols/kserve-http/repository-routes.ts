import { InferenceError, type EventLoopQueue, type YieldOptions } from "@galatea/base";
import type { Engine, IndexEntry, LoadOverride } from "../../engine/index.ts";
import { JsonScanner } from "../../tensor/index.ts";
import { readBodyToBuffer, reply, replyJson, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import {
  booleanAt,
  eachMember,
  parsingRequestJson,
  stringAt,
  scanInChunks,
  wholeTextBytesMax,
} from "../infer-codec/index.ts";
import { decodedBase64 } from "./base64-text.ts";

export interface RepositoryRoutes {
  readonly engine: Engine;
  readonly limits: HttpLimits;
  /** Lets readers yield to the event loop while they read long documents. */
  readonly loopQueue: EventLoopQueue;
}

/**
 * Returns a scanner of the request's checked JSON; null for an empty body. A long body is read in chunks, with event loop ticks between
 * them.
 */
async function readJson(
  exchange: Exchange,
  { loopQueue }: RepositoryRoutes,
  limits: HttpLimits,
): Promise<JsonScanner | null> {
  const body = await readBodyToBuffer(exchange, limits);
  if (body.length === 0) return null;
  const isLong = body.length > wholeTextBytesMax;
  const scanner = isLong ? await scanInChunks(body, { loopQueue, signal: exchange.signal }) : new JsonScanner(body);
  const startAt = scanner.at;
  parsingRequestJson(() => {
    if (scanner.peek() === -1) scanner.fail("The document is empty.", scanner.at);
    scanner.skipValue();
    scanner.finish();
  });
  scanner.at = startAt;
  return scanner;
}

/** Returns the limits for bodies without model files. As for other JSON, --http-max-input-size limits their size. */
function smallBodies(limits: HttpLimits): HttpLimits {
  return { ...limits, bodyBytesMax: Math.min(limits.bodyBytesMax, limits.inputBytesMax) };
}

/** Returns the offsets of the root object's members; an empty map if the root is not an object. */
function membersOf(scanner: JsonScanner | null): ReadonlyMap<string, number> {
  const members = new Map<string, number>();
  if (scanner !== null && scanner.peek() === 0x7b) eachMember(scanner, scanner.at, (name, at) => members.set(name, at));
  return members;
}

/** Calls `visit` for each member of the request's `parameters` object, if there is one. */
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

export async function handleIndex(exchange: Exchange, routes: RepositoryRoutes): Promise<void> {
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

/** Returns a row of the index. As in Triton, members without a value are omitted. */
function indexRow(entry: IndexEntry): Record<string, string> {
  return {
    name: entry.name,
    ...(entry.version === "" ? {} : { version: entry.version }),
    ...(entry.state === "" ? {} : { state: entry.state }),
    ...(entry.reason === "" ? {} : { reason: entry.reason }),
  };
}

export async function handleLoad(exchange: Exchange, routes: RepositoryRoutes, modelName: string): Promise<void> {
  const scanner = await readJson(exchange, routes, routes.limits);
  const override = await readOverride(scanner, { loopQueue: routes.loopQueue, signal: exchange.signal });
  await routes.engine.loadModel(modelName, override, exchange.signal);
  replyDone(exchange);
}

async function readOverride(scanner: JsonScanner | null, of: YieldOptions): Promise<LoadOverride | null> {
  let configJson: string | null = null;
  const filesAt = new Map<string, number>();
  eachParameter(scanner, (document, name, at) => {
    if (name === "config") configJson = stringAt(document, at, internal);
    else if (name.startsWith("file:")) filesAt.set(name, fileTextAt(document, at));
    else throw internal("unexpected error on creating Triton parameter");
  });
  if (scanner === null || (configJson === null && filesAt.size === 0)) return null;
  const files = new Map<string, Uint8Array>();
  for (const [name, at] of filesAt) {
    const refusal = () => new InferenceError("INVALID_ARG", `parameter '${name}' is not valid base64`);
    scanner.at = at;
    files.set(name.slice("file:".length), await decodedBase64(scanner, of, refusal));
  }
  return { configJson, files };
}

function fileTextAt(document: JsonScanner, at: number): number {
  document.at = at;
  if (document.peek() !== 0x22) throw internal("attempt to access JSON non-string as string");
  return document.at;
}

export async function handleUnload(exchange: Exchange, routes: RepositoryRoutes, modelName: string): Promise<void> {
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
