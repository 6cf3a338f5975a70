/** A fenced block of a document that a reader types, saves as a file or compares with what a program prints. */
export interface Block {
  /** The line of the fence in the document, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** The reason why no test runs the block (`no-run: reason` after the language); null for a block that is run. */
  readonly notRun: string | null;
  /** The file in which the reader saves the block (`file=path` after the language); null for other blocks. */
  readonly file: string | null;
}

/** A block that is run, with its output in the document. */
export interface Step {
  readonly block: Block;
  /** The `text` blocks between this block and the next one that is run. */
  readonly printed: readonly Block[];
}

/** The languages whose blocks are run. */
export const runnableLanguages: readonly string[] = ["sh", "python", "ts", "js"];

const fence = /^([ \t]*)```(\S*)[ \t]*([^\n]*)\n([\s\S]*?)^[ \t]*```[ \t]*$/gm;

/** Returns the fenced blocks of a Markdown text in order. A block in a list has its indentation removed. */
export function blocksOf(markdown: string): readonly Block[] {
  return [...markdown.matchAll(fence)].map((match) => {
    const [, indentation = "", language = "", info = "", text = ""] = match;
    return {
      line: markdown.slice(0, match.index).split("\n").length,
      language,
      text: text.replaceAll(new RegExp(`^${indentation}`, "gm"), ""),
      notRun: /^no-run: (.+)$/.exec(info)?.[1] ?? null,
      file: /^file=(\S+)$/.exec(info)?.[1] ?? null,
    };
  });
}

/** Returns the steps of a document: the blocks to save or to run, each with its expected output. */
export function stepsOf(blocks: readonly Block[]): readonly Step[] {
  const steps: { readonly block: Block; readonly printed: Block[] }[] = [];
  let isRun = false;
  for (const block of blocks) {
    if (block.file !== null) steps.push({ block, printed: [] });
    else if (runnableLanguages.includes(block.language)) {
      isRun = block.notRun === null;
      if (isRun) steps.push({ block, printed: [] });
    } else if (block.language === "text" && isRun) steps.at(-1)?.printed.push(block);
  }
  return steps;
}
