import type { Clock, Logger } from "@galatea/base";
import { DocumentConflict, type DocumentChange, type Documents } from "../records/index.ts";
import { hostingKinds, type HostingKinds } from "./hosting-kinds.ts";
import type { StateChange } from "../endpoints/index.ts";
import { HostingView } from "./hosting-view.ts";
import { StateChangeLog } from "./state-change-log.ts";

/**
 * Maximum number of attempts: each conflict means that another writer succeeded, and more conflicts than this are a
 * bug.
 */
const attemptsMax = 20;

/** The effects of a successful write. */
export interface WriteConsequences {
  /** Passed to the followers of endpoints. */
  readonly stateChange?: StateChange | null;
  /** Called before any follower is notified. */
  readonly recorded?: () => void;
}

/** Hosting's own records: reads documents, writes them in transactions, and keeps a view of them in memory. */
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
    { stateChange = null, recorded = () => {} }: WriteConsequences = {},
  ): Promise<number> {
    const write = async (all: readonly DocumentChange[]) => {
      const version = await this.#documents.write(all);
      recorded();
      this.view.wrote(all, version);
      return version;
    };
    if (stateChange === null) return await write(changes);
    return await this.stateChanges.writing(stateChange, (more) => write([...changes, ...more]));
  }

  /** Repeats an attempt, including its reads, after each conflict with another write. */
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
