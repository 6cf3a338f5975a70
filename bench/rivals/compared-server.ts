import type { RunningServer } from "../../conformance/environments/index.ts";

/** A server that is measured with a kind of model: its start, the registration of models and the calls. */
export interface ComparedServer {
  readonly name: string;
  /** Starts the server without models; resolves when it accepts calls. */
  readonly start: () => Promise<RunningServer>;
  /** Resolves when the model is ready. */
  readonly load: (server: RunningServer, model: string) => Promise<void>;
  readonly path: (model: string) => string;
  readonly body: Uint8Array;
  readonly contentType: string;
}
