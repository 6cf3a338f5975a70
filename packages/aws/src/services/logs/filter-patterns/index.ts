/** CloudWatch Logs' filter patterns. Loaded by the first pattern that is not empty. */
export { parseFilterPattern, readFilterPattern, type FilterPattern } from "./filter-pattern.ts";
export { parseJsonSelector } from "./pattern-json.ts";
