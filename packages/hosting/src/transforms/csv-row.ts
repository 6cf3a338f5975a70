/** The fields of a row as they are written, with their quotes, so that what is not picked apart stays as it is. */
export function fieldsOf(row: string): string[] {
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
