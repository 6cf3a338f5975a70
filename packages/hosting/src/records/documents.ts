/**
 * Versioned documents: what another database than SQLite can offer, too. A document is a text under a kind and a key. Each write is one
 * transaction with a version of its own, higher than every one before; a document has the version of the write that it comes from.
 */
export interface Document {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly body: string;
}

/** What a change expects to find: a version, no document, or whatever there is. */
export type Expectation = number | "absent" | "any";

export type DocumentChange =
  | {
      readonly do: "put";
      readonly kind: string;
      readonly key: string;
      readonly body: string;
      /** By name of an order: where the document stands in it. It is in no other order then. */
      readonly orders?: Readonly<Record<string, string>>;
      readonly expects: Expectation;
    }
  | { readonly do: "delete"; readonly kind: string; readonly key: string; readonly expects: number | "any" }
  /** Changes nothing: the transaction is made only while this document has this version. */
  | { readonly do: "check"; readonly kind: string; readonly key: string; readonly expects: number };

/** Where a document stands in a listing. */
export interface DocumentPosition {
  readonly value: string;
  readonly key: string;
}

export interface DocumentQuery {
  readonly kind: string;
  /** The order that documents were put with; null: by key, which is their value then. Values, then keys, ascend by their UTF-8 bytes. */
  readonly order: string | null;
  readonly isDescending: boolean;
  /** Only what has a value that begins with this. */
  readonly prefix?: string;
  /** Only what follows, in the direction of the listing. */
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
  /** To go on after; null where there is nothing more. */
  readonly next: DocumentPosition | null;
}

/** A document as it is by now; null: it is gone. */
export interface ChangedDocument {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly document: Document | null;
}

export interface ChangeBatch {
  /** Everything up to this version has been told with this batch. */
  readonly version: number;
  /** By version. Of several changes of one document the last is told. */
  readonly changes: readonly ChangedDocument[];
}

/** Implementations pass `documents.contract.ts`. */
export interface Documents {
  get(kind: string, key: string): Promise<Document | null>;
  list(query: DocumentQuery): Promise<DocumentPage>;
  /**
   * Makes all changes or none, and resolves with their version when they are on disk (fsync). Rejects with DocumentConflict when one of
   * them does not find what it expects. No two changes of one write may name the same document.
   */
  write(changes: readonly DocumentChange[]): Promise<number>;
  /** Of the last write; what is read afterwards is of this version or a later one. */
  version(): Promise<number>;
  /**
   * What was changed after a version, and from then on what is, in batches of a bounded size. Nothing is held for a reader that is slow: it
   * is told less often. Throws ChangesForgotten where deletions after that version are not known any more (then everything is to be
   * listed anew), and the signal's reason.
   */
  changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch>;
}

/** Somebody else was first: the document is not what the change expected. Nothing was written. */
export class DocumentConflict extends Error {
  readonly kind: string;
  readonly key: string;

  constructor(kind: string, key: string) {
    super(`the document ${kind} ${key} is of another version`);
    this.name = "DocumentConflict";
    this.kind = kind;
    this.key = key;
  }
}

/** Deletions after the version that was asked from are not known any more. */
export class ChangesForgotten extends Error {
  constructor(sinceVersion: number) {
    super(`the changes after version ${sinceVersion} are not all known any more`);
    this.name = "ChangesForgotten";
  }
}
