/** Paths of the OpenAI API that call a model. The platform handles /v1/models without calling a container. */
const openAiPaths: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/responses",
]);

/** A call of the OpenAI API, for the container's own model or for an archive. The id of the archive precedes the path in the URL. */
export interface OpenAiRoute {
  /** Id of the archive; null for the container's own model. */
  readonly id: string | null;
  /** Path without the archive's id. */
  readonly path: string;
}

export function openAiRoute(path: string): OpenAiRoute | null {
  if (openAiPaths.has(path)) return { id: null, path };
  const [, id, below] = /^\/models\/([^/]+)(\/v1\/.+)$/.exec(path) ?? [];
  return id !== undefined && below !== undefined && openAiPaths.has(below) ? { id, path: below } : null;
}
