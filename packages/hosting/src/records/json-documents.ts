import type { Logger } from "@galatea/base";
import { documentsListedMax, type Document, type DocumentPosition, type Documents } from "./documents.ts";

export interface JsonDocument<Value> {
  readonly key: string;
  readonly body: string;
  readonly value: Value;
}

/** Parses a JSON document. Returns null and logs an error if it is unreadable. The document stays on disk. */
export function readJson({ kind, key, body }: Omit<Document, "version">, logger: Logger): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    logger.error("damaged record skipped; it stays on disk", { kind, key, error: String(error) });
    return null;
  }
}

/** Yields all documents of a kind, sorted by key. `readAtOnce`: documents in one read; use less for long bodies. */
export async function* readAllDocuments(
  documents: Documents,
  kind: string,
  readAtOnce = documentsListedMax,
): AsyncGenerator<Document, void, void> {
  for (let after: DocumentPosition | null = null; ;) {
    const page = await documents.list({ kind, order: null, isDescending: false, after, limit: readAtOnce });
    yield* page.documents;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Yields all documents of a kind that are valid JSON. */
export async function* readAllJson<Value>(
  documents: Documents,
  kind: string,
  { logger, readAtOnce }: { readonly logger: Logger; readonly readAtOnce?: number },
): AsyncGenerator<JsonDocument<Value>, void, void> {
  for await (const document of readAllDocuments(documents, kind, readAtOnce)) {
    const value = readJson(document, logger) as Value | null;
    if (value !== null) yield { key: document.key, body: document.body, value };
  }
}
