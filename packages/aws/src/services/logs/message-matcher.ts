/** Returns whether a message matches a filter pattern. The first pattern that is not empty loads the patterns' code. Rejects with AwsError. */
export async function messageMatcher(pattern = ""): Promise<(message: string) => boolean> {
  if (pattern.trim() === "") return () => true;
  return (await import("./filter-patterns/index.ts")).parseFilterPattern(pattern);
}
