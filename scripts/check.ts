import { runSteps, type Step } from "./steps.ts";

/** Steps of `npm run check`, which `npm test` runs first: all checks without a server environment or a real client. */
export const checkSteps: readonly Step[] = [
  { name: "format", command: ["npm", "run", "--silent", "format:check"] },
  { name: "lint", command: ["npm", "run", "--silent", "lint"] },
  { name: "types", command: ["npm", "run", "--silent", "types"] },
  { name: "dead files", command: ["npm", "run", "--silent", "dead"] },
  { name: "unit tests", command: ["npm", "run", "--silent", "unit", "--"], testFiles: [] },
];

if (import.meta.main) process.exitCode = await runSteps(checkSteps);
