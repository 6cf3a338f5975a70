import { writeFileSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { serveRunner } from "./serve-runner.ts";

/** The whole life of a runner process: it serves the sockets that it was born with, and ends when the server lets go of them. */

/** Descriptors that it is born with, as its 3 and 4. */
export type RunnerDescriptors = readonly [controlFd: number, descriptorFd: number];

enableCompileCache();
try {
  // Where memory runs out, a runner can be replaced, the server cannot.
  writeFileSync("/proc/self/oom_score_adj", "500");
} catch {
  // A system that does not let it is as good without.
}
const [controlFd, descriptorFd]: RunnerDescriptors = [3, 4];
await serveRunner({ controlFd, descriptorFd });
process.exit();
