import type { Notice } from "@/api/types";
import { sentence } from "@/lib/format";
import { locale, type Message, t } from "@/lib/language";

/** What each notice of the server says, for languages that the server does not speak; a code that is missing does not compile. */
const NOTICES: Record<Notice["code"], Message> = {
  answer_cut: "The model reached the length limit.",
  bands_not_calibrated: "How near passages of this library are is rough for now; it settles by itself.",
  better_embedder: "Another embedding model would serve this library better.",
  context_cut: "Not everything that was found fits into what the model reads; a part was left out.",
  cutoff_overruled: "Passages were found, but none of their sentences is likely to be the answer.",
  document_unclear: "It is not clear which document is meant: tick it, or name its title.",
  embedder_unavailable: "The question could not be read by meaning; passages were found by their words alone.",
  fallback_used: "No passage is close to the question; these are the nearest.",
  filter_matched_nothing: "No passage matches the filters; widen or remove them.",
  generator_unavailable: "No language model answers right now; Settings say why.",
  hosted_provider: "The question, and passages that were read for it, were sent to a host that is not this machine.",
  index_rebuilding: "The index is being made ready; passages were found by their words alone.",
  injection_flagged: "A source holds text that looks like instructions to a model; it is marked there.",
  instructions_unused: "Your instructions were not used: no language model wrote this answer.",
  language_differs: "The embedding model of this library does not know the language of the question; passages were found by their words.",
  library_empty: "The library is empty; add a document or the samples.",
  mode_needs_model: "No model was asked: a table or list is made of your documents’ own words, or not at all. A language model that is not small would write the answer from them.",
  quoted_instead: "What the model wrote did not hold; the answer quotes your documents instead.",
  search_degraded: "The word index is being filled again; until then documents may be missing from what is found.",
  strategy_degraded: "That way of searching was not possible; the question was searched as it stands.",
  subject_missing: "Nothing that was found names all that the question names.",
  vectors_missing: "Some passages are found by their words alone so far.",
  withheld: "Something that the model wrote is withheld: no passage is sure to say so.",
};

/** What went wrong and what helps, by the code of the problem; where the code says too little the server's words stay. */
const PROBLEMS: Readonly<Record<string, Message>> = {
  busy: "The server has too much to do; try again in a moment.",
  database_away: "The server does not reach its database; try again in a moment.",
  disk_full: "The disk of the server is full; make room and try again.",
  encrypted: "Locked with a password. Save it without one and add it again",
  forbidden: "Your key does not allow this.",
  internal: "Something went wrong in the server; its log says more.",
  model_not_installed: "The model is not installed; pull it under Settings.",
  no_original: "Of this document only the text is kept.",
  no_text_layer: "Pictures of pages without text. Run OCR over it and add it again",
  not_found: "It is not there, or not any more.",
  originals_away: "The server does not reach its files; try again in a moment.",
  provider_bad_response: "The model’s host answered something that makes no sense.",
  provider_timeout: "The model’s host took too long.",
  provider_unreachable: "The model’s host does not answer; start it, or change it under Settings.",
  rate_limited: "Too many requests; try again in a moment.",
  search_away: "The server does not reach its search; try again in a moment.",
  too_large: "Larger than this server takes. Split it, or raise the limit.",
  unreadable: "Damaged, empty, or not what its name says. Open it, save it again and add the new file",
  unsupported_type: "This kind of file cannot be read. Save it as PDF, DOCX or text and add that",
};

/** A notice in the page's language; in English the server's own words, which say more. */
export function noticeWords({ code, message }: Notice): string {
  return locale() === "en" ? sentence(message) : t(NOTICES[code]);
}

/** Codes whose reason comes from a library that reads the format: it helps in no language. */
const OF_FILES = new Set(["encrypted", "no_text_layer", "unreadable"]);

/** A problem in the page's language, as far as its code tells it; in English the server's own words, where they help. */
export function problemWords(code: string, detail: string): string {
  const known = locale() === "en" && !OF_FILES.has(code) ? undefined : PROBLEMS[code];
  return known === undefined ? detail : t(known);
}
