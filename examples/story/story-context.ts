import type { Credentials } from "./hosting.ts";
import type { Progress } from "./progress.ts";

/** What every story stands on: a platform that is up, and MiniLM's ensemble to host. */
export interface StoryContext {
  readonly root: string;
  /** Where the story keeps what it makes. */
  readonly data: string;
  readonly platform: { readonly url: string; readonly data: string; readonly credentials: Credentials };
  /** An interpreter of the product's own environment. */
  readonly python: string;
  /** The model repository of sentence embeddings. */
  readonly sentences: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** A call that another terminal can make when the story is told. */
export interface TryIt {
  readonly endpoint: string;
  readonly archive: string;
  readonly sentence: string;
}

/** Tells a story; throws where an answer is wrong. */
export type Story = (context: StoryContext) => Promise<TryIt>;
