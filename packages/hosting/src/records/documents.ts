/**
 * A versioned text with a kind and a key. The model is simple enough for databases other than SQLite. Each write is one
 * transaction with a new version, which is higher than all earlier versions. A document has the version of its last
 * write.
 */
export interface Document {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly body: string;
}

/** The state of a document that a change requires: a version, no document, or any state. */
export type ExpectedVersion = number | "absent" | "any";

export type DocumentChange =
  | {
      readonly do: "put";
      readonly kind: string;
      readonly key: string;
      readonly body: string;
      /**
       * The document's sort value in each order, by the order's name. Listings in other orders exclude the document.
       */
      readonly orders?: Readonly<Record<string, string>>;
      readonly expects: ExpectedVersion;
    }
  | { readonly do: "delete"; readonly kind: string; readonly key: string; readonly expects: number | "any" }
  /** Changes nothing, but makes the transaction fail unless the document has this version. */
  | { readonly do: "check"; readonly kind: string; readonly key: string; readonly expects: number };

/** The position of a document in a listing. */
export interface DocumentPosition {
  readonly value: string;
  readonly key: string;
}

export interface DocumentQuery {
  readonly kind: string;
  /**
   * The name of an order; null: the key is the value. Listings are sorted by value, then by key, in the order of UTF-8
   * bytes.
   */
  readonly order: string | null;
  readonly isDescending: boolean;
  /** Lists only documents whose value begins with this prefix. */
  readonly prefix?: string;
  /** Lists only documents after this position, in the direction of the listing. */
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

/** The current state of a changed document; `document` is null if it was deleted. */
export interface ChangedDocument {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly document: Document | null;
}

export interface ChangeBatch {
  /** All changes up to this version were delivered in this batch or earlier ones. */
  readonly version: number;
  /** Changes, ascending by version. Only the last of several changes of one document is delivered. */
  readonly changes: readonly ChangedDocument[];
}

/** The reading part of `Documents`. */
export interface DocumentReader {
  get(kind: string, key: string): Promise<Document | null>;
  list(query: DocumentQuery): Promise<DocumentPage>;
  /** Resolves with the version of the last write. Later reads return this version or a newer one. */
  version(): Promise<number>;
  /**
   * Yields past and future changes after a version, in batches of bounded size. Nothing is buffered for a slow reader;
   * it receives combined batches. Throws the signal's reason, or ChangesForgotten if deletions after that version were
   * forgotten; the reader must then list everything again.
   */
  changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch>;
}

/** A store of documents. Every implementation passes `documents.contract.ts`. */
export interface Documents extends DocumentReader {
  /**
   * Makes all changes atomically. Resolves with their version when they are on disk (fsync). Rejects with
   * DocumentConflict if a document differs from what a change expects. Two changes of one write must not name the same
   * document.
   */
  write(changes: readonly DocumentChange[]): Promise<number>;
}

/**
 * The error of a write whose document is not in the expected state, because another writer was first. Nothing was
 * written.
 */
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

/** The error of a reader of changes that is too far behind: deletions after the requested version were forgotten. */
export class ChangesForgotten extends Error {
  constructor(sinceVersion: number) {
    super(`the changes after version ${sinceVersion} are no longer all available`);
    this.name = "ChangesForgotten";
  }
}
