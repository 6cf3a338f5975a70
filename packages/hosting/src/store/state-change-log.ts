import { AwsError, ChangeNotifier } from "@galatea/base";
import type { DocumentChange, Documents } from "../records/index.ts";
import type { StateChange } from "../endpoints/index.ts";

/** Number of changes that are kept. */
const changesMax = 10_000;
const kind = "endpoint-state-change";
const digits = 15;

export interface NumberedStateChange {
  /** Ascends in the order of the log, with gaps. */
  readonly number: number;
  readonly change: StateChange;
}

/**
 * The state changes of all endpoints, in one order. Each is written in the transaction of its record, so that none is
 * lost or invented by a crash. The oldest are deleted.
 */
export class StateChangeLog {
  readonly #documents: Documents;
  /**
   * Numbers whose writes have not ended. Later changes wait for them, because a reader continues after the last number
   * that it got.
   */
  readonly #underWay = new Set<number>();
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
   * Runs `write`, which writes the given changes in its transaction. Rejects as it does, and then no change is logged.
   */
  async writing<Value>(
    change: StateChange,
    write: (more: readonly DocumentChange[]) => Promise<Value>,
  ): Promise<Value> {
    this.#last += 1;
    const number = this.#last;
    this.#underWay.add(number);
    try {
      return await write([
        { do: "put", kind, key: keyOf(number), body: JSON.stringify(change), expects: "any" },
        ...(number > changesMax
          ? [{ do: "delete", kind, key: keyOf(number - changesMax), expects: "any" } as const]
          : []),
      ]);
    } finally {
      this.#underWay.delete(number);
      this.#written.notify();
    }
  }

  /** Resolves with the next change; call it before `after`. */
  changed(): Promise<void> {
    return this.#written.nextChange();
  }

  /** Returns the changes after a number, oldest first. */
  async after(number: number, limit: number): Promise<readonly NumberedStateChange[]> {
    if (!Number.isSafeInteger(number) || number < 0 || String(number).length > digits) {
      throw new AwsError("ValidationException", "after is not a cursor from an earlier response.");
    }
    const end = Math.min(this.#last + 1, ...this.#underWay);
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
