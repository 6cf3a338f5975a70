/** CloudWatch Logs' filter patterns. The first non-empty pattern loads this module. */
export { compileFilterPattern, parseFilterPattern, type FilterPattern } from "./filter-pattern.ts";
export { parseJsonSelector } from "./pattern-json.ts";
