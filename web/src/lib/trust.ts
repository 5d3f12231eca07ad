import type { AnswerRecord } from "@/api/types";
import { fixed } from "@/lib/format";
import { type Message, t } from "@/lib/language";

/** A judgement in words, the number behind it for a tooltip, and, where it is low, why. */
export interface Trust {
  words: string;
  tone: "good" | "warn" | "bad";
  title: string;
  why: string | null;
}

const SURE = 0.8;
const UNSURE = 0.5;

/** What of a search makes an answer less sure, in words; in the order in which it is told. */
const CAUSES: Readonly<Record<string, Message>> = {
  fallback_used: "no passage comes close to the question",
  embedder_unavailable: "search was by words alone",
  vectors_missing: "a part of the documents is searched by words alone",
  index_rebuilding: "an index is being rebuilt",
  search_degraded: "an index is being rebuilt",
  strategy_degraded: "the chosen way of searching did not work",
  context_cut: "not all passages were read",
};

/** How sure an answer is: the calibrated probability that it is right, in words. */
export function confidenceOf(answer: AnswerRecord): Trust {
  const { confidence } = answer;
  const title = t("Calibrated probability that this answers the question: {share}", { share: fixed(confidence, 2) });
  if (confidence >= SURE) return { words: t("sure"), tone: "good", title, why: null };
  return { words: confidence >= UNSURE ? t("fairly sure") : t("not sure"), tone: confidence >= UNSURE ? "warn" : "bad", title, why: reasonOf(answer) };
}

/** How many sentences of a model's answer the sources hold, in words. */
export function supportOf(answer: AnswerRecord): Trust {
  const claims = answer.sentences.filter((s) => s.verdict !== "no_claim");
  const supported = claims.filter((s) => s.verdict === "supported").length;
  const unsure = claims.filter((s) => s.verdict === "unsure").length;
  const denied = claims.filter((s) => s.verdict === "contradicted").length;
  const title = t("{supported} of {n} sentences supported by a source", { supported, n: claims.length });
  if (supported === claims.length) return { words: t("Supported"), tone: "good", title, why: null };
  const missing = claims.length - supported - unsure - denied;
  const parts = [
    denied > 0 ? t("{n} sentences are denied by a source", { n: denied }) : "",
    unsure > 0 ? t("{n} sentences may stand in a source", { n: unsure }) : "",
    missing > 0 ? t("{n} sentences are held by no source", { n: missing }) : "",
  ];
  const why = parts.filter(Boolean).join("; ");
  const tone = missing + denied > 0 ? "bad" : "warn";
  if (supported > 0) return { words: t("Partly supported"), tone, title, why };
  return { words: unsure > 0 ? t("Not confirmed") : t("Not supported"), tone, title, why };
}

/** The support of one citation in words, the number behind them. */
export function citationWords(support: number): string {
  const words = support >= 0.999 ? t("word for word") : support >= UNSURE ? t("supported") : t("may say it, not confirmed");
  return `${words} (${fixed(support, 2)})`;
}

function reasonOf(answer: AnswerRecord): string {
  const codes = answer.notices.map((notice) => notice.code as string);
  const cause = Object.entries(CAUSES).find(([code]) => codes.includes(code));
  if (cause?.[1] !== undefined) return t(cause[1]);
  return answer.sources.some((source) => source.band === "strong") ? t("the passages are close, yet may not hold the answer") : t("the passages match the question only in part");
}
