import type { ComparedResponse, Comparison, Difference } from "./case.ts";
import { gunzipSync, inflateSync } from "node:zlib";
import { jsonTokens, unordered, unorderedOutputs } from "./json-tokens.ts";

/** The compared headers, which clients read. */
export const comparedHeaders = [
  "content-type",
  "inference-header-content-length",
  "content-encoding",
  "accept-encoding",
] as const;

/** Returns the first difference of `ours` from the recorded responses; null if there is none. */
export function compareResponses(
  expected: readonly ComparedResponse[],
  ours: readonly ComparedResponse[],
  how: Comparison,
): string | null {
  if (expected.length !== ours.length) {
    return `${expected.length} different responses expected, got ${ours.length}: ${ours.map(printed).join("; ")}`;
  }
  for (const [index, response] of expected.entries()) {
    const wrong = compareAnswer(response, ours[index] as ComparedResponse, how);
    if (wrong !== null) return wrong;
  }
  return null;
}

function compareAnswer(expected: ComparedResponse, ours: ComparedResponse, how: Comparison): string | null {
  const both = () => `\n  expected ${printed(expected)}\n  got      ${printed(ours)}`;
  if (expected.status !== ours.status) return `status ${ours.status} instead of ${expected.status}${both()}`;
  if (how !== "status") {
    for (const header of comparedHeaders) {
      if (header === "inference-header-content-length" && how === "binary") continue;
      if (expected.headers[header] !== ours.headers[header]) {
        return `header ${header}: '${ours.headers[header]}' instead of '${expected.headers[header]}'${both()}`;
      }
    }
  }
  try {
    return comparers[how](decoded(expected), decoded(ours)) ? null : `body differs${both()}`;
  } catch (error) {
    return `${String(error)}${both()}`;
  }
}

const comparers: Readonly<Record<Comparison, (expected: ComparedResponse, ours: ComparedResponse) => boolean>> = {
  status: () => true,
  bytes: (expected, ours) => Buffer.compare(expected.body, ours.body) === 0,
  json: (expected, ours) => tokens(expected.body) === tokens(ours.body),
  map: (expected, ours) => unordered(text(expected.body)) === unordered(text(ours.body).replace(newerField, "")),
  ensemble: (expected, ours) => unorderedOutputs(text(expected.body)) === unorderedOutputs(text(ours.body)),
  error: (expected, ours) => {
    // With several copies, some of the different responses are not errors.
    if (expected.status < 400) return tokens(expected.body) === tokens(ours.body);
    if (ours.body.length === 0 || expected.body.length === 0) return ours.body.length === expected.body.length;
    const theirs = JSON.parse(text(ours.body)) as Record<string, unknown>;
    const desired = JSON.parse(text(expected.body)) as Record<string, unknown>;
    // The end of Triton's text may follow our detail.
    return (
      Object.keys(theirs).join() === Object.keys(desired).join() &&
      typeof theirs["error"] === "string" &&
      theirs["error"].startsWith(String(desired["error"]).replace(/;?\s*$/, ""))
    );
  },
  binary: (expected, ours) => {
    const [wantedHeader, wantedBuffers] = cut(expected);
    const [header, buffers] = cut(ours);
    return tokens(wantedHeader) === tokens(header) && Buffer.compare(wantedBuffers, buffers) === 0;
  },
  statistics: (expected, ours) => tokens(masked(expected.body)) === tokens(masked(ours.body)),
  metrics: (expected, ours) => {
    const missing = families(expected.body).filter((line) => !families(ours.body).includes(line));
    if (missing.length > 0) throw new Error(`missing: ${missing.join(" | ")}`);
    return true;
  },
  "model-metrics": (expected, ours) => modelLines(expected.body) === modelLines(ours.body),
};

/** Decompresses a body: only the decompressed bytes must be equal. */
function decoded(response: ComparedResponse): ComparedResponse {
  const encoding = response.headers["content-encoding"];
  if (encoding === "gzip") return { ...response, body: gunzipSync(response.body) };
  if (encoding === "deflate") return { ...response, body: inflateSync(response.body) };
  return response;
}

/** Newer releases print this field in every ensemble's configuration. */
const newerField = ',"max_inflight_requests":0';

const text = (body: Uint8Array) => Buffer.from(body).toString("utf8");
const tokens = (body: Uint8Array) => jsonTokens(text(body)).join(" ");

/** Splits a body into the JSON header and the bytes after it. */
function cut(response: ComparedResponse): [Uint8Array, Uint8Array] {
  const mime = /json-header-size=(\d+)/.exec(response.headers["content-type"] ?? "")?.[1];
  const length = Number(response.headers["inference-header-content-length"] ?? mime ?? response.body.length);
  return [response.body.subarray(0, length), response.body.subarray(length)];
}

/** Masks times and memory, which differ between runs; counts are compared. */
function masked(body: Uint8Array): Uint8Array {
  return Buffer.from(
    text(body).replace(/"(ns|last_inference)":"?\d+"?/g, (_all, key: string) => `"${key}":"*"`),
    "utf8",
  );
}

/** Returns `name type labels` of each family. GPU families exist only with a GPU, and are not compared. */
function families(body: Uint8Array): string[] {
  const types = new Map<string, string>();
  const rows = new Set<string>();
  for (const line of text(body).split("\n")) {
    const type = /^# TYPE (\S+) (\S+)/.exec(line);
    if (type) types.set(type[1] as string, type[2] as string);
    const row = /^(\w+)(?:\{(.*)\})? /.exec(line);
    if (row === null) continue;
    const labels = [...(row[2] ?? "").matchAll(/(\w+)="/g)].map((label) => String(label[1])).sort();
    rows.add(`${row[1]} ${types.get(row[1] as string) ?? "untyped"} {${labels.join(",")}}`);
  }
  return [...rows].sort();
}

/**
 * Returns the families of models with their lines sorted, which Triton prints in any order. The servers' own families
 * are omitted.
 */
function modelLines(body: Uint8Array): string {
  return text(body)
    .split(/^(?=# HELP )/m)
    .filter((family) => !/^# HELP (?:nv_|galatea_)(?!of_a_model)/.test(family))
    .map((family) => family.trimEnd().split("\n"))
    .map(([help, type, ...lines]) => [help, type, ...lines.sort()].join("\n"))
    .sort()
    .join("\n");
}

/** Checks a response that differs on purpose. Returns the error, or null. */
export function checkDifference(difference: Difference, responses: readonly ComparedResponse[]): string | null {
  for (const response of responses) {
    if (response.status !== difference.status)
      return `status ${response.status} instead of ${difference.status}: ${printed(response)}`;
    for (const expected of difference.includes) {
      if (!text(response.body).includes(expected)) return `'${expected}' is not in ${printed(response)}`;
    }
  }
  return null;
}

function printed(response: ComparedResponse): string {
  const headers = comparedHeaders.filter((name) => response.headers[name] !== undefined);
  const body = Buffer.from(response.body).toString("latin1").slice(0, 700);
  return `${response.status} {${headers.map((name) => `${name}: ${response.headers[name]}`).join(", ")}} ${JSON.stringify(body)}`;
}
