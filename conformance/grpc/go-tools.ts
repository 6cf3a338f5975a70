import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** Programs of others that speak gRPC, at the versions that were tried. */
const tools = {
  grpcurl: { module: "github.com/fullstorydev/grpcurl/cmd/grpcurl", version: "v1.9.4", binary: "grpcurl" },
  ghz: { module: "github.com/bojand/ghz/cmd/ghz", version: "v0.93.0", binary: "ghz" },
  interop: { module: "google.golang.org/grpc/interop/client", version: "v1.85.0", binary: "client" },
} as const;

export type ToolName = keyof typeof tools;

export const toolNames = Object.keys(tools) as readonly ToolName[];

/** Go is what they are built with; no package registry of another language carries them. */
export class NoGo extends Error {
  constructor(cause: unknown) {
    super("These clients are built from source: install Go (https://go.dev/dl), or put `go` on the PATH.", { cause });
    this.name = "NoGo";
  }
}

/** The tool's path; built when it is not there yet (a minute or two each). Throws NoGo, or with what the build printed. */
export async function ensureTool(cacheDirectory: string, name: ToolName): Promise<string> {
  const { module, version, binary } = tools[name];
  const directory = join(cacheDirectory, "go-tools");
  const path = join(directory, `${name}-${version}`);
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  if (isThere) return path;
  await mkdir(directory, { recursive: true });
  const staging = await mkdtemp(join(directory, "building-"));
  try {
    await promisify(execFile)("go", ["install", `${module}@${version}`], { env: { ...process.env, GOBIN: staging } });
    await rename(join(staging, binary), path);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? new NoGo(error) : error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return path;
}
