/** CloudWatch Logs' filter patterns. Loaded by the first non-empty pattern. */
export { parseFilterPattern, readFilterPattern, type FilterPattern } from "./filter-pattern.ts";
export { parseJsonSelector } from "./pattern-json.ts";
