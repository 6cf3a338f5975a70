import type { RunningServer } from "../../conformance/environments/index.ts";

/** A server that is measured with a kind of models: how it is started, given models and asked. */
export interface ComparedServer {
  readonly name: string;
  /** Starts the server without models; resolves when it accepts calls. */
  readonly start: () => Promise<RunningServer>;
  /** Resolves when the model can be asked. */
  readonly load: (server: RunningServer, model: string) => Promise<void>;
  readonly path: (model: string) => string;
  readonly body: Uint8Array;
  readonly contentType: string;
}
