import type { Clock, Logger } from "@galatea/base";
import { DocumentConflict, type DocumentChange, type Documents } from "../records/index.ts";
import { hostingKinds, type HostingKinds } from "./hosting-kinds.ts";
import type { StateChange } from "../endpoints/index.ts";
import { HostingView } from "./hosting-view.ts";
import { StateChangeLog } from "./state-change-log.ts";

/**
 * Maximum number of attempts of a write. Each conflict means that another writer has succeeded, so that more conflicts
 * than this indicate a bug.
 */
const attemptsMax = 20;

/** Effects that take place when a write has succeeded. */
export interface WriteEffects {
  /** The state change of an endpoint, which is logged and passed to callers that wait for state changes. */
  readonly stateChange?: StateChange | null;
  /** Called after the write, before callers that wait for state changes are notified. */
  readonly recorded?: () => void;
}

/** The store of hosting's records. It reads and writes documents in transactions, and keeps a summary of all records in memory. */
export class HostingStore implements AsyncDisposable {
  readonly kinds: HostingKinds;
  readonly view: HostingView;
  readonly stateChanges: StateChangeLog;
  readonly #documents: Documents;

  private constructor(
    documents: Documents,
    { kinds, view, stateChanges }: Pick<HostingStore, "kinds" | "view" | "stateChanges">,
  ) {
    this.#documents = documents;
    this.kinds = kinds;
    this.view = view;
    this.stateChanges = stateChanges;
  }

  static async open(
    documents: Documents,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  ): Promise<HostingStore> {
    const kinds = hostingKinds(documents, logger);
    const stateChanges = await StateChangeLog.open(documents);
    const view = await HostingView.open({ documents, kinds, clock, logger });
    return new HostingStore(documents, { kinds, view, stateChanges });
  }

  /**
   * Writes changes in one transaction. Resolves with the version when it is on disk and in the view. Rejects with
   * DocumentConflict if a record differs from what a change expects.
   */
  async write(
    changes: readonly DocumentChange[],
    { stateChange = null, recorded = () => {} }: WriteEffects = {},
  ): Promise<number> {
    const write = async (all: readonly DocumentChange[]) => {
      const version = await this.#documents.write(all);
      recorded();
      this.view.applyWrite(all, version);
      return version;
    };
    if (stateChange === null) return await write(changes);
    return await this.stateChanges.writeChange(stateChange, (more) => write([...changes, ...more]));
  }

  /** Calls `attempt` until it causes no write conflict. Each call must read the records again. */
  async attempt<Value>(attempt: () => Promise<Value>): Promise<Value> {
    for (let count = 1; ; count++) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof DocumentConflict) || count >= attemptsMax) throw error;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.view[Symbol.asyncDispose]();
  }
}
