/** Returns the fields of a row including quotes, so that unchanged fields are printed as they were. */
export function splitCsvRow(row: string): string[] {
  const fields: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < row.length; at++) {
    const char = row.charCodeAt(at);
    if (char === 0x22) isQuoted = !isQuoted;
    if (char !== 0x2c || isQuoted) continue;
    fields.push(row.slice(from, at));
    from = at + 1;
  }
  fields.push(row.slice(from));
  return fields;
}
