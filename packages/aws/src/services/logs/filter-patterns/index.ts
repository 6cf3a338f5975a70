/** CloudWatch Logs' filter patterns. Loaded by the first non-empty pattern. */
export { compileFilterPattern, parseFilterPattern, type FilterPattern } from "./filter-pattern.ts";
export { parseJsonSelector } from "./pattern-json.ts";
