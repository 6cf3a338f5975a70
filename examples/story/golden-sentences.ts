import { readFile } from "node:fs/promises";

/** The further golden sentences are an empty one and one of 256 tokens, which are for tests. */
const sentenceCount = 7;

/** A sentence, and its embedding by another implementation of the published model (examples/minilm/golden.py). */
export interface GoldenSentence {
  readonly text: string;
  readonly embedding: readonly number[];
}

export async function goldenSentences(): Promise<readonly GoldenSentence[]> {
  const file = new URL("../minilm/golden.json", import.meta.url);
  const { sentences } = JSON.parse(await readFile(file, "utf8")) as { readonly sentences: readonly GoldenSentence[] };
  return sentences.slice(0, sentenceCount);
}
