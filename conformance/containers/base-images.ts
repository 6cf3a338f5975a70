import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { createdDirectory } from "../environments/created-directory.ts";
import { runCommand } from "../environments/run-command.ts";

/** The base images of the tests: Debian's packages, and Python's packages on top. */
const bases = {
  base: { debian: ["python3", "python3-flask", "gunicorn", "nginx-light"], python: [] },
  /** SageMaker's inference toolkit and its model server. */
  toolkit: {
    debian: [
      "openjdk-17-jre-headless",
      "procps",
      "python3-boto3",
      "python3-future",
      "python3-numpy",
      "python3-pil",
      "python3-pip",
      "python3-pkg-resources",
      "python3-psutil",
      "python3-scipy",
      "python3-six",
    ],
    python: ["sagemaker-inference==1.10.1", "multi-model-server==1.1.11", "model-archiver==1.0.3", "retrying==1.3.4"],
  },
} as const satisfies Record<string, { readonly debian: readonly string[]; readonly python: readonly string[] }>;

export type BaseName = keyof typeof bases;

const making = { signal: new AbortController().signal, progress: () => {} };

/** Returns the name of a base image in the engine's store. */
export const baseImage = (name: BaseName) => `galatea-tests-${name}:1`;

/** Returns the archive of the root file system of a base image. It is made once below the cache directory. */
export async function ensureBaseArchive(name: BaseName): Promise<string> {
  const { debian, python } = bases[name];
  const folder = join(cacheDirectory(process.env), "containers", `${name}-1`);
  const archive = join(folder, "base.tar");
  await createdDirectory(folder, making, async () => {
    const wheels = join(folder, "wheels");
    await mkdir(wheels, { recursive: true });
    if (python.length > 0) await downloadWheels(python, wheels);
    const install = "pip install --no-index --no-deps --break-system-packages /wheels/*.whl";
    const hooks = [`copy-in ${wheels} /`, `chroot "$1" sh -c '${install}'`, `rm -r "$1/wheels"`];
    await runCommand(
      [
        "mmdebstrap",
        "--variant=minbase",
        `--include=${debian.join(",")}`,
        // scipy's package depends on the headers of Boost, which are many small files.
        "--dpkgopt=path-exclude=/usr/include/*",
        ...(python.length > 0 ? hooks.map((hook) => `--customize-hook=${hook}`) : []),
        "bookworm",
        archive,
      ],
      making,
    );
    return {};
  });
  return archive;
}

async function downloadWheels(packages: readonly string[], folder: string): Promise<void> {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "clients");
  await runCommand([python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, ...packages], making);
}
