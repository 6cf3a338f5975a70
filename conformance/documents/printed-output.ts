/**
 * The parts of an output that differ between two runs, each as a pattern in the document and a pattern in the output.
 */
const variables: readonly (readonly [inDocument: RegExp, printed: string])[] = [
  [/…|\.\.\./, ".*"],
  // The head of a line of Triton's log: severity, date, time, process.
  [/[IWEV]\d{4} \d\d:\d\d:\d\d\.\d+ \d+/, String.raw`[IWEV]\d{4} \d\d:\d\d:\d\d\.\d+ \d+`],
  [
    /\d{4}-\d\d-\d\d[-T ]\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?/,
    String.raw`\d{4}-\d\d-\d\d[-T ]\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?`,
  ],
  [/\d\d:\d\d:\d\d(?:\.\d+)?/, String.raw`\d\d:\d\d:\d\d(?:\.\d+)?`],
  [/\d[\d.,]* (?:ms|s|min)\b/, String.raw`\d[\d.,]* (?:ms|s|min)\b`],
  [/\d[\d.,]* [KMG]i?B\b/, String.raw`\d[\d.,]* [KMG]?i?B\b`],
  [/(?:\/root|\/home\/\w+)(?=\/|\s|$)/, String.raw`~`],
];
const variable = new RegExp(variables.map(([inDocument]) => `(${inDocument.source})`).join("|"), "g");

/** Returns the pattern of the output lines that match a line of a document. Several blanks count as one. */
function patternOf(line: string): RegExp {
  let [source, end] = ["", 0];
  for (const match of line.matchAll(variable)) {
    source += RegExp.escape(line.slice(end, match.index));
    source += variables[match.slice(1).findIndex((each) => each !== undefined)]?.[1] ?? "";
    end = match.index + match[0].length;
  }
  return new RegExp(`^${source}${RegExp.escape(line.slice(end))}$`);
}

const linesOf = (text: string) => text.split("\n").flatMap((line) => line.trim().replaceAll(/\s+/g, " ") || []);

/**
 * Returns the first line of a document's `text` block that the output lacks after the lines before it; null if the
 * output has all of them. The output may have other lines between. Paths below `home` match the reader's home
 * directory.
 */
export function missingLine(shown: string, output: string, home: string): string | null {
  const printed = linesOf(output.replaceAll(home, "~"));
  let next = 0;
  for (const line of linesOf(shown)) {
    const pattern = patternOf(line);
    const found = printed.findIndex((each, index) => index >= next && pattern.test(each));
    if (found === -1) return line;
    next = found + 1;
  }
  return null;
}
