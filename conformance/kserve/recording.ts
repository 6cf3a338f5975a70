import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { oraclePackage, oracleVersion } from "../environments/index.ts";
import type { ComparedResponse, CaseResponses, Case } from "./case.ts";
import { fixtures } from "./fixtures.ts";

/** The recorded responses of a group. */
interface RecordingFile {
  readonly oracle: { readonly version: string; readonly package: string };
  readonly cases: Readonly<Record<string, RecordedCase>>;
}

interface RecordedCase {
  /** Digest of everything in this suite that the responses depend on. A recording with another digest is stale. */
  readonly digest: string;
  readonly steps: readonly (readonly RecordedAnswer[] | null)[];
}

interface RecordedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly base64?: string;
}

const directory = new URL("recordings/", import.meta.url);
const pathOf = (group: string) => fileURLToPath(new URL(`${group}.json`, directory));

export class StaleRecording extends Error {}

/** Returns a digest of the case's requests and its fixture, without the way of comparison. */
export function caseDigest(item: Case): string {
  const requests = item.steps.map((step) => ({
    ...step.request,
    body: step.request.body === undefined ? null : Buffer.from(step.request.body as string).toString("base64"),
    asked: step.difference?.notAsked !== true,
  }));
  return createHash("sha256")
    .update(JSON.stringify([requests, item.fixture, fixtures[item.fixture].flags, fixtures[item.fixture].env]))
    .digest("hex")
    .slice(0, 16);
}

export async function readRecording(group: string): Promise<(item: Case) => CaseResponses> {
  const text = await readFile(pathOf(group), "utf8");
  const file = JSON.parse(text) as RecordingFile;
  return (item) => {
    const recorded = file.cases[item.name];
    if (recorded === undefined) throw new StaleRecording(`no recording of '${item.name}': run with --record`);
    if (recorded.digest !== caseDigest(item))
      throw new StaleRecording(`'${item.name}' changed since it was recorded: run with --record`);
    return recorded.steps.map((step) => step?.map(restored) ?? null);
  };
}

/**
 * Writes the recording of a group. Keeps earlier responses of cases that were not run now, and drops those of deleted
 * cases.
 */
export async function writeRecording(
  group: string,
  cases: readonly Case[],
  run: ReadonlyMap<string, CaseResponses>,
): Promise<void> {
  await mkdir(fileURLToPath(directory), { recursive: true });
  const before: RecordingFile["cases"] = await readFile(pathOf(group), "utf8").then(
    (text) => (JSON.parse(text) as RecordingFile).cases,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      return {};
    },
  );
  const entries = cases.flatMap((item): [string, RecordedCase][] => {
    const responses = run.get(item.name);
    if (responses !== undefined)
      return [[item.name, { digest: caseDigest(item), steps: responses.map((step) => step?.map(kept) ?? null) }]];
    const old = before[item.name];
    return old === undefined ? [] : [[item.name, old]];
  });
  const file: RecordingFile = {
    oracle: { version: oracleVersion, package: oraclePackage },
    cases: Object.fromEntries(entries),
  };
  await writeFile(pathOf(group), `${JSON.stringify(file, null, 1)}\n`);
}

/** Shortens large bodies of one repeated pattern, so that the repository stays small. */
function kept(response: ComparedResponse): RecordedAnswer {
  const body = Buffer.from(response.body);
  const text = body.toString("utf8");
  const asText = Buffer.from(text, "utf8").equals(body);
  return {
    status: response.status,
    headers: response.headers,
    ...(asText ? { text } : { base64: body.toString("base64") }),
  };
}

function restored(response: RecordedAnswer): ComparedResponse {
  const body =
    response.base64 === undefined ? Buffer.from(response.text ?? "", "utf8") : Buffer.from(response.base64, "base64");
  return { status: response.status, headers: response.headers, body };
}
