import type { DocumentChange } from "../documents.ts";
import { DocumentMemory } from "../memory-documents.ts";

/**
 * In-memory documents that keep a copy of their state after each write. Each copy is the state after a crash at that
 * point.
 */
export class RememberedMemory extends DocumentMemory {
  readonly runs: DocumentMemory[] = [];
  readonly #kinds: ReadonlySet<string> | null;
  readonly #written: (run: DocumentMemory) => void;

  /** `kinds`: copies are kept after writes that change documents of these kinds; null: after all writes. */
  constructor(kinds: readonly string[] | null, written: (run: DocumentMemory) => void = () => {}) {
    super();
    this.#kinds = kinds === null ? null : new Set(kinds);
    this.#written = written;
  }

  override write(changes: readonly DocumentChange[]): number {
    const version = super.write(changes);
    if (changes.some((change) => change.do !== "check" && this.#kinds?.has(change.kind) !== false)) {
      const run = cloneDocumentMemory(this);
      this.runs.push(run);
      this.#written(run);
    }
    return version;
  }
}

export function cloneDocumentMemory({ held, gone, version, forgotten }: DocumentMemory): DocumentMemory {
  const copy = new DocumentMemory();
  for (const [id, document] of held) copy.held.set(id, document);
  for (const [id, change] of gone) copy.gone.set(id, change);
  copy.version = version;
  copy.forgotten = forgotten;
  return copy;
}
