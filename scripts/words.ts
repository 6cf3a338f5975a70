import { readFileSync } from "node:fs";
import { join } from "node:path";
import { exportsOf, filesBelow, isDoor, isGenerated, lineAt, packages, programs, root } from "./source-tree.ts";

/**
 * `node scripts/words.ts` counts, for each package, comments that open like a riddle and exported names with home-made words;
 * `node scripts/words.ts --list <path>` lists them for the files whose path begins so. The exit status is 0 whatever it finds.
 */

/** The packages without such comments and names; `tidy.test.ts` rejects new ones in them. */
export const cleanPackages: readonly string[] = ["aws", "base", "galatea", "hosting", "runtimes", "server", "tools"];

/** Exported names in which a listed word is a term of the field: traffic of a deployment, parts of an upload, leaves of a tree. */
const namesOfTheField: ReadonlySet<string> = new Set(
  `TrafficRouting LinearLeaves linearLeaves assembleParts chooseParts invalidPart PartSlot JoinedParts partNumberMax PartHead
  CompletedPart ListPartsOptions StoredPart putPart copyPart listParts`
    .trim()
    .split(/\s+/),
);

const homeMadeWords: ReadonlySet<string> = new Set(
  `ask asks asked asker askers asking tell tells told telling door doors room rooms house place places seat seats life lives wanted
  leave leaves leaving retire retires retired retiring retirement retirements hurry hurries parting settled settles moves held hold
  holding turn turns traffic pace paces forecast awakening awake asleep sleeper sleepers patient patience begun trusted suspect
  suspects shy quiet owed book books twin twins piece pieces part parts sealed seal seals beyond beside behind mend mends mended
  answer answers answered answering lane lanes desk desks hand hands rehearse rehearsal contender contenders workshop workplace gone`
    .trim()
    .split(/\s+/),
);

const riddle = /^(?:Of|Who|Whose|Whoever|Whomever|Nobody|What|Whatever|The same|As|So|How|Whether|Where|That|Why)\b/;

export interface Comment {
  readonly line: number;
  readonly text: string;
}

/** Returns whether a comment begins with a clause or a fragment whose noun is missing. */
export function isRiddle(comment: string): boolean {
  return riddle.test(comment);
}

/** Returns the words of a name, in camel, snake or capital case, that the glossary has another term for. */
export function homeMadeWordsOf(name: string): string[] {
  if (namesOfTheField.has(name)) return [];
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
  // In `placeInstance` the verb is a term of the field.
  if (words[0] === "place" && words.length > 1) words.shift();
  return words.map((word) => word.toLowerCase()).filter((word) => homeMadeWords.has(word));
}

const blockOrLine = /^[ \t]*\/\*\*?([\s\S]*?)\*\/|^[ \t]*\/\/.*(?:\n[ \t]*\/\/.*)*|(?<=[;,{}()[\]]) \/\/ .*/gm;

/** Returns the comments of a TypeScript file; lines of `//` that follow each other are one comment. */
export function typescriptComments(text: string): Comment[] {
  return [...text.matchAll(blockOrLine)].map((match) =>
    comment(text, match, /^[ \t]*(?:\/\/|\/\*\*?|\*(?!\/))|\*\/$/gm),
  );
}

