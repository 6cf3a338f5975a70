import { AwsError, ChangeNotifier } from "@galatea/base";
import type { DocumentChange, Documents } from "../records/index.ts";
import type { StateChange } from "../endpoints/index.ts";

/** Maximum number of stored changes; older ones are deleted. */
const changesMax = 10_000;
const kind = "endpoint-state-change";
const digits = 15;

/** A state change with its position in the log. */
export interface NumberedStateChange {
  /** Position in the log. Numbers ascend and may have gaps. */
  readonly number: number;
  readonly change: StateChange;
}

/**
 * A log of all endpoints' state changes. Each change is written in the same transaction as the endpoint's record, so that
 * both agree after a crash. The oldest changes are deleted.
 */
export class StateChangeLog {
  readonly #documents: Documents;
  /**
   * Numbers of changes whose writes are pending. Changes with higher numbers are not returned yet. Otherwise, a reader,
   * which continues after the highest number that it has read, would miss the pending change.
   */
  readonly #pendingNumbers = new Set<number>();
  readonly #written = new ChangeNotifier();
  #last: number;

  private constructor(documents: Documents, last: number) {
    this.#documents = documents;
    this.#last = last;
  }

  static async open(documents: Documents): Promise<StateChangeLog> {
    const query = { kind, order: null, isDescending: true, after: null, limit: 1 };
    const [newest] = (await documents.list(query)).documents;
    return new StateChangeLog(documents, newest === undefined ? 0 : Number(newest.key));
  }

  /**
   * Logs a state change: calls `write` with the document changes to include in its transaction. If `write` rejects, the
   * change is not logged and this call rejects with the same error.
   */
  async writeChange<Value>(
    change: StateChange,
    write: (more: readonly DocumentChange[]) => Promise<Value>,
  ): Promise<Value> {
    this.#last += 1;
    const number = this.#last;
    this.#pendingNumbers.add(number);
    try {
      return await write([
        { do: "put", kind, key: keyOf(number), body: JSON.stringify(change), expects: "any" },
        ...(number > changesMax
          ? [{ do: "delete", kind, key: keyOf(number - changesMax), expects: "any" } as const]
          : []),
      ]);
    } finally {
      this.#pendingNumbers.delete(number);
      this.#written.notify();
    }
  }

  /** Resolves at the next logged change. Call it before `changesAfter`; otherwise, a change in between is missed. */
  whenChanged(): Promise<void> {
    return this.#written.nextChange();
  }

  /** Returns the changes with numbers above `number`, oldest first. */
  async changesAfter(number: number, limit: number): Promise<readonly NumberedStateChange[]> {
    if (!Number.isSafeInteger(number) || number < 0 || String(number).length > digits) {
      throw new AwsError("ValidationException", "Parameter 'after' is invalid: use the cursor of an earlier response.");
    }
    const end = Math.min(this.#last + 1, ...this.#pendingNumbers);
    const key = keyOf(number);
    const page = await this.#documents.list({
      kind,
      order: null,
      isDescending: false,
      after: { value: key, key },
      limit,
    });
    return page.documents
      .map(({ key: found, body }) => ({ number: Number(found), change: JSON.parse(body) as StateChange }))
      .filter((each) => each.number < end);
  }
}

function keyOf(number: number): string {
  return String(number).padStart(digits, "0");
}
