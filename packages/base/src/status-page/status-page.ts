import { createHash } from "node:crypto";

export interface StatusTable {
  readonly heading: string;
  readonly columns: readonly string[];
  /** The rows; at most `statusRowsMax` are shown. */
  readonly rows: readonly (readonly string[])[];
  /** The number of all rows, including rows that are not shown. */
  readonly rowCount: number;
  /** The text that is shown if there are no rows. */
  readonly emptyText: string;
}

export interface StatusPageContent {
  readonly title: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly table: StatusTable | null;
  readonly links: readonly { readonly href: string; readonly text: string }[];
}

export const statusRowsMax = 500;

/** Maximum length of a cell. Longer texts of models and callers are truncated. */
const cellCharsMax = 2000;

const style =
  ":root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:70em;margin:2em auto;padding:0 1em}" +
  "table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;white-space:nowrap}" +
  "td:last-child{white-space:normal;overflow-wrap:anywhere}";

/**
 * Headers of the page. The page contains no script and loads nothing. The content security policy forbids both, in case
 * a model's name contains markup.
 */
export const statusPageHeaders = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy":
    `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
} as const;

/** Returns whether the Accept header lists HTML explicitly. Browsers do this, API clients do not. */
export function acceptsHtml(accept: string | undefined): boolean {
  return accept?.split(",").some((each) => /^\s*text\/html\s*(?:;|$)/i.test(each)) ?? false;
}

export function statusPage({ title, facts, table, links }: StatusPageContent): string {
  const factRows = facts.map(([name, value]) => `<tr><th>${escaped(name)}<td>${escaped(value)}`);
  const linkRows = links.map(({ href, text }) => `<li><a href="${escaped(href)}">${escaped(text)}</a>`);
  return [
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title><style>${style}</style>`,
    `<h1>${escaped(title)}</h1>`,
    `<table>${factRows.join("\n")}</table>`,
    ...(table === null ? [] : tableLines(table)),
    `<h2>Read on</h2><ul>${linkRows.join("\n")}</ul>`,
    "",
  ].join("\n");
}

function tableLines({ heading, columns, rows, rowCount, emptyText: empty }: StatusTable): readonly string[] {
  const shown = rows.slice(0, statusRowsMax);
  const cells = (tag: string, texts: readonly string[]) => texts.map((text) => `<${tag}>${escaped(text)}`).join("");
  if (shown.length === 0) return [`<h2>${escaped(heading)}</h2>`, `<p>${escaped(empty)}</p>`];
  const left = rowCount - shown.length;
  return [
    `<h2>${escaped(heading)}</h2>`,
    `<table><tr>${cells("th", columns)}`,
    ...shown.map((row) => `<tr>${cells("td", row)}`),
    "</table>",
    ...(left > 0 ? [`<p>Showing the first ${shown.length} of ${rowCount} rows.</p>`] : []),
  ];
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  const complete = text.length > cellCharsMax ? `${text.slice(0, cellCharsMax)}…` : text;
  return complete.replaceAll(/[&<>"']/g, (character) => entities[character]!);
}
