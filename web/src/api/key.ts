/**
 * The API key of this tab: kept in sessionStorage, sent as a header, never in an address.
 */

const SLOT = "documind.key";
const listeners = new Set<() => void>();
let required = false;

function announce(): void {
  for (const listener of listeners) listener();
}

export function apiKey(): string | null {
  return sessionStorage.getItem(SLOT);
}

/** True while the server refuses what this tab knows. */
export function keyRequired(): boolean {
  return required;
}

export function keyRefused(): void {
  if (required) return;
  required = true;
  announce();
}

export function rememberKey(key: string): void {
  sessionStorage.setItem(SLOT, key);
  required = false;
  announce();
}

export function onKeyChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
