import { AwsError, Gate } from "@galatea/base";
import type { DocumentChange, Documents } from "../records/index.ts";
import type { StateChange } from "../endpoints/index.ts";

/** The last so many are kept. */
const changesMax = 10_000;
const kind = "endpoint-state-change";
const digits = 15;

export interface NumberedStateChange {
  /** Ascends in the order of the log, with gaps. */
  readonly number: number;
  readonly change: StateChange;
}

/**
 * The state changes of all endpoints, in one order, each written in the same transaction as the record that it is of: so none is told that
 * was not made, and none is lost by a platform that is killed. The oldest go.
 */
export class StateChangeLog {
  readonly #documents: Documents;
  /** Numbers whose writes have not ended: what comes behind them is not told before, because a reader asks on from the last that it knows. */
  readonly #underWay = new Set<number>();
  readonly #written = new Gate();
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

  /** `write` makes the transaction of the changes that it is given. Rejects as it does; then nothing is told. */
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
      this.#written.open();
    }
  }

  /** To be asked for before `after` is called. */
  changed(): Promise<void> {
    return this.#written.opened();
  }

  /** Those behind a number, the oldest first. */
  async after(number: number, limit: number): Promise<readonly NumberedStateChange[]> {
    if (!Number.isSafeInteger(number) || number < 0 || String(number).length > digits) {
      throw new AwsError("ValidationException", "after is not a cursor that an earlier answer gave.");
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
