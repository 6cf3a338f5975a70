/**
 * Returns a function that matches messages with a filter pattern. The first non-empty pattern loads the code for
 * patterns. Rejects with AwsError for an invalid pattern.
 */
export async function createMessageMatcher(pattern = ""): Promise<(message: string) => boolean> {
  if (pattern.trim() === "") return () => true;
  return (await import("./filter-patterns/index.ts")).compileFilterPattern(pattern);
}
