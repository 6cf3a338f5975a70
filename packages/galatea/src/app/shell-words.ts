/** Quotes text as one word of a shell command, if needed. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns the command that starts this program again from the same shell. */
export function programWords(env: Readonly<Record<string, string | undefined>>): string {
  return env["npm_command"] === "exec" ? "npx galatea" : "galatea";
}
