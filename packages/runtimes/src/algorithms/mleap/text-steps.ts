import { InferenceError } from "@galatea/base";
import { invalidBundle } from "./bundle-files.ts";
import { javaPattern, javaSplit } from "./java-pattern.ts";
import { columnStep, type LeapStep, type StepFactory, type StepSource } from "./leap-step.ts";
import { asText, asTexts, textsValue, vectorValue } from "./leap-values.ts";
import { murmur3 } from "./murmur3.ts";

function splittingStep(source: StepSource, apply: (text: string) => string[]): LeapStep {
  return columnStep(source, (value) => textsValue(apply(asText(value))));
}

function listStep(source: StepSource, apply: (texts: readonly string[]) => string[]): LeapStep {
  return columnStep(source, (value) => textsValue(apply(asTexts(value))));
}

export const tokenizer: StepFactory = (source) => {
  const pattern = javaPattern("\\s");
  return splittingStep(source, (text) => javaSplit(text.toLowerCase(), pattern));
};

export const regexTokenizer: StepFactory = (source) => {
  const { attributes } = source;
  const pattern = javaPattern(attributes.text("regex"));
  const isGap = attributes.boolean("match_gaps");
  const lengthMin = attributes.integer("token_min_length");
  const isLower = attributes.boolean("lowercase_text");
  return splittingStep(source, (raw) => {
    const text = isLower ? raw.toLowerCase() : raw;
    const tokens = isGap ? javaSplit(text, pattern) : Array.from(text.matchAll(pattern), ([token]) => token);
    return tokens.filter((token) => token.length >= lengthMin);
  });
};

export const stopWordsRemover: StepFactory = (source) => {
  const { attributes } = source;
  const isCased = attributes.boolean("case_sensitive");
  const form = (word: string): string => (isCased ? word : word.toLowerCase());
  const stopWords = new Set(attributes.texts("stop_words").map(form));
  return listStep(source, (words) => words.filter((word) => !stopWords.has(form(word))));
};

export const ngram: StepFactory = (source) => {
  const count = source.attributes.integer("n");
  if (count < 1) throw invalidBundle(`has n-grams of ${count} words in '${source.folder.name}'`);
  return listStep(source, (words) =>
    Array.from({ length: Math.max(0, words.length - count + 1) }, (_, at) => words.slice(at, at + count).join(" ")),
  );
};

/** Maximum number of features that words are hashed to; Spark's default is 2^18. */
const featuresMax = 2 ** 22;

export const hashingTermFrequency: StepFactory = (source) => {
  const { attributes } = source;
  const size = attributes.integer("num_features");
  if (size < 1 || size > featuresMax) {
    throw new InferenceError("UNSUPPORTED", `'${source.folder.name}' of the bundle hashes to ${size} features`);
  }
  const isBinary = attributes.boolean("binary", false);
  const version = attributes.integer("hashUnsafeBytesVersion", 1) === 1 ? 1 : 2;
  const encoder = new TextEncoder();
  return columnStep(source, (value, row) => {
    row.take(size);
    const counts = new Float64Array(size);
    for (const term of asTexts(value)) {
      const rest = murmur3(encoder.encode(term), version) % size;
      const at = rest < 0 ? rest + size : rest;
      counts[at] = isBinary ? 1 : (counts[at] as number) + 1;
    }
    return vectorValue(counts);
  });
};

export const countVectorizer: StepFactory = (source) => {
  const { attributes } = source;
  const words = attributes.texts("vocabulary");
  const indices = new Map(words.map((word, at) => [word, at]));
  const isBinary = attributes.boolean("binary");
  const minimum = attributes.double("min_tf");
  return columnStep(source, (value, row) => {
    row.take(indices.size);
    const terms = asTexts(value);
    const counts = new Float64Array(indices.size);
    for (const term of terms) {
      const at = indices.get(term);
      if (at !== undefined) counts[at] = (counts[at] as number) + 1;
    }
    const least = minimum >= 1 ? minimum : terms.length * minimum;
    return vectorValue(counts.map((count) => (count === 0 || count < least ? 0 : isBinary ? 1 : count)));
  });
};
