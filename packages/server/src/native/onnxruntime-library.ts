import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";

/**
 * Returns the path of the ONNX Runtime library for this platform. In the published package, `scripts/build.ts` has copied it to
 * `onnxruntime/` beside this file. In a checkout, it is in the development dependency `onnxruntime-node`, whose JavaScript is not loaded.
 */
export function onnxRuntimeLibrary(): string {
  const { platform, arch } = process;
  const published = extname(import.meta.filename) === ".js";
  const directory = published
    ? join(import.meta.dirname, "onnxruntime")
    : join(dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json")), "bin/napi-v6");
  return join(directory, platform, arch, "libonnxruntime.so.1");
}
