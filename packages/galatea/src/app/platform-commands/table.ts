// Control characters are commands to a terminal, and models may print any text.
// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Replaces control characters in texts of models and callers, which would otherwise control the terminal. */
export function printableText(text: string): string {
  return text.replaceAll(controls, "\ufffd");
}

/**
 * Returns rows as aligned columns below the column names. Omits a column without cells. Does not pad the last column.
 */
export function tableText<Row extends object>(rows: readonly Row[], columns: readonly (keyof Row & string)[]): string {
  const shown = columns.filter((column) => rows.some((row) => row[column] !== undefined));
  const cells = [
    shown.map((column) => column.toUpperCase()),
    ...rows.map((row) => shown.map((column) => printableText(String(row[column] ?? "")).replaceAll(/[\t\n]/g, " "))),
  ];
  const widths = shown.map((_, at) => cells.reduce((most, row) => Math.max(most, row[at]!.length), 0));
  return cells
    .map((row) => row.map((cell, at) => cell.padEnd(at === row.length - 1 ? 0 : widths[at]!)).join("  "))
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}
