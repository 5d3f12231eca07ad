let last = 0;

/** An id that is unique in this tab. (crypto.randomUUID is missing where the page is not served from localhost or over TLS.) */
export function localId(): string {
  last += 1;
  return `local-${last}`;
}
