import { join } from "node:path";
import { fetchPackage, type DataPackage, type FetchOptions } from "../fetch-package.ts";

/** Packages with photographs, pinned. */
const sources: readonly (DataPackage & { readonly photographs: readonly string[] })[] = [
  {
    requirement: "scikit-learn==1.7.2",
    name: "sklearn",
    file: "datasets/images/flower.jpg",
    about: "photographs of scikit-learn (10 MB)",
    photographs: ["datasets/images/china.jpg", "datasets/images/flower.jpg"],
  },
  {
    requirement: "matplotlib==3.11.2",
    name: "matplotlib",
    file: "mpl-data/sample_data/grace_hopper.jpg",
    about: "a photograph of Matplotlib (9 MB)",
    photographs: ["mpl-data/sample_data/grace_hopper.jpg"],
  },
];

/** Downloads photographs to `directory`, once, and returns their JPEG files. */
export async function fetchPhotographs(directory: string, options: FetchOptions): Promise<readonly string[]> {
  const files: string[] = [];
  for (const { photographs, ...source } of sources) {
    const found = await fetchPackage(directory, source, options);
    files.push(...photographs.map((each) => join(found, each)));
  }
  return files;
}
