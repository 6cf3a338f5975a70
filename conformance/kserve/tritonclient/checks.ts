import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { oraclePackage, oracleVersion, type Environment } from "../../environments/index.ts";
import type { FixtureName } from "../fixtures.ts";
import { startFixture, type Target } from "../started-fixture.ts";

/** The client's result of each check. */
export type ClientResults = Readonly<Record<string, ClientResult>>;
type ClientResult =
  | { readonly result: unknown }
  | { readonly exception: string; readonly status: string | null; readonly message: string };

export const clientFixtures = ["main", "control"] as const satisfies readonly FixtureName[];

/** The file of the checks that both programs run. */
const sharedFile = "checks.py";
/** The programs, each of which is started with the port of its protocol. */
const programs = [
  { file: "http_checks.py", prefix: "", port: "httpPort" },
  { file: "grpc_checks.py", prefix: "grpc, ", port: "grpcPort" },
] as const;
const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const recordingPath = fileURLToPath(new URL("../recordings/tritonclient.json", import.meta.url));
const runTimeoutMs = 180_000;

/** Runs every check with the `clients` environment against a new server of each fixture. */
export async function runClient(target: Target, clients: Environment): Promise<ClientResults> {
  const results: Record<string, ClientResult> = {};
  for (const name of clientFixtures) {
    const fixture = await startFixture(target, name);
    try {
      for (const { file, prefix, port } of programs) {
        const args = [pathOf(file), String(fixture.server[port]), name];
        const { stdout } = await promisify(execFile)(clients.python, args, {
          timeout: runTimeoutMs,
          maxBuffer: 16 << 20,
        });
        const masked = stdout.replaceAll(fixture.masks.repository, "<repository>");
        for (const [check, result] of Object.entries(JSON.parse(masked) as ClientResults))
          results[`${prefix}${name}: ${check}`] = result;
      }
    } finally {
      await fixture.stop();
    }
  }
  return results;
}

/**
 * Returns the checks with different results, with both results. The message of an exception may continue after
 * Triton's.
 */
export function compareClientResults(expected: ClientResults, ours: ClientResults): string[] {
  return Object.entries(expected).flatMap(([check, desired]) => {
    const got = ours[check];
    return got !== undefined && sameResult(desired, got)
      ? []
      : [`${check}\n  expected ${JSON.stringify(desired)}\n  got      ${JSON.stringify(got)}`];
  });
}

function sameResult(expected: ClientResult, got: ClientResult): boolean {
  if ("result" in expected || "result" in got) return JSON.stringify(expected) === JSON.stringify(got);
  return (
    expected.exception === got.exception &&
    expected.status === got.status &&
    got.message.startsWith(expected.message.trimEnd())
  );
}

interface ClientRecording {
  readonly oracle: { readonly version: string; readonly package: string };
  /** Digest of the programs' text. A recording with another digest is stale. */
  readonly digest: string;
  readonly results: ClientResults;
}

export async function readClientRecording(): Promise<ClientResults> {
  const recording = JSON.parse(await readFile(recordingPath, "utf8")) as ClientRecording;
  if (recording.digest !== (await programDigest())) {
    throw new Error("the checks of tritonclient changed since they were recorded: run with --record");
  }
  return recording.results;
}

export async function writeClientRecording(results: ClientResults): Promise<void> {
  const recording: ClientRecording = {
    oracle: { version: oracleVersion, package: oraclePackage },
    digest: await programDigest(),
    results,
  };
  await writeFile(recordingPath, `${JSON.stringify(recording, null, 1)}\n`);
}

async function programDigest(): Promise<string> {
  const hash = createHash("sha256");
  for (const file of [sharedFile, ...programs.map((program) => program.file)])
    hash.update(await readFile(pathOf(file)));
  return hash.digest("hex").slice(0, 16);
}
