import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { checkDiagrams } from "./check-diagrams.ts";

const root = join(import.meta.dirname, "../..");
const textOf = (path: string) => readFileSync(join(root, path), "utf8");

/** Every document of the repository, by its path from there. */
const documents = globSync("**/*.md", { cwd: root, exclude: (path) => /(^|\/)(node_modules|\.\w+|dist)$/.test(path) });

/** The paths of the pages that are not where their documents are: those of `docs/` are at the root. */
const rewrites = Object.fromEntries(
  documents.flatMap((path) =>
    path === "README.md" ? [[path, "index.md"]] : path.startsWith("docs/") ? [[path, path.slice("docs/".length)]] : [],
  ),
);
const pageOf = (path: string) => `/${(rewrites[path] ?? path).replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`;

/** The folders of `docs/`, in the order of the sidebar. */
const folders = ["tutorials", "guides", "migrating", "reference", "operating", "architecture"];

const readme = textOf("README.md");
/** Returns the documents of a folder: those of README.md's index, in its order, then the others by name. */
function below(folder: string): readonly string[] {
  const position = (path: string) => (readme.includes(path) ? readme.lastIndexOf(path) : readme.length);
  const found = documents.filter((path) => dirname(path) === folder).toSorted();
  return found.toSorted((one, other) => position(one) - position(other));
}
const titleOf = (path: string) => /^# (.*)$/m.exec(textOf(path))?.[1]?.replaceAll("`", "") ?? path;
const item = (path: string) => ({ text: titleOf(path), link: pageOf(path) });
const section = (text: string, paths: readonly string[]) => ({ text, items: paths.map(item) });

const sidebar = [
  ...folders.map((name) => section(`${name[0]?.toUpperCase()}${name.slice(1)}`, below(`docs/${name}`))),
  section("Project", [...below("docs"), ...below(".").filter((path) => path !== "README.md")]),
  { ...section("Packages", globSync("packages/*/README.md", { cwd: root }).toSorted()), collapsed: true },
].filter(({ items }) => items.length > 0);

/** A token of markdown-it, as far as the rules below know it. */
interface Token {
  type: string;
  tag: string;
  info: string;
  content: string;
  attrs: [string, string][] | null;
  children: Token[] | null;
}

/** The part of a markdown-it parser that the rules below use. */
interface Markdown {
  readonly core: { readonly ruler: { push(name: string, rule: (state: State) => void): void } };
  readonly renderer: { readonly rules: Record<string, (tokens: Token[], index: number, ...rest: unknown[]) => string> };
}

interface State {
  readonly tokens: Token[];
  readonly env: { readonly realPath?: string; readonly path?: string };
}

/** Returns the page that a link of a document leads to; null for a file that is no page, and the link itself when nothing is there. */
function targetOf(document: string, link: string): string | null {
  const [, path = "", anchor = ""] = /^([^#]*)(#.*)?$/.exec(link) ?? [];
  const target = join(dirname(document), path);
  const page = [target, join(target, "README.md"), below(target)[0] ?? ""].find((each) => documents.includes(each));
  if (page !== undefined) return `${pageOf(page)}${anchor}`;
  return existsSync(join(root, target)) ? null : link;
}

/** Returns the anchor of a heading as code hosts make it: links between documents work on both. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** Leads links between documents to their pages. A link to another file of the repository becomes text: the site has no such page. */
function resolveLinks(state: State): void {
  const document = (state.env.realPath ?? state.env.path ?? "").slice(root.length + 1);
  for (const { children } of state.tokens) {
    let isText = false;
    for (const token of children ?? []) {
      const link = token.attrs?.find(([name]) => name === "href");
      if (token.type === "link_open" && link !== undefined) {
        const target = /^([a-z]+:|#)/.test(link[1]) ? link[1] : targetOf(document, link[1]);
        isText = target === null;
        if (target !== null) link[1] = target;
      }
      if (isText && token.type.startsWith("link_")) Object.assign(token, { type: "text", content: "" });
    }
  }
}

/** Renders `mermaid` blocks as diagrams, in the reader's browser. */
function drawDiagrams({ rules }: Markdown["renderer"]): void {
  const { fence } = rules;
  rules["fence"] = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info === "mermaid") return `<MermaidDiagram source="${encodeURIComponent(token.content)}" />`;
    return fence?.(tokens, index, ...rest) ?? "";
  };
}

/** Lets paths break after each slash, so that tables with paths fit the column of text. */
function breakPaths({ rules }: Markdown["renderer"]): void {
  const { code_inline: inline } = rules;
  rules["code_inline"] = (...token) =>
    inline?.(...token).replace(/(?<=>)[^<]*(?=<\/code>)/, (text) => text.replaceAll("/", "/<wbr>")) ?? "";
}

export default {
  title: "Galatea",
  description: "An open, self-hosted model server and hosting platform",
  srcDir: "..",
  rewrites,
  buildEnd: () => checkDiagrams(documents.map((path) => join(root, path))),
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  markdown: {
    anchor: { slugify: anchorOf },
    config(markdown: Markdown) {
      markdown.core.ruler.push("repository-links", resolveLinks);
      drawDiagrams(markdown.renderer);
      breakPaths(markdown.renderer);
    },
  },
  themeConfig: { sidebar, outline: [2, 3], search: { provider: "local" } },
};