const pythonTokens =
  /[rbfuRBFU]{0,2}(?:"""[\s\S]*?"""|'''[\s\S]*?''')|[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|#.*(?:\n[ \t]*#.*)*/g;

/** Returns the comments and the docstrings of a Python file. */
export function pythonComments(text: string): Comment[] {
  return [...text.matchAll(pythonTokens)]
    .filter(({ 0: token, index }) => token.startsWith("#") || (/^r?"""/.test(token) && startsItsLine(text, index)))
    .map((match) => comment(text, match, /^[ \t]*#|^r?"""|"""$/gm));
}

/** Returns the lines at which a doc comment follows another, so that the first documents nothing. */
export function doubledComments(text: string): number[] {
  return [...text.matchAll(/\*\/\s*\n(?=[ \t]*\/\*\*)/g)].map(({ index }) => lineAt(text, index) + 1);
}

const startsItsLine = (text: string, index: number) =>
  /(?:^|\n)[ \t]*$/.test(text.slice(Math.max(0, index - 80), index));

function comment(text: string, match: RegExpExecArray, marks: RegExp): Comment {
  const [token] = match;
  return { line: lineAt(text, match.index), text: token.replaceAll(marks, "").replaceAll(/\s+/g, " ").trim() };
}

interface Words {
  readonly path: string;
  readonly lines: number;
  readonly commentLines: number;
  readonly comments: readonly Comment[];
  readonly doubled: readonly number[];
  readonly names: readonly { readonly name: string; readonly line: number }[];
}

/** Reads the words of the product's files, without tests and generated files. */
export function wordsOfProduct(): Words[] {
  const typescript = filesBelow(packages).filter((file) => file.isPublished && !isGenerated(file));
  const python = programs().filter((path) => /^packages\/.*(?<!_test)\.py$/.test(path));
  return [
    ...typescript.map((file) => ({
      path: file.name,
      lines: linesOf(file.text),
      commentLines: file.text.match(/^[ \t]*(?:\/\/|\/\*|\*)/gm)?.length ?? 0,
      comments: typescriptComments(file.text),
      doubled: doubledComments(file.text),
      names: isDoor(file) ? [] : exportsOf(file),
    })),
    ...python.map((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const comments = pythonComments(text);
      return {
        path,
        lines: linesOf(text),
        commentLines: text.match(/^[ \t]*(?:#|r?""")/gm)?.length ?? 0,
        comments,
        doubled: [],
        names: [...text.matchAll(/^(?:async def|def|class) ([a-zA-Z]\w*)/gm)].map((match) => ({
          name: match[1] as string,
          line: lineAt(text, match.index),
        })),
      };
    }),
  ];
}

/** Returns a line for each riddle, doubled comment and home-made name of a file. */
export function problemsOf({ path, comments, doubled, names }: Words): string[] {
  return [
    ...comments.filter(({ text }) => isRiddle(text)).map(({ line, text }) => `${path}:${line}: ${text}`),
    ...doubled.map((line) => `${path}:${line}: a doc comment follows another`),
    ...names.flatMap(({ name, line }) => homeMadeWordsOf(name).map((word) => `${path}:${line}: ${name}: ${word}`)),
  ];
}

const linesOf = (text: string) => text.trimEnd().split("\n").length;

function table(files: readonly Words[]): string {
  const total = (list: readonly Words[], of: (file: Words) => number) => list.reduce((sum, file) => sum + of(file), 0);
  const row = (title: string, list: readonly Words[]) => {
    const lines = total(list, (file) => file.lines);
    const share = (100 * total(list, (file) => file.commentLines)) / lines;
    return [
      title,
      lines,
      `${share.toFixed(1)} %`,
      total(list, (file) => file.comments.length),
      total(list, (file) => file.comments.filter(({ text }) => isRiddle(text)).length),
      total(list, (file) => file.doubled.length),
      total(list, (file) => file.names.filter(({ name }) => homeMadeWordsOf(name).length > 0).length),
    ];
  };
  const packageOf = (path: string) => path.split("/").slice(0, 2).join("/") + (path.endsWith(".py") ? " (Python)" : "");
  const titles = [...new Set(files.map(({ path }) => packageOf(path)))].toSorted();
  return [
    ["package", "lines", "comment lines", "comments", "riddles", "doubled", "home-made names"],
    ["---", "---:", "---:", "---:", "---:", "---:", "---:"],
    ...titles.map((title) =>
      row(
        title,
        files.filter(({ path }) => packageOf(path) === title),
      ),
    ),
    row("all", files),
  ]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

if (import.meta.main) {
  const [option, prefix = ""] = process.argv.slice(2);
  const files = wordsOfProduct();
  if (option === "--list") {
    const found = files.filter(({ path }) => path.startsWith(prefix)).flatMap(problemsOf);
    process.stdout.write(found.map((line) => `${line}\n`).join(""));
  } else {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    process.stdout.write(`${table(files)}\nREADME.md: ${linesOf(readme)} lines, ${readme.split(/\s+/).length} words\n`);
  }
}
