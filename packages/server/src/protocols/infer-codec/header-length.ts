/**
 * Returns the integer at the start of a header value, or null without a digit. As in Triton 2.51, which uses strtol, white space, a sign
 * and trailing text are ignored.
 */
export function leadingInteger(text: string): number | null {
  let at = 0;
  while (at < text.length && (text.charCodeAt(at) === 0x20 || text.charCodeAt(at) === 0x09)) at++;
  const sign = text.charCodeAt(at);
  if (sign === 0x2d || sign === 0x2b) at++;
  const first = at;
  let value = 0;
  for (; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  if (at === first) return null;
  return sign === 0x2d && value !== 0 ? -value : value;
}
