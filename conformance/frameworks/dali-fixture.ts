import { join } from "node:path";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { openFramework, type FrameworkFixture } from "./framework-fixture.ts";

export interface DaliFixture extends FrameworkFixture {
  /** JPEG files that packages ship. */
  readonly photographs: readonly string[];
  /** The interpreter that has another decoder than DALI's. */
  readonly decoder: string;
}

/** Real photographs: two of scikit-learn's, one of Matplotlib's. */
export async function photographsOfPackages(): Promise<{ readonly files: readonly string[]; readonly python: string }> {
  const { python, sitePackages } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
  const places = [
    "sklearn/datasets/images/china.jpg",
    "sklearn/datasets/images/flower.jpg",
    "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
  ];
  return { files: places.map((place) => join(sitePackages, place)), python };
}

/** Our server over a repository that DALI wrote; nothing is loaded. */
export async function openDali(): Promise<DaliFixture> {
  const { files, python } = await photographsOfPackages();
  return { ...(await openFramework("dali", files)), photographs: files, decoder: python };
}
