export interface WebLink {
  href: string;
  /** The host it goes to, shown next to a text that could say anything. */
  host: string;
}

/** The link that a document or an answer names, where it is one that a browser opens on the web; else null. */
export function webLink(url: string | null | undefined): WebLink | null {
  if (url === null || url === undefined || !/^https?:\/\//i.test(url)) return null;
  try {
    const { host } = new URL(url);
    return host === "" ? null : { href: url, host };
  } catch {
    return null;
  }
}
