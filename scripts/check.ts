import { runSteps, type Step } from "./steps.ts";

/** What `npm run check` runs, and `npm test` first: everything that needs neither a server's environment nor a real client. */
export const checkSteps: readonly Step[] = [
  { name: "format", command: ["npm", "run", "--silent", "format:check"] },
  { name: "lint", command: ["npm", "run", "--silent", "lint"] },
  { name: "types", command: ["npm", "run", "--silent", "types"] },
  { name: "dead files", command: ["npm", "run", "--silent", "dead"] },
  { name: "unit tests", command: ["npm", "run", "--silent", "unit", "--"], testFiles: [] },
];

if (import.meta.main) process.exitCode = await runSteps(checkSteps);
