/** The variants and inference components of endpoints as targets of Application Auto Scaling. */
export { hostingScalableResources } from "./scalable-hosting.ts";
