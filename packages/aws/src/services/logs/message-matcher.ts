/**
 * Returns a function that matches messages with a filter pattern. The first non-empty pattern loads the patterns' code.
 * Rejects with AwsError.
 */
export async function createMessageMatcher(pattern = ""): Promise<(message: string) => boolean> {
  if (pattern.trim() === "") return () => true;
  return (await import("./filter-patterns/index.ts")).compileFilterPattern(pattern);
}
