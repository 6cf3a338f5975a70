type Shell = Readonly<Record<string, string | undefined>>;

/** A variable that a shell sets or, with null, unsets. */
export type ShellChange = readonly [name: string, value: string | null];

/**
 * Name of the variable with the shell's previous values as a JSON object. A value is null if the variable was unset.
 */
export const previousValuesVariable = "GALATEA_ENV_BEFORE";

/**
 * Returns the changes that set these variables in a shell. Stores the previous values for `changesToRestoreShell`.
 * Restores each variable that an earlier call has set and this call does not set.
 */
export function shellChanges(variables: Readonly<Record<string, string | null>>, shell: Shell): readonly ShellChange[] {
  const before = valuesBefore(shell);
  for (const name of Object.keys(variables)) {
    if (!before.has(name)) before.set(name, shell[name] ?? null);
  }
  const input = [...before].filter(([name]) => !Object.hasOwn(variables, name));
  for (const [name] of input) before.delete(name);
  const kept = Buffer.from(JSON.stringify(Object.fromEntries(before))).toString("base64");
  return [...Object.entries(variables), ...input, [previousValuesVariable, kept]];
}

/** Returns the changes that restore a shell's previous values. */
export function changesToRestoreShell(shell: Shell): readonly ShellChange[] {
  const before = valuesBefore(shell);
  return shell[previousValuesVariable] === undefined ? [] : [...before, [previousValuesVariable, null]];
}

/** Returns the shell's environment without the changes of earlier calls. */
export function previousEnvironment(shell: Shell): Shell {
  return {
    ...shell,
    ...Object.fromEntries([...valuesBefore(shell)].map(([name, value]) => [name, value ?? undefined])),
  };
}

function valuesBefore(shell: Shell): Map<string, string | null> {
  const text = Buffer.from(shell[previousValuesVariable] ?? "", "base64").toString("utf8");
  let found: unknown;
  try {
    found = JSON.parse(text === "" ? "{}" : text);
  } catch {
    return new Map();
  }
  const pairs = typeof found === "object" && found !== null ? Object.entries(found) : [];
  return new Map(
    pairs.filter(
      (pair): pair is [string, string | null] =>
        /^[A-Za-z_]\w*$/.test(pair[0]) && (pair[1] === null || typeof pair[1] === "string"),
    ),
  );
}
