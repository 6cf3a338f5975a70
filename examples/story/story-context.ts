import type { Credentials } from "./hosting.ts";
import type { Progress } from "./progress.ts";

/** The prerequisites of every story: a running platform, and MiniLM's ensemble. */
export interface StoryContext {
  readonly root: string;
  /** The directory of the story's files. */
  readonly data: string;
  readonly platform: { readonly url: string; readonly data: string; readonly credentials: Credentials };
  /** An interpreter of the product's own environment. */
  readonly python: string;
  /** The model repository of sentence embeddings. */
  readonly sentences: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** A call that the user can make from another terminal after the story. */
export interface TryIt {
  readonly endpoint: string;
  readonly archive: string;
  readonly sentence: string;
}

/** Runs a story. Throws for a wrong response. */
export type Story = (context: StoryContext) => Promise<TryIt>;
