import type { Message } from "@/lib/language";

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

const ZOTERO = /^zotero:\/\/(?:open-pdf|select)\/(?:library|groups\/\d+)\/items\/[A-Z0-9]{8}(?:\?page=\d+)?$/;
const OBSIDIAN = /^obsidian:\/\/open\?vault=[\w.%~-]+&file=[\w.%~-]+$/;

/** Where another program opens a source: an item or a page in Zotero, a note in Obsidian; null where none does. */
export function programLink(source: { zotero_url?: string | null; obsidian_url?: string | null }): { href: string; label: Message } | null {
  if (ZOTERO.test(source.zotero_url ?? "")) return { href: source.zotero_url ?? "", label: "Open in Zotero" };
  if (OBSIDIAN.test(source.obsidian_url ?? "")) return { href: source.obsidian_url ?? "", label: "Open in Obsidian" };
  return null;
}

/** What can be fetched: a paper of arXiv by its id, or an address of the web. */
export type Link = { kind: "arxiv"; id: string } | { kind: "web"; url: string };

const ARXIV = /^(?:arxiv:|(?:https?:\/\/)?(?:www\.|export\.)?arxiv\.org\/(?:abs|pdf)\/)?(\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+(?:\.[A-Z]{2})?\/\d{7}(?:v\d+)?)(?:\.pdf)?$/i;
const HOST = /^(?:https?:\/\/)?[^\s/?#@:]+\.[^\s/?#@:.]{2,}(?::\d+)?(?:[/?#]\S*)?$/i;

/** What a typed text asks to fetch; null where it is neither. An address without a scheme is one of https. */
export function linkOf(text: string): Link | null {
  const typed = text.trim();
  const id = ARXIV.exec(typed)?.[1];
  if (id !== undefined) return { kind: "arxiv", id };
  if (!HOST.test(typed)) return null;
  return { kind: "web", url: /^https?:\/\//i.test(typed) ? typed : `https://${typed}` };
}
