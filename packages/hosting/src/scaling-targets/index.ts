/** The variants and inference components of endpoints as targets of Application Auto Scaling. */
export { scalableHosting } from "./scalable-hosting.ts";
