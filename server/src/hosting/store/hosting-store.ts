import type { Clock, Logger } from "../../base/index.ts";
import { DocumentConflict, type DocumentChange, type Documents } from "../../records/index.ts";
import { hostingKinds, type HostingKinds } from "./hosting-kinds.ts";
import { HostingView } from "./hosting-view.ts";

/** Somebody who is faster each time is somebody who gets on; more often than this it is a bug. */
const attemptsMax = 20;

/** Hosting's own records: read from the documents, written to them in transactions, and what of them is known without asking. */
export class HostingStore implements AsyncDisposable {
  readonly kinds: HostingKinds;
  readonly view: HostingView;
  readonly #documents: Documents;

  private constructor(documents: Documents, kinds: HostingKinds, view: HostingView) {
    this.#documents = documents;
    this.kinds = kinds;
    this.view = view;
  }

  static async open(
    documents: Documents,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  ): Promise<HostingStore> {
    const kinds = hostingKinds(documents, logger);
    return new HostingStore(documents, kinds, await HostingView.open({ documents, kinds, clock, logger }));
  }

  /** Resolves when it is on disk and in the view. Rejects with DocumentConflict where a record is not what a change expects. */
  async write(changes: readonly DocumentChange[]): Promise<void> {
    this.view.wrote(changes, await this.#documents.write(changes));
  }

  /** Makes an attempt again, from what it reads on, when another write was faster. */
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
