import { chmod, copyFile, cp, mkdir } from "node:fs/promises";
import { join } from "node:path";

/** Returns the paths of the real tritonserver's files in an `oracle` environment. */
export function oracleFiles(environment: { readonly directory: string; readonly sitePackages: string }) {
  const tritonserver = join(environment.sitePackages, "pytriton", "tritonserver");
  return {
    binary: join(tritonserver, "bin", "tritonserver"),
    caches: join(tritonserver, "caches"),
    stubs: join(tritonserver, "python_backend_stubs"),
    packagedBackends: join(tritonserver, "backends"),
    libraries: join(environment.sitePackages, "nvidia_pytriton.libs"),
    /**
     * A copy, because the stub must be in the directory of the backend's library, and the package's own directory stays
     * unchanged.
     */
    backends: join(environment.directory, "backends"),
  };
}

/** Copies the Python backend together with the stub of the environment's Python version. Runs after pip. */
export async function prepareOracle(making: {
  readonly directory: string;
  readonly python: string;
  readonly sitePackages: string;
  readonly run: (command: readonly string[]) => Promise<string>;
}): Promise<void> {
  const files = oracleFiles(making);
  const version = (await making.run([making.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])).trim();
  const target = join(files.backends, "python");
  await mkdir(files.backends, { recursive: true });
  await cp(join(files.packagedBackends, "python"), target, { recursive: true });
  const stub = join(target, "triton_python_backend_stub");
  await copyFile(join(files.stubs, version, "triton_python_backend_stub"), stub);
  await chmod(stub, 0o755);
}
