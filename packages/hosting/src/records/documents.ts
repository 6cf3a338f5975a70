/**
 * A versioned document, in a model that other databases than SQLite can offer, too: a text with a kind and a key. Each
 * write is one transaction with a version of its own, higher than every earlier one; a document has the version of the
 * write that it comes from.
 */
export interface Document {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly body: string;
}

/** The state that a change expects: a version, no document, or any. */
export type ExpectedVersion = number | "absent" | "any";

export type DocumentChange =
  | {
      readonly do: "put";
      readonly kind: string;
      readonly key: string;
      readonly body: string;
      /** The document's value in each order, by name; it is in no other order. */
      readonly orders?: Readonly<Record<string, string>>;
      readonly expects: ExpectedVersion;
    }
  | { readonly do: "delete"; readonly kind: string; readonly key: string; readonly expects: number | "any" }
  /** Changes nothing: the transaction fails unless this document has this version. */
  | { readonly do: "check"; readonly kind: string; readonly key: string; readonly expects: number };

/** The position of a document in a listing. */
export interface DocumentPosition {
  readonly value: string;
  readonly key: string;
}

export interface DocumentQuery {
  readonly kind: string;
  /** The name of an order; null: by key, which is the value then. Values, then keys, ascend by their UTF-8 bytes. */
  readonly order: string | null;
  readonly isDescending: boolean;
  /** Only documents whose value begins with this. */
  readonly prefix?: string;
  /** Only documents after this position, in the direction of the listing. */
  readonly after: DocumentPosition | null;
  /** At most `documentsListedMax`. */
  readonly limit: number;
}

export const documentsListedMax = 1000;

export interface ListedDocument extends Document {
  readonly value: string;
}

export interface DocumentPage {
  readonly documents: readonly ListedDocument[];
  /** Start of the next page; null at the end. */
  readonly next: DocumentPosition | null;
}

/** The current state of a document; null: it was deleted. */
export interface ChangedDocument {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly document: Document | null;
}

export interface ChangeBatch {
  /** All changes up to this version were delivered with this batch or before. */
  readonly version: number;
  /** Ascending by version. Of several changes of one document only the last is delivered. */
  readonly changes: readonly ChangedDocument[];
}

/** Implementations pass `documents.contract.ts`. */
export interface Documents {
  get(kind: string, key: string): Promise<Document | null>;
  list(query: DocumentQuery): Promise<DocumentPage>;
  /**
   * Makes all changes or none, and resolves with their version when they are on disk (fsync). Rejects with
   * DocumentConflict when the expectation of one fails. No two changes of one write may name the same document.
   */
  write(changes: readonly DocumentChange[]): Promise<number>;
  /** Resolves with the version of the last write; later reads are of this version or a later one. */
  version(): Promise<number>;
  /**
   * Yields the changes after a version, past and future ones, in batches of bounded size. Nothing is buffered for a
   * slow reader: it gets fewer, combined batches. Throws ChangesForgotten if deletions after that version are forgotten
   * (then the reader has to list everything again), and the signal's reason.
   */
  changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch>;
}

/** Another writer was first: the document is not in the expected state. Nothing was written. */
export class DocumentConflict extends Error {
  readonly kind: string;
  readonly key: string;

  constructor(kind: string, key: string) {
    super(`the document ${kind} ${key} has another version`);
    this.name = "DocumentConflict";
    this.kind = kind;
    this.key = key;
  }
}

/** Deletions after the requested version are forgotten. */
export class ChangesForgotten extends Error {
  constructor(sinceVersion: number) {
    super(`the changes after version ${sinceVersion} are no longer all available`);
    this.name = "ChangesForgotten";
  }
}
