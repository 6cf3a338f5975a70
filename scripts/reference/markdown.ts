/** Returns text in which everything that Markdown or HTML would interpret is escaped, except for code spans. */
export function escaped(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((segment, index) =>
      index % 2 === 1 ? segment : segment.replaceAll("<", "&lt;").replaceAll(/([*_])/g, "\\$1"),
    )
    .join("");
}

/** Returns a Markdown table of texts; a bar in a cell is escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => escaped(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

export const codeSpan = (text: string): string => (text === "" ? "" : `\`${text}\``);

/** Returns a page: its title, its description, the name of its generator, and its sections. */
export function referencePage(title: string, about: string, sections: readonly string[]): string {
  return `${[`# ${title}`, about, ...sections].join("\n\n")}\n`;
}
