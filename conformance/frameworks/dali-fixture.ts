import { join } from "node:path";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { openFramework, type FrameworkFixture } from "./framework-fixture.ts";

export interface DaliFixture extends FrameworkFixture {
  /** JPEG files from Python packages. */
  readonly photographs: readonly string[];
  /** The interpreter with a decoder that is independent of DALI. */
  readonly decoder: string;
}

/** Returns photographs: two of scikit-learn's and one of Matplotlib's. */
export async function photographsOfPackages(): Promise<{ readonly files: readonly string[]; readonly python: string }> {
  const { python, sitePackages } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
  const locations = [
    "sklearn/datasets/images/china.jpg",
    "sklearn/datasets/images/flower.jpg",
    "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
  ];
  return { files: locations.map((location) => join(sitePackages, location)), python };
}

/** Starts our server over a repository that DALI wrote, without loaded models. */
export async function openDali(): Promise<DaliFixture> {
  const { files, python } = await photographsOfPackages();
  return { ...(await openFramework("dali", files)), photographs: files, decoder: python };
}
