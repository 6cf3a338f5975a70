import { readFile } from "node:fs/promises";

/** The golden sentences behind these are an empty one and one of 256 tokens: good for a test, not for a story. */
const sentenceCount = 7;

/** A sentence, and what the published model makes of it by another implementation (examples/minilm/golden.py). */
export interface GoldenSentence {
  readonly text: string;
  readonly embedding: readonly number[];
}

export async function goldenSentences(): Promise<readonly GoldenSentence[]> {
  const file = new URL("../minilm/golden.json", import.meta.url);
  const { sentences } = JSON.parse(await readFile(file, "utf8")) as { readonly sentences: readonly GoldenSentence[] };
  return sentences.slice(0, sentenceCount);
}
