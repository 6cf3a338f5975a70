import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

/**
 * `npm run build`: what is published, in server/dist: one JavaScript module for each source file, the generated files as they are, and the
 * ONNX Runtime library for each platform. `npm pack --workspace server` then makes the package.
 */
const server = join(import.meta.dirname, "..", "server");
const source = join(server, "src");
const dist = join(server, "dist");
rmSync(dist, { recursive: true, force: true });
const { status } = spawnSync("tsc", ["-p", join(server, "tsconfig.build.json")], { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
for (const entry of readdirSync(source, { withFileTypes: true, recursive: true })) {
  if (!entry.isDirectory() || entry.name !== "gen") continue;
  const folder = join(entry.parentPath, entry.name);
  cpSync(folder, join(dist, relative(source, folder)), { recursive: true });
}
// Where `onnxRuntimeLibrary` looks. As a dependency, onnxruntime-node would bring the libraries of all platforms and run its install script.
const library = "libonnxruntime.so.1";
const libraries = join(
  dirname(createRequire(join(source, "main.ts")).resolve("onnxruntime-node/package.json")),
  "bin/napi-v6",
);
for (const platform of ["linux/x64", "linux/arm64"]) {
  const directory = join(dist, "native/onnxruntime", platform);
  mkdirSync(directory, { recursive: true });
  cpSync(join(libraries, platform, library), join(directory, library));
}
