type Shell = Readonly<Record<string, string | undefined>>;

/** One variable that a shell is to set, or, with null, to unset. */
export type ShellChange = readonly [name: string, value: string | null];

/** The variable in which a shell keeps what it had before: name to value, null where there was none. */
export const beforeName = "GALATEA_ENV_BEFORE";

/**
 * What a shell has to do to have these variables. What it had before stays known to it, so that it can be had back; what an
 * earlier call had set and this one does not is given back now.
 */
export function shellChanges(variables: Readonly<Record<string, string | null>>, shell: Shell): readonly ShellChange[] {
  const before = valuesBefore(shell);
  for (const name of Object.keys(variables)) {
    if (!before.has(name)) before.set(name, shell[name] ?? null);
  }
  const given = [...before].filter(([name]) => !Object.hasOwn(variables, name));
  for (const [name] of given) before.delete(name);
  const kept = Buffer.from(JSON.stringify(Object.fromEntries(before))).toString("base64");
  return [...Object.entries(variables), ...given, [beforeName, kept]];
}

/** What a shell has to do to have what it had before. */
export function shellRestored(shell: Shell): readonly ShellChange[] {
  const before = valuesBefore(shell);
  return shell[beforeName] === undefined ? [] : [...before, [beforeName, null]];
}

/** The shell as it was before it had any of these variables. */
export function shellBefore(shell: Shell): Shell {
  return {
    ...shell,
    ...Object.fromEntries([...valuesBefore(shell)].map(([name, value]) => [name, value ?? undefined])),
  };
}

function valuesBefore(shell: Shell): Map<string, string | null> {
  const text = Buffer.from(shell[beforeName] ?? "", "base64").toString("utf8");
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
