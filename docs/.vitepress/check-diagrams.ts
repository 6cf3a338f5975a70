import { readFileSync } from "node:fs";
import DOMPurify from "dompurify";
import mermaid from "mermaid";

/** Throws with the document and mermaid's message where a diagram has a syntax error: a browser would draw nothing there. */
export async function checkDiagrams(documents: readonly string[]): Promise<void> {
  // Sanitizing needs a browser's document; parsing does not.
  Object.assign(DOMPurify, { addHook: () => {}, sanitize: (text: string) => text });
  for (const path of documents)
    for (const [, source = ""] of readFileSync(path, "utf8").matchAll(/^```mermaid\n([\s\S]*?)^```/gm))
      await mermaid.parse(source).catch((error: unknown) => {
        throw new Error(`${path}: ${String(error)}`);
      });
}
