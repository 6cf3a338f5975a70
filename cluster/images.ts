import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "tar";
import { createdDirectory } from "../conformance/environments/created-directory.ts";
import { runCommand, type Installation } from "../conformance/environments/run-command.ts";
import { keepNewest } from "./keep-newest.ts";

const root = join(import.meta.dirname, "..");

/**
 * Returns the path of the archive of Galatea's image with the wheel of `npm run build`. If the wheel or the steps of the image have changed,
 * `packaging/offline-image.sh` builds the archive below `cacheDirectory`, which takes a minute. Only the newest archive is kept.
 */
export async function ensureGalateaImage(cacheDirectory: string, making: Installation): Promise<string> {
  const dist = join(root, "dist");
  const wheels = (await readdir(dist)).filter((name) => name.endsWith(".whl")).map((name) => join(dist, name));
  const steps = ["Dockerfile", "install.sh", "offline-image.sh"].map((name) => join(root, "packaging", name));
  const digest = createHash("sha256");
  for (const path of [...wheels, ...steps]) digest.update(await readFile(path));
  const name = `image-${digest.digest("hex").slice(0, 12)}`;
  const parent = join(cacheDirectory, "cluster");
  const folder = join(parent, name);
  await createdDirectory(folder, making, async () => {
    await mkdir(folder);
    await runCommand(["bash", join(root, "packaging/offline-image.sh"), folder], making);
    await rm(join(folder, "root"), { recursive: true });
    return { name };
  });
  await keepNewest(parent, "image-", name);
  return join(folder, "galatea.tar");
}

/** Writes the archive of the sandbox image of pods, `laboratory.invalid/pause:1`, and returns its path. */
export async function writePauseImage(programs: string, folder: string): Promise<string> {
  await mkdir(folder);
  await copyFile(join(programs, "pause"), join(folder, "pause"));
  await create({ cwd: folder, file: join(folder, "layer.tar"), portable: true }, ["pause"]);
  const layer = createHash("sha256")
    .update(await readFile(join(folder, "layer.tar")))
    .digest("hex");
  const image = {
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    config: { Entrypoint: ["/pause"] },
    rootfs: { type: "layers", diff_ids: [`sha256:${layer}`] },
  };
  const manifest = [{ Config: "image.json", RepoTags: ["laboratory.invalid/pause:1"], Layers: ["layer.tar"] }];
  await writeFile(join(folder, "image.json"), JSON.stringify(image));
  await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
  const archive = join(folder, "pause.tar");
  await create({ cwd: folder, file: archive, portable: true }, ["image.json", "manifest.json", "layer.tar"]);
  return archive;
}
