/** A media type with its parameters. The type and the parameter names are in lower case. */
export interface MediaType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

export function parseMediaType(text: string): MediaType {
  const [type = "", ...rest] = text.split(";");
  const parameters = new Map<string, string>();
  for (const parameter of rest) {
    const at = parameter.indexOf("=");
    if (at === -1) continue;
    const value = parameter.slice(at + 1).trim();
    const quoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
    parameters.set(parameter.slice(0, at).trim().toLowerCase(), quoted ? value.slice(1, -1) : value);
  }
  return { type: type.trim().toLowerCase(), parameters };
}

/** Returns whether a client accepts any type of response. */
export function isOpen(accept: string): boolean {
  const { type } = parseMediaType(accept);
  return type === "" || type === "*/*";
}
