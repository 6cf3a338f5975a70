import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** Programs in Go at tested versions: clients of gRPC, and services of S3. */
const tools = {
  grpcurl: { module: "github.com/fullstorydev/grpcurl/cmd/grpcurl", version: "v1.9.4", binary: "grpcurl" },
  ghz: { module: "github.com/bojand/ghz/cmd/ghz", version: "v0.93.0", binary: "ghz" },
  interop: { module: "google.golang.org/grpc/interop/client", version: "v1.85.0", binary: "client" },
  minio: { module: "github.com/minio/minio", version: "v0.0.0-20260212201848-7aac2a2c5b7c", binary: "minio" },
  versitygw: { module: "github.com/versity/versitygw/cmd/versitygw", version: "v1.8.0", binary: "versitygw" },
} as const;

export type ToolName = keyof typeof tools;

/** There is no Go to build a program with. */
export class NoGo extends Error {
  constructor(cause: unknown) {
    super("These programs are built from source: install Go (https://go.dev/dl), or put `go` on the PATH.", { cause });
    this.name = "NoGo";
  }
}

/** Resolves with the path of a program, and builds it on first use (a minute or two each). Rejects with NoGo, or with the output of the build. */
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
