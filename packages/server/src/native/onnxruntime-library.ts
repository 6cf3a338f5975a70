import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";

/**
 * Returns the path of the ONNX Runtime library for this platform. The published package carries it in `onnxruntime/` beside this file,
 * where `scripts/build.ts` copies it to. A checkout has it in its development dependency `onnxruntime-node`, whose JavaScript is not loaded.
 */
export function onnxRuntimeLibrary(): string {
  const { platform, arch } = process;
  const published = extname(import.meta.filename) === ".js";
  const directory = published
    ? join(import.meta.dirname, "onnxruntime")
    : join(dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json")), "bin/napi-v6");
  return join(directory, platform, arch, "libonnxruntime.so.1");
}
